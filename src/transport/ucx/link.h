// All that goes to and comes from one peer over UCX: its endpoint, and the lanes of all groups over
// it. Whoever calls holds the mutex of the network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/tcp/link.h"
#include "transport/transport.h"
#include "transport/ucx/lane.h"
#include "transport/ucx/shared.h"

namespace unisono::ucx {

// Which handler of the peer a message is for.
inline constexpr unsigned kPacked = 1;  // a header, and the payload behind it
inline constexpr unsigned kPlain = 2;   // the header apart

class Link {
 public:
  // `pass`: what the peer must say in each message.
  Link(int peer, std::uint64_t pass, Shared* shared) : peer_(peer), pass_(pass), shared_(shared) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // What the peer told of itself: `loses`, whether UCX can give up peers there.
  struct Introduction {
    std::uint64_t pass = 0;
    bool loses = false;
    std::string address;
  };
  // Where UCX knows no way there, the link is broken.
  void connect(int rank, const Introduction& peer) noexcept;
  bool is_greeted() const noexcept { return greeted_; }

  Lane* open(const LaneKey& key) noexcept;
  // Memory that was shared over it, or that it is read into, is not looked at any more: where UCX
  // has not ended with that, the endpoint is given up, and the peer can be reached no more.
  void close(Lane* lane) noexcept;
  void retire_before(std::uint32_t epoch) noexcept { epoch_ = epoch; }

  // As in the seam. False or nullptr: no room now.
  bool send(Lane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept;
  std::byte* reserve(Lane& lane, std::size_t bytes) noexcept;
  void commit(Lane& lane, std::size_t bytes, std::uint64_t signature) noexcept;
  bool share(Lane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept;
  bool peek(Lane& lane, transport::Incoming& message) noexcept;
  bool peek_unread(Lane& lane, transport::Incoming& message) noexcept;
  std::size_t fetch(Lane& lane, std::size_t offset, std::byte* to, std::size_t bytes) noexcept;
  void release(Lane& lane) noexcept;

  // A message of the peer: its payload, or what to fetch it by. What UCX wants to hear of it.
  struct Arrival {
    Header header;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    bool announced = false;  // `data` is a descriptor
    bool stays = false;      // `data` may be kept, and is UCX's
  };
  ucs_status_t take(const Arrival& arrival) noexcept;

  // Brings long messages that its reader will want in slots there.
  void receive_ahead(Lane& lane) noexcept;
  // Sends what could not go before.
  void retry() noexcept;
  // Nothing of this rank is under way to the peer, or nobody wants it.
  bool is_flushed() noexcept;
  void send_leave() noexcept;
  // Gives the endpoint up: what was under way ends. `gently`: waits until the peer has all.
  void shut(bool gently) noexcept;

  bool is_receiving() const noexcept { return receiving_ != 0; }
  int peer() const noexcept { return peer_; }
  std::uint64_t pass() const noexcept { return pass_; }
  bool has_left() const noexcept { return left_; }
  bool is_broken() const noexcept { return broken_; }
  bool is_damaged() const noexcept { return detail_ != nullptr; }
  std::string why_broken() const;
  void mark_broken(ucs_status_t status) noexcept;
  bool gone() const noexcept { return left_ || broken_; }

 private:
  bool has_room(Lane& lane, std::size_t bytes) noexcept;
  bool has_room_now(const Lane& lane, std::size_t bytes) const noexcept;
  void put(Lane& lane, const std::byte* data, std::size_t bytes, std::uint64_t signature,
           OutMessage::Storage storage) noexcept;
  Header header_of(Lane* lane, Kind kind) const noexcept;
  // False: UCX did not take it.
  bool post(OutMessage& message, unsigned handler, unsigned flags) noexcept;
  bool post_word(OutMessage& word, const Header& header) noexcept;
  int& under_way(const OutMessage& message) noexcept {
    return message.lane != nullptr ? message.lane->under_way : words_under_way_;
  }
  void sent(OutMessage& message, ucs_status_t status) noexcept;
  void drain(Lane& lane) noexcept;
  void send_credit(Lane& lane) noexcept;

  bool receive(InMessage& message, std::byte* to, InMessage::Storage storage) noexcept;
  bool receive_to_slot(InMessage& message) noexcept;
  void received(InMessage& message, ucs_status_t status) noexcept;
  ucs_status_t keep(Lane& lane, InMessage& message, const Arrival& arrival) noexcept;
  void forget(Lane& lane, InMessage& message) noexcept;
  void apply_credit(Lane& lane, std::uint32_t released) noexcept;
  // UCX has nothing of this process any more that is for the peer, or from it.
  bool is_quiet() const noexcept;
  Lane* lane_of(const Header& header) noexcept;
  Lane* add_lane(const LaneKey& key) noexcept;
  void finish(Lane* lane) noexcept;
  void damaged(const char* detail) noexcept;
  void note_leave() noexcept;

  static void on_sent(void* request, ucs_status_t status, void* context);
  static void on_received(void* request, ucs_status_t status, std::size_t bytes, void* context);

  int peer_;
  std::uint64_t pass_;         // what the peer says
  std::uint64_t my_pass_ = 0;  // what this rank says
  Shared* shared_;
  std::uint32_t from_ = 0;
  ucp_ep_h endpoint_ = nullptr;
  std::map<LaneKey, std::unique_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<Lane>> closing_;
  Lane* latest_ = nullptr;
  std::array<LaneKey, tcp::kClosedLanes> closed_ = {};
  std::size_t closed_count_ = 0;
  bool can_be_lost_ = false;  // UCX can give this peer up and go on with the others
  std::size_t early_ = 0;     // lanes that no transport has opened yet
  std::uint32_t epoch_ = 0;
  std::size_t credits_due_ = 0;
  OutMessage hello_ = {};
  OutMessage leave_ = {};
  int words_under_way_ = 0;
  void* flushing_ = nullptr;
  std::uint64_t messages_sent_ = 0;
  std::uint64_t messages_come_ = 0;
  std::uint64_t messages_promised_ = 0;
  int receiving_ = 0;  // messages on their way to memory of this process
  bool leave_came_ = false;
  bool greeted_ = false;
  bool left_ = false;
  bool broken_ = false;
  ucs_status_t status_ = UCS_OK;
  const char* detail_ = nullptr;
};

}  // namespace unisono::ucx
