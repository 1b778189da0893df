// The receiving half of a link over UCX. Short messages come with their bytes; of a long one comes
// a header, and its bytes when the reader has said where they shall go.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/transport.h"
#include "transport/ucx/lane.h"
#include "transport/ucx/ucx_api.h"

namespace unisono::ucx {

class Endpoint;
class LinkLanes;
class UcxOutbox;
struct Shared;

class UcxInbox {
 public:
  UcxInbox(Shared* shared, Endpoint* endpoint, LinkLanes* lanes, UcxOutbox* outbox)
      : shared_(shared), endpoint_(endpoint), lanes_(lanes), outbox_(outbox) {}
  UcxInbox(const UcxInbox&) = delete;
  UcxInbox& operator=(const UcxInbox&) = delete;

  // A message of the peer has come. Returns what UCX wants to hear of it.
  ucs_status_t take(const PeerMessage& arrival) noexcept;
  // Brings long messages that the lane's reader will want in slots there.
  void receive_ahead(UcxLane& lane) noexcept;

  // As in the seam.
  bool peek(UcxLane& lane, transport::Incoming& message) noexcept;
  bool peek_unread(UcxLane& lane, transport::Incoming& message) noexcept;
  std::size_t fetch(UcxLane& lane, std::size_t offset, std::byte* to, std::size_t bytes) noexcept;
  void release(UcxLane& lane) noexcept;

  // Memory of the lane's reader is written to still.
  static bool writes_to_reader(const UcxLane& lane) noexcept;
  void close(UcxLane& lane) noexcept;

  // The peer has said its first word.
  bool is_greeted() const noexcept { return greeted_; }
  // A message is on its way to memory of this process.
  bool is_receiving() const noexcept { return receiving_ != 0; }

 private:
  ucs_status_t take_message(UcxLane& lane, const PeerMessage& arrival) noexcept;
  ucs_status_t keep(UcxLane& lane, InMessage& message, const PeerMessage& arrival) noexcept;
  // Begins to bring an announced message to where it shall go. True: it is there.
  bool receive(InMessage& message, std::byte* to, InMessage::Storage storage) noexcept;
  bool receive_to_slot(InMessage& message) noexcept;
  static void on_received(void* request, ucs_status_t status, std::size_t bytes, void* context);
  void received(InMessage& message, ucs_status_t status) noexcept;
  void forget(UcxLane& lane, InMessage& message) noexcept;
  void note_leave() noexcept;

  Shared* shared_;
  Endpoint* endpoint_;
  LinkLanes* lanes_;
  UcxOutbox* outbox_;
  bool greeted_ = false;
  int receiving_ = 0;
  // The peer's last word, which says how many messages went before it, may overtake them over
  // another device or in pieces.
  bool leave_came_ = false;
  std::uint64_t promised_ = 0;  // by that word
  std::uint64_t come_ = 0;      // on all lanes
};

}  // namespace unisono::ucx
