// The sending half of a link over UCX: the messages to the peer, and the peer's room for them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/ucx/lane.h"
#include "transport/ucx/ucx_api.h"

namespace unisono::ucx {

class Endpoint;
class LinkLanes;
struct Shared;

// Identifiers of the peer's handlers.
inline constexpr unsigned kPacked = 1;  // a header, followed by the payload
inline constexpr unsigned kPlain = 2;   // the header separately

// Maximum message length if UCX copies data anyway, whether from the user's memory or from a slot.
// With the headers of UCX and unisono such a message fits into the buffer that UCX's TCP receives
// into at once (UCX_TCP_RX_SEG_SIZE, 64 KiB), and needs no rendezvous.
inline constexpr std::size_t kEagerBytes = (std::size_t{64} << 10) - 512;

class UcxOutbox {
 public:
  UcxOutbox(Shared* shared, Endpoint* endpoint, LinkLanes* lanes);
  UcxOutbox(const UcxOutbox&) = delete;
  UcxOutbox& operator=(const UcxOutbox&) = delete;

  // Sends the first message to the peer, which identifies this rank by `pass`.
  void greet(int rank, std::uint64_t pass) noexcept;
  // Sends the last message, if possible.
  void send_leave() noexcept;

  // As in Transport. False or nullptr: no room now.
  bool send(UcxLane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept;
  std::byte* reserve(UcxLane& lane, std::size_t bytes) noexcept;
  void commit(UcxLane& lane, std::size_t bytes, std::uint64_t signature) noexcept;
  bool share(UcxLane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept;

  // Reports releases on the lane, now or as soon as possible.
  void send_credit(UcxLane& lane) noexcept;
  // Sends the credits that could not be sent before.
  void retry() noexcept;
  // Notes that the peer has released all messages before `released`. Returns false if the peer
  // never had so many messages.
  bool take_credit(UcxLane& lane, std::uint32_t released) noexcept;
  // Returns true if memory that was shared over the lane is still in use.
  static bool looks_at_shared(const UcxLane& lane) noexcept;
  void close(UcxLane& lane) noexcept;

  // As Frames::sent.
  std::uint64_t frames() const noexcept;
  // Returns the number of long messages that their readers have read, according to UCX.
  std::uint64_t fetched() const noexcept { return fetched_; }
  // Returns true if UCX has finished all messages that belong to the link and not to a lane.
  bool is_quiet() const noexcept { return words_under_way_ == 0; }

 private:
  bool has_room(UcxLane& lane, std::size_t bytes) noexcept;
  bool has_room_now(const UcxLane& lane, std::size_t bytes) const noexcept;
  void put(UcxLane& lane, const std::byte* data, std::size_t bytes, std::uint64_t signature,
           OutMessage::Storage storage) noexcept;
  std::size_t longest_eager() const noexcept;
  // Returns true if UCX asks the reader for the destination.
  bool asks_first(const OutMessage& message) const noexcept;
  MessageHeader header_of(UcxLane* lane, MessageKind kind) const noexcept;
  // Returns false if UCX did not accept the message.
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
  std::uint64_t frames_ = 0;    // as frames(), without the credits that are due
  std::uint64_t fetched_ = 0;
  std::size_t credits_due_ = 0;
};

}  // namespace unisono::ucx
