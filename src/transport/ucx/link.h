// All that goes to and comes from one peer over UCX: its endpoint, and the lanes of all groups over
// it. Whoever calls holds the mutex of the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/transport.h"
#include "transport/ucx/endpoint.h"
#include "transport/ucx/lane.h"

namespace unisono::ucx {

// Which handler of the peer a message is for.
inline constexpr unsigned kPacked = 1;  // a header, and the payload behind it
inline constexpr unsigned kPlain = 2;   // the header apart

// Messages on all lanes. The peer's last word, which says how many went before it, may overtake
// them over another device or in pieces.
struct MessageTally {
  std::uint64_t sent = 0;
  std::uint64_t come = 0;
  std::uint64_t promised = 0;  // by that word
  bool leave_came = false;

  bool all_came() const noexcept { return leave_came && come >= promised; }
};

class UcxLink {
 public:
  // `pass`: what the peer must say in each message.
  UcxLink(int peer, std::uint64_t pass, Shared* shared)
      : peer_(peer), pass_(pass), shared_(shared), endpoint_(peer, shared) {}
  UcxLink(const UcxLink&) = delete;
  UcxLink& operator=(const UcxLink&) = delete;

  // Where UCX knows no way there, the link is broken.
  void connect(int rank, const Introduction& peer) noexcept;
  bool is_greeted() const noexcept { return greeted_; }

  UcxLane* open(const LaneKey& key) noexcept;
  // Memory that was shared over it, or that it is read into, is not looked at any more: where UCX
  // has not ended with that, the endpoint is given up, and the peer can be reached no more.
  void close(UcxLane* lane) noexcept;
  void retire_before(std::uint32_t epoch) noexcept { lanes_.retire_before(epoch); }

  // As in the seam. False or nullptr: no room now.
  bool send(UcxLane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept;
  std::byte* reserve(UcxLane& lane, std::size_t bytes) noexcept;
  void commit(UcxLane& lane, std::size_t bytes, std::uint64_t signature) noexcept;
  bool share(UcxLane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept;
  bool peek(UcxLane& lane, transport::Incoming& message) noexcept;
  bool peek_unread(UcxLane& lane, transport::Incoming& message) noexcept;
  std::size_t fetch(UcxLane& lane, std::size_t offset, std::byte* to, std::size_t bytes) noexcept;
  void release(UcxLane& lane) noexcept;

  // A message of the peer has come. Returns what UCX wants to hear of it.
  ucs_status_t take(const PeerMessage& arrival) noexcept;

  // Brings long messages that its reader will want in slots there.
  void receive_ahead(UcxLane& lane) noexcept;
  // Sends what could not go before.
  void retry() noexcept;
  // Nothing of this rank is under way to the peer, or nobody wants it.
  bool is_flushed() const noexcept;
  void send_leave() noexcept;
  // Gives the endpoint up: what was under way ends. `gently`: waits until the peer has all.
  void shut(bool gently) noexcept;

  bool is_receiving() const noexcept { return receiving_ != 0; }
  int peer() const noexcept { return peer_; }
  std::uint64_t pass() const noexcept { return pass_; }
  bool has_left() const noexcept { return left_; }
  bool gone() const noexcept { return left_ || endpoint_.is_broken(); }
  const Endpoint& endpoint() const noexcept { return endpoint_; }
  void mark_broken(ucs_status_t status) noexcept { endpoint_.mark_broken(status); }

 private:
  bool has_room(UcxLane& lane, std::size_t bytes) noexcept;
  bool has_room_now(const UcxLane& lane, std::size_t bytes) const noexcept;
  void put(UcxLane& lane, const std::byte* data, std::size_t bytes, std::uint64_t signature,
           OutMessage::Storage storage) noexcept;
  MessageHeader header_of(UcxLane* lane, MessageKind kind) const noexcept;
  // False: UCX did not take it.
  bool post(OutMessage& message, unsigned handler, unsigned flags) noexcept;
  bool post_word(OutMessage& word, const MessageHeader& header) noexcept;
  int& under_way(const OutMessage& message) noexcept {
    return message.lane != nullptr ? message.lane->under_way : words_under_way_;
  }
  void sent(OutMessage& message, ucs_status_t status) noexcept;
  void drain(UcxLane& lane) noexcept;
  void send_credit(UcxLane& lane) noexcept;

  bool receive(InMessage& message, std::byte* to, InMessage::Storage storage) noexcept;
  bool receive_to_slot(InMessage& message) noexcept;
  void received(InMessage& message, ucs_status_t status) noexcept;
  ucs_status_t keep(UcxLane& lane, InMessage& message, const PeerMessage& arrival) noexcept;
  void forget(UcxLane& lane, InMessage& message) noexcept;
  void apply_credit(UcxLane& lane, std::uint32_t released) noexcept;
  // UCX has nothing of this process any more that is for the peer, or from it.
  bool is_quiet() const noexcept;
  UcxLane* lane_of(const MessageHeader& header) noexcept;
  // nullptr, or std::bad_alloc: no memory.
  std::unique_ptr<UcxLane> make_lane(const LaneKey& key);
  void finish(UcxLane* lane) noexcept;
  void note_leave() noexcept;

  static void on_sent(void* request, ucs_status_t status, void* context);
  static void on_received(void* request, ucs_status_t status, std::size_t bytes, void* context);

  int peer_;
  std::uint64_t pass_;         // what the peer says
  std::uint64_t my_pass_ = 0;  // what this rank says
  Shared* shared_;
  std::uint32_t from_ = 0;
  Endpoint endpoint_;
  LaneTable lanes_;
  std::vector<std::unique_ptr<UcxLane>> closing_;
  std::size_t credits_due_ = 0;
  OutMessage hello_ = {};
  OutMessage leave_ = {};
  int words_under_way_ = 0;
  MessageTally tally_;
  int receiving_ = 0;  // messages on their way to memory of this process
  bool greeted_ = false;
  bool left_ = false;
};

}  // namespace unisono::ucx
