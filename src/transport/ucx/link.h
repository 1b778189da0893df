// All that goes to and comes from one peer over UCX: its endpoint, and the lanes of all groups over
// it. Whoever calls holds the mutex of Shared.
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
  // `pass`: what the peer must say in each message.
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

  // Where UCX knows no way there, the link is broken.
  void connect(int rank, const Introduction& peer) noexcept;

  UcxLane* open(const transport::LaneKey& key) noexcept { return lanes_.open(key); }
  // Memory that was shared over it, or that it is read into, is not looked at any more: where UCX
  // has not ended with that, the endpoint is given up, and the peer can be reached no more.
  void close(UcxLane* lane) noexcept;
  void retire_before(std::uint32_t epoch) noexcept { lanes_.retire_before(epoch); }

  UcxOutbox& outbox() noexcept { return outbox_; }
  UcxInbox& inbox() noexcept { return inbox_; }

  // Nothing of this rank is under way to the peer, or nobody wants it.
  bool is_flushed() const noexcept;
  // Gives the endpoint up: what was under way ends. `gently`: waits until the peer has all.
  void shut(bool gently) noexcept;

  int peer() const noexcept { return peer_; }
  std::uint64_t pass() const noexcept { return pass_; }
  const Endpoint& endpoint() const noexcept { return endpoint_; }
  void mark_broken(ucs_status_t status) noexcept { endpoint_.mark_broken(status); }

  // How the peer is, by this connection and the one over TCP beside it: `said`, that the peer has
  // said there that it leaves. Call look_for_loss() now and then.
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
  std::int64_t odd_us_ = 0;  // since when only one of the two connections lives; 0: both do
  bool lost_ = false;        // and for so long that it is a loss
  bool left_ = false;        // or for so long that has_left() says so without its last word here
};

}  // namespace unisono::ucx
