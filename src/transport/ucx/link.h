// The connection to one peer over UCX: its endpoint, and the lanes of all groups over it. The
// caller holds the mutex of Shared.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/network.h"
#include "transport/ucx/endpoint.h"
#include "transport/ucx/inbox.h"
#include "transport/ucx/lane.h"
#include "transport/ucx/link_lanes.h"
#include "transport/ucx/outbox.h"

namespace unisono::ucx {

class UcxLink {
 public:
  // `pass` is the secret that the peer must send in each message.
  UcxLink(int peer, std::uint64_t pass, Shared* shared)
      : peer_(peer),
        pass_(pass),
        shared_(shared),
        endpoint_(peer, shared),
        lanes_(this, &outbox_, &inbox_),
        outbox_(shared, &endpoint_, &lanes_),
        inbox_(shared, &endpoint_, &lanes_, &outbox_) {}
  UcxLink(const UcxLink&) = delete;
  UcxLink& operator=(const UcxLink&) = delete;

  // Connects. The link is broken if UCX knows no path to the peer.
  void connect(int rank, const Introduction& peer) noexcept;

  UcxLane* open(const transport::LaneKey& key) noexcept { return lanes_.open(key); }
  // Closes a lane. Afterwards UCX uses neither memory that was shared over the lane nor memory that
  // it receives into. If UCX has not finished with this memory, the endpoint is closed and the peer
  // can no longer be reached.
  void close(UcxLane* lane) noexcept;
  void retire_before(std::uint32_t epoch) noexcept { lanes_.retire_before(epoch); }

  // The end of each fetch counts as a frame, because the writer of a long message waits for it.
  transport::Frames frames() const noexcept {
    return {.sent = outbox_.frames() + inbox_.fetched(),
            .received = inbox_.frames() + outbox_.fetched()};
  }
  UcxOutbox& outbox() noexcept { return outbox_; }
  UcxInbox& inbox() noexcept { return inbox_; }

  // Returns true if no data of this rank is in transit to the peer, or if nobody needs the data any
  // more.
  bool is_flushed() const noexcept;
  // Closes the endpoint and ends pending requests. With `gently`, first waits until the peer has
  // everything.
  void shut(bool gently) noexcept;

  int peer() const noexcept { return peer_; }
  std::uint64_t pass() const noexcept { return pass_; }
  const Endpoint& endpoint() const noexcept { return endpoint_; }
  void mark_broken(ucs_status_t status) noexcept { endpoint_.mark_broken(status); }

  // These report the peer's state according to this connection and the TCP connection beside it.
  // `said` is true if the peer has announced on TCP that it leaves. Call look_for_loss()
  // occasionally.
  void look_for_loss(std::int64_t now_us, bool said) noexcept;
  transport::Loss loss() const;
  bool has_left(std::int64_t now_us, bool said) const noexcept;

 private:
  int peer_;
  std::uint64_t pass_;
  Shared* shared_;
  Endpoint endpoint_;
  LinkLanes lanes_;
  UcxOutbox outbox_;
  UcxInbox inbox_;
  std::int64_t odd_us_ = 0;  // since when only one of the two connections lives; 0: both live
  bool lost_ = false;        // long enough to count as a loss
  bool left_ = false;        // long enough for has_left() without its last message here
};

}  // namespace unisono::ucx
