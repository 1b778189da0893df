// The receiving half of a link over UCX. A short message arrives with its bytes. A long message
// arrives as a header; its bytes follow after the reader has given their destination.
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

  // Handles a message of the peer. Returns the status for UCX.
  ucs_status_t take(const PeerMessage& arrival) noexcept;
  // Receives long messages that the lane's reader will want in slots.
  void receive_ahead(UcxLane& lane) noexcept;

  // As in Transport.
  bool peek(UcxLane& lane, transport::Incoming& message) noexcept;
  bool peek_unread(UcxLane& lane, transport::Incoming& message) noexcept;
  std::size_t fetch(UcxLane& lane, std::size_t offset, std::byte* to, std::size_t bytes) noexcept;
  void release(UcxLane& lane) noexcept;

  // Returns true if UCX is still writing to memory of the lane's reader.
  static bool writes_to_reader(const UcxLane& lane) noexcept;
  void close(UcxLane& lane) noexcept;

  // Returns true if the peer has sent its first message.
  bool is_greeted() const noexcept { return greeted_; }
  // Returns true if a message is being received into memory of this process.
  bool is_receiving() const noexcept { return receiving_ != 0; }
  // As Frames::received. A long message counts as soon as only its reader is missing, which has not
  // named a destination.
  std::uint64_t frames() const noexcept { return frames_ - static_cast<std::uint64_t>(receiving_); }
  // Returns the number of long messages that have been fetched or will never be fetched.
  std::uint64_t fetched() const noexcept { return fetched_; }

 private:
  ucs_status_t take_message(UcxLane& lane, const PeerMessage& arrival) noexcept;
  ucs_status_t keep(UcxLane& lane, InMessage& message, const PeerMessage& arrival) noexcept;
  // Begins to receive an announced message into its destination. Returns true if it is there.
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
  // True once the peer's last message has come. This message contains the number of messages before
  // it, because it may overtake them over another device or in pieces.
  bool leave_came_ = false;
  std::uint64_t promised_ = 0;  // the number of messages announced in it
  std::uint64_t come_ = 0;      // messages received on all lanes
  std::uint64_t frames_ = 0;    // as frames(), with those that are being received
  std::uint64_t fetched_ = 0;
};

}  // namespace unisono::ucx
