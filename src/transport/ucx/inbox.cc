#include "transport/ucx/inbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/ucx/endpoint.h"
#include "transport/ucx/link_lanes.h"
#include "transport/ucx/outbox.h"
#include "transport/ucx/shared.h"

namespace unisono::ucx {
namespace {

// If a reader reads messages from slots, this many long messages are received before it asks for
// them.
constexpr std::uint32_t kAhead = 3;

}  // namespace

ucs_status_t UcxInbox::take(const PeerMessage& arrival) noexcept {
  const MessageHeader& header = arrival.header;
  const auto kind = static_cast<MessageKind>(header.from & 0xffU);
  if (kind == MessageKind::hello) {
    greeted_ = true;
    shared_->tell(nullptr);
    return UCS_OK;
  }
  if (kind == MessageKind::leave) {
    leave_came_ = true;
    promised_ = header.signature;
    note_leave();
    return UCS_OK;
  }
  if (kind != MessageKind::message && kind != MessageKind::credit) {
    endpoint_->mark_damaged("an unknown kind");
    return UCS_OK;
  }
  ++come_;
  frames_ += header.group != transport::kReportGroup ? 1U : 0U;
  UcxLane* const lane = endpoint_->is_broken() ? nullptr : lanes_->find(header, *endpoint_);
  ucs_status_t status = UCS_OK;
  fetched_ += lane == nullptr && arrival.announced ? 1U : 0U;
  if (lane != nullptr) {
    if (!outbox_->take_credit(*lane, header.released)) {
      endpoint_->mark_damaged("it releases bytes that were never sent");
      return UCS_OK;
    }
    if (kind == MessageKind::message) {
      status = take_message(*lane, arrival);
    }
  }
  note_leave();
  return status;
}

ucs_status_t UcxInbox::take_message(UcxLane& lane, const PeerMessage& arrival) noexcept {
  const std::uint32_t number = arrival.header.number;
  InMessage& message = lane.incoming(number);
  if (number - lane.next >= transport::kMessages || message.state != InMessage::State::none ||
      arrival.bytes > transport::kMostBytes ||
      !lane.held.holds(arrival.bytes, shared_->slots_per_lane)) {
    endpoint_->mark_damaged("a message beyond the window of its lane");
    return UCS_OK;
  }
  return keep(lane, message, arrival);
}

ucs_status_t UcxInbox::keep(UcxLane& lane, InMessage& message,
                            const PeerMessage& arrival) noexcept {
  message.bytes = arrival.bytes;
  message.signature = arrival.header.signature;
  lane.held.add(arrival.bytes);
  if (arrival.announced) {
    message.descriptor = arrival.data;
    message.state = InMessage::State::announced;
    ++lane.announced;
    shared_->announce(&lane);
    shared_->tell(&lane);
    return UCS_INPROGRESS;
  }
  message.state = InMessage::State::complete;
  shared_->tell(&lane);
  if (arrival.stays) {
    message.data = arrival.data;
    message.storage = InMessage::Storage::ucx;
    return UCS_INPROGRESS;
  }
  // The ring is released in the order of the lane, and so must be filled in that order.
  const bool in_order = !lane.in_ring_used ||
                        static_cast<std::int32_t>(arrival.header.number - lane.in_ring_latest) > 0;
  if (transport::is_short(arrival.bytes) && in_order) {
    message.data = lane.in_ring.place(arrival.bytes);
    message.storage = InMessage::Storage::ring;
    lane.in_ring_used = true;
    lane.in_ring_latest = arrival.header.number;
  }
  if (message.data == nullptr) {
    message.data = shared_->in_slots.take();
    message.storage = InMessage::Storage::slot;
  }
  if (message.data == nullptr) {
    message.storage = InMessage::Storage::none;
    endpoint_->mark_broken(UCS_ERR_NO_MEMORY);
    return UCS_OK;
  }
  if (arrival.bytes != 0) {
    std::memcpy(message.data, arrival.data, arrival.bytes);
  }
  return UCS_OK;
}

bool UcxInbox::receive(InMessage& message, std::byte* to, InMessage::Storage storage) noexcept {
  const UcxApi& api = shared_->worker->api();
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = on_received;
  param.user_data = &message;
  message.data = to;
  message.storage = storage;
  message.state = InMessage::State::coming;
  --message.lane->announced;
  const auto request =
      api.am_recv_data(shared_->worker->get(), std::exchange(message.descriptor, nullptr), to,
                       message.bytes, &param);
  if (UCS_PTR_IS_PTR(request)) {
    ++message.lane->under_way;
    ++receiving_;
    return false;
  }
  received(message, UCS_PTR_RAW_STATUS(request));
  return message.state == InMessage::State::complete;
}

bool UcxInbox::receive_to_slot(InMessage& message) noexcept {
  std::byte* const slot = shared_->in_slots.take();
  if (slot == nullptr) {
    endpoint_->mark_broken(UCS_ERR_NO_MEMORY);
    return false;
  }
  return receive(message, slot, InMessage::Storage::slot);
}

void UcxInbox::on_received(void* request, ucs_status_t status, std::size_t /*bytes*/,
                           void* context) {
  InMessage& message = *static_cast<InMessage*>(context);
  UcxLane& lane = *message.lane;
  UcxInbox& inbox = *lane.inbox;
  inbox.shared_->worker->api().request_free(request);
  --lane.under_way;
  --inbox.receiving_;
  inbox.received(message, status);
  inbox.note_leave();
  if (lane.closed) {
    inbox.forget(lane, message);
  }
  inbox.lanes_->finish(&lane);
}

void UcxInbox::received(InMessage& message, ucs_status_t status) noexcept {
  if (status != UCS_OK) {
    if (message.storage == InMessage::Storage::slot) {
      shared_->in_slots.give_back(message.data);
    }
    message.storage = InMessage::Storage::none;
    message.data = nullptr;
    message.state = InMessage::State::none;
    endpoint_->mark_broken(status);
    return;
  }
  ++fetched_;
  message.state = InMessage::State::complete;
  if (message.storage == InMessage::Storage::reader) {
    shared_->traffic.direct_bytes += message.bytes;
  }
  shared_->tell(message.lane);
}

// Receives messages that the lane's reader will want in slots, while the reader works on earlier
// ones.
void UcxInbox::receive_ahead(UcxLane& lane) noexcept {
  if (lane.announced == 0 || lane.closed || lane.reader_fetches || !lane.reader_takes) {
    return;
  }
  for (std::uint32_t i = 0; i < kAhead && !endpoint_->is_broken(); ++i) {
    InMessage& message = lane.incoming(lane.next + i);
    if (message.state == InMessage::State::announced) {
      receive_to_slot(message);
    }
  }
}

bool UcxInbox::peek(UcxLane& lane, transport::Incoming& message) noexcept {
  lane.reader_fetches = false;
  lane.reader_takes = true;
  const InMessage& next = lane.incoming(lane.next);
  if (next.state == InMessage::State::announced) {
    receive_ahead(lane);
  }
  if (next.state != InMessage::State::complete) {
    return false;
  }
  message = {.data = next.data, .bytes = next.bytes, .signature = next.signature};
  return true;
}

bool UcxInbox::peek_unread(UcxLane& lane, transport::Incoming& message) noexcept {
  lane.reader_fetches = true;
  const InMessage& next = lane.incoming(lane.next);
  if (next.state == InMessage::State::none) {
    return false;
  }
  const bool here = next.state == InMessage::State::complete;
  message = {.data = here ? next.data : nullptr, .bytes = next.bytes, .signature = next.signature};
  return true;
}

std::size_t UcxInbox::fetch(UcxLane& lane, std::size_t offset, std::byte* to,
                            std::size_t bytes) noexcept {
  InMessage& next = lane.incoming(lane.next);
  if (next.state == InMessage::State::announced) {
    // If the reader has no room for the whole message yet, the message goes to a slot.
    if (offset == 0 && bytes == next.bytes) {
      receive(next, to, InMessage::Storage::reader);
    } else {
      receive_to_slot(next);
    }
  }
  if (next.state != InMessage::State::complete || offset > next.bytes) {
    return 0;
  }
  const std::size_t part = std::min(bytes, next.bytes - offset);
  if (next.data + offset != to && part != 0) {
    std::memcpy(to, next.data + offset, part);
    shared_->traffic.copied_bytes += part;
  }
  return part;
}

void UcxInbox::release(UcxLane& lane) noexcept {
  InMessage& message = lane.incoming(lane.next);
  const std::size_t bytes = message.bytes;
  if (message.state == InMessage::State::none || message.state == InMessage::State::coming) {
    return;
  }
  forget(lane, message);
  ++lane.next;
  lane.held.remove(bytes);
  lane.unreported.add(bytes);
  if (lane.unreported.is_worth_a_frame(shared_->slots_per_lane)) {
    outbox_->send_credit(lane);
  }
  receive_ahead(lane);
}

// Returns the memory of a message to its owner.
void UcxInbox::forget(UcxLane& lane, InMessage& message) noexcept {
  const UcxApi& api = shared_->worker->api();
  switch (message.storage) {
    case InMessage::Storage::ring:
      lane.in_ring.release(message.data, message.bytes);
      break;
    case InMessage::Storage::slot:
      shared_->in_slots.give_back(message.data);
      break;
    case InMessage::Storage::ucx:
      api.am_data_release(shared_->worker->get(), message.data);
      break;
    case InMessage::Storage::reader:
    case InMessage::Storage::none:
      break;
  }
  if (message.descriptor != nullptr) {
    --lane.announced;
    ++fetched_;
    api.am_data_release(shared_->worker->get(), message.descriptor);  // its writer may continue
  }
  message.descriptor = nullptr;
  message.data = nullptr;
  message.storage = InMessage::Storage::none;
  message.state = InMessage::State::none;
}

bool UcxInbox::writes_to_reader(const UcxLane& lane) noexcept {
  return std::any_of(lane.in.begin(), lane.in.end(), [](const InMessage& one) {
    return one.state == InMessage::State::coming && one.storage == InMessage::Storage::reader;
  });
}

void UcxInbox::close(UcxLane& lane) noexcept {
  for (InMessage& message : lane.in) {
    if (message.state != InMessage::State::coming) {
      forget(lane, message);
    }
  }
}

void UcxInbox::note_leave() noexcept {
  if (!endpoint_->has_left() && leave_came_ && come_ >= promised_ && receiving_ == 0) {
    endpoint_->mark_left();
    shared_->changed();
  }
}

}  // namespace unisono::ucx
