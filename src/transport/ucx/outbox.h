// The sending half of a link over UCX: what goes to the peer, and how much it has room for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/ucx/lane.h"
#include "transport/ucx/ucx_api.h"

namespace unisono::ucx {

class Endpoint;
class LinkLanes;
struct Shared;

// Which handler of the peer a message is for.
inline constexpr unsigned kPacked = 1;  // a header, and the payload behind it
inline constexpr unsigned kPlain = 2;   // the header apart

// Where UCX copies what it moves anyway, messages are no longer than this, from the user's memory
// or from a slot: with UCX's headers and ours they fit what UCX's TCP receives at once
// (UCX_TCP_RX_SEG_SIZE, 64 KiB), and need no rendezvous.
inline constexpr std::size_t kEagerBytes = (std::size_t{64} << 10) - 512;

class UcxOutbox {
 public:
  UcxOutbox(Shared* shared, Endpoint* endpoint, LinkLanes* lanes);
  UcxOutbox(const UcxOutbox&) = delete;
  UcxOutbox& operator=(const UcxOutbox&) = delete;

  // The first word to the peer, which knows this rank by `pass`.
  void greet(int rank, std::uint64_t pass) noexcept;
  // The last one, if it can be said.
  void send_leave() noexcept;

  // As in the seam. False or nullptr: no room now.
  bool send(UcxLane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept;
  std::byte* reserve(UcxLane& lane, std::size_t bytes) noexcept;
  void commit(UcxLane& lane, std::size_t bytes, std::uint64_t signature) noexcept;
  bool share(UcxLane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept;

  // The peer hears what was released on the lane, now or as soon as it can be told.
  void send_credit(UcxLane& lane) noexcept;
  // Sends the credits that could not go before.
  void retry() noexcept;
  // The peer says that it is done with all messages before `released`. False: it never had them.
  bool take_credit(UcxLane& lane, std::uint32_t released) noexcept;
  // Memory that was shared over the lane is looked at still.
  static bool looks_at_shared(const UcxLane& lane) noexcept;
  void close(UcxLane& lane) noexcept;

  // UCX has all words of the link itself.
  bool is_quiet() const noexcept { return words_under_way_ == 0; }

 private:
  bool has_room(UcxLane& lane, std::size_t bytes) noexcept;
  bool has_room_now(const UcxLane& lane, std::size_t bytes) const noexcept;
  void put(UcxLane& lane, const std::byte* data, std::size_t bytes, std::uint64_t signature,
           OutMessage::Storage storage) noexcept;
  std::size_t longest_eager() const noexcept;
  MessageHeader header_of(UcxLane* lane, MessageKind kind) const noexcept;
  // False: UCX did not take it.
  bool post(OutMessage& message, unsigned handler, unsigned flags) noexcept;
  bool post_word(OutMessage& word, const MessageHeader& header) noexcept;
  int& under_way(const OutMessage& message) noexcept {
    return message.lane != nullptr ? message.lane->under_way : words_under_way_;
  }
  static void on_sent(void* request, ucs_status_t status, void* context);
  void sent(OutMessage& message, ucs_status_t status) noexcept;
  void drain(UcxLane& lane) noexcept;
  static bool open_window(UcxLane& lane) noexcept;
  void withdraw_credit(UcxLane& lane) noexcept;

  Shared* shared_;
  Endpoint* endpoint_;
  LinkLanes* lanes_;
  std::uint64_t pass_ = 0;
  std::uint32_t from_ = 0;
  OutMessage hello_;
  OutMessage leave_;
  int words_under_way_ = 0;
  std::uint64_t messages_ = 0;  // on all lanes
  std::size_t credits_due_ = 0;
};

}  // namespace unisono::ucx
