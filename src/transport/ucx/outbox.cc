#include "transport/ucx/outbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/ucx/endpoint.h"
#include "transport/ucx/link_lanes.h"
#include "transport/ucx/shared.h"

namespace unisono::ucx {
namespace {

// From this length on, UCX first asks for the destination, and reads from or writes to the
// message's final place. Shorter messages are sent at once, and UCX copies them.
constexpr std::size_t kRendezvousBytes = std::size_t{16} << 10;

}  // namespace

UcxOutbox::UcxOutbox(Shared* shared, Endpoint* endpoint, LinkLanes* lanes)
    : shared_(shared),
      endpoint_(endpoint),
      lanes_(lanes),
      hello_{.outbox = this},
      leave_{.outbox = this} {}

void UcxOutbox::greet(int rank, std::uint64_t pass) noexcept {
  pass_ = pass;
  from_ = static_cast<std::uint32_t>(rank) << 8;
  post_word(hello_, header_of(nullptr, MessageKind::hello));
}

void UcxOutbox::send_leave() noexcept {
  if (endpoint_->is_broken() || !endpoint_->is_open() || !leave_.done || leave_.header.from != 0) {
    return;
  }
  MessageHeader header = header_of(nullptr, MessageKind::leave);
  header.signature = messages_;
  if (post_word(leave_, header)) {
    endpoint_->flush();
  }
}

bool UcxOutbox::has_room_now(const UcxLane& lane, std::size_t bytes) const noexcept {
  transport::Window window = lane.unreleased;
  if (lane.reserved != nullptr) {
    window.add(lane.reserved_bytes);
  }
  return window.holds(bytes, shared_->slots_per_lane) && !endpoint_->is_gone() &&
         endpoint_->is_open();
}

bool UcxOutbox::has_room(UcxLane& lane, std::size_t bytes) noexcept {
  if (has_room_now(lane, bytes)) {
    return true;
  }
  shared_->progress();  // the peer may have reported room
  return has_room_now(lane, bytes);
}

bool UcxOutbox::send(UcxLane& lane, const void* data, std::size_t bytes,
                     std::uint64_t signature) noexcept {
  if (!transport::is_short(bytes) || !has_room(lane, bytes)) {
    return false;
  }
  std::byte* const place = lane.out_ring.place(sizeof(MessageHeader) + bytes);
  if (place == nullptr) {
    return false;
  }
  if (bytes != 0) {
    std::memcpy(place + sizeof(MessageHeader), data, bytes);
  }
  put(lane, place, bytes, signature, OutMessage::Storage::ring);
  return true;
}

std::byte* UcxOutbox::reserve(UcxLane& lane, std::size_t bytes) noexcept {
  if (lane.reserved == nullptr && has_room(lane, bytes)) {
    lane.reserved = shared_->out_slots.take();
    lane.reserved_bytes = bytes;
  }
  return lane.reserved;
}

void UcxOutbox::commit(UcxLane& lane, std::size_t bytes, std::uint64_t signature) noexcept {
  const std::byte* data = std::exchange(lane.reserved, nullptr);
  shared_->traffic.copied_bytes += bytes;
  put(lane, data, bytes, signature, OutMessage::Storage::slot);
}

bool UcxOutbox::share(UcxLane& lane, const void* data, std::size_t bytes,
                      std::uint64_t signature) noexcept {
  if (!has_room(lane, bytes)) {
    return false;
  }
  put(lane, static_cast<const std::byte*>(data), bytes, signature, OutMessage::Storage::shared);
  return true;
}

MessageHeader UcxOutbox::header_of(UcxLane* lane, MessageKind kind) const noexcept {
  MessageHeader header{
      .pass = pass_, .epoch = lanes_->epoch(), .from = from_ | static_cast<std::uint32_t>(kind)};
  if (lane != nullptr) {
    header.group = lane->key.group;
    header.epoch = lane->key.epoch;
    header.released = lane->next;
  }
  return header;
}

std::size_t UcxOutbox::longest_eager() const noexcept {
  return shared_->worker->only_copies() ? kEagerBytes : kRendezvousBytes;
}

bool UcxOutbox::asks_first(const OutMessage& message) const noexcept {
  const bool is_packed =
      message.storage == OutMessage::Storage::none || message.storage == OutMessage::Storage::ring;
  return !is_packed && message.bytes > longest_eager();
}

// REQUIRES: the window has room for the message.
void UcxOutbox::put(UcxLane& lane, const std::byte* data, std::size_t bytes,
                    std::uint64_t signature, OutMessage::Storage storage) noexcept {
  const std::uint32_t number = lane.sent++;
  OutMessage& message = lane.outgoing(number);
  message.header = header_of(&lane, MessageKind::message);
  message.header.signature = signature;
  message.header.number = number;
  message.data = data;
  message.bytes = bytes;
  message.storage = storage;
  lane.unreleased.add(bytes);
  withdraw_credit(lane);  // this header reports it
  lane.unreported = {};
  ++messages_;
  frames_ += lane.key.counts() ? 1U : 0U;
  ++shared_->traffic.sent;
  if (storage == OutMessage::Storage::ring) {
    std::memcpy(const_cast<std::byte*>(data), &message.header,
                sizeof(MessageHeader));  // NOLINT: our ring
    post(message, kPacked, 0);
  } else {
    post(message, kPlain, asks_first(message) ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
  }
}

bool UcxOutbox::post(OutMessage& message, unsigned handler, unsigned flags) noexcept {
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.cb.send = on_sent;
  param.user_data = &message;
  param.flags = flags;
  const bool packed = handler == kPacked;
  message.done = false;
  const auto request =
      shared_->worker->api().am_send(endpoint_->get(), handler, packed ? nullptr : &message.header,
                                     packed ? 0 : sizeof(MessageHeader), message.data,
                                     message.bytes + (packed ? sizeof(MessageHeader) : 0), &param);
  if (UCS_PTR_IS_PTR(request)) {
    ++under_way(message);
    return true;
  }
  const ucs_status_t status = UCS_PTR_RAW_STATUS(request);
  // No thread needs a notification: the sender on a lane checks the lane anyway. Only retry() sends
  // from another lane's thread, and it sends only credits, for which no user of a lane waits.
  sent(message, status);
  return status == UCS_OK;
}

// Sends a message without a lane: only a header.
bool UcxOutbox::post_word(OutMessage& word, const MessageHeader& header) noexcept {
  word.header = header;
  word.data = reinterpret_cast<const std::byte*>(&word.header);
  word.bytes = 0;
  ++shared_->traffic.sent;
  return post(word, kPacked, 0);
}

void UcxOutbox::on_sent(void* request, ucs_status_t status, void* context) {
  OutMessage& message = *static_cast<OutMessage*>(context);
  UcxOutbox& outbox = *message.outbox;
  UcxLane* const lane = message.lane;
  outbox.shared_->worker->api().request_free(request);
  --outbox.under_way(message);
  outbox.sent(message, status);
  if (lane != nullptr) {
    outbox.shared_->tell(lane);
    outbox.lanes_->finish(lane);
  }
}

// Notes that UCX no longer needs a message's memory.
void UcxOutbox::sent(OutMessage& message, ucs_status_t status) noexcept {
  message.done = true;
  fetched_ += asks_first(message) ? 1U : 0U;
  if (status != UCS_OK) {
    endpoint_->mark_broken(status);
  }
  if (message.storage == OutMessage::Storage::slot) {
    shared_->out_slots.give_back(message.data);
  }
  if (message.lane != nullptr) {
    drain(*message.lane);
  }
}

void UcxOutbox::drain(UcxLane& lane) noexcept {
  const std::uint32_t before = lane.drained.load(std::memory_order_relaxed);
  std::uint32_t drained = before;
  for (; drained != lane.sent && lane.outgoing(drained).done; ++drained) {
    const OutMessage& message = lane.outgoing(drained);
    if (message.storage == OutMessage::Storage::ring) {
      lane.out_ring.release(message.data, sizeof(MessageHeader) + message.bytes);
    }
  }
  if (drained != before) {
    lane.drained.store(drained, std::memory_order_release);
    open_window(lane);
  }
}

bool UcxOutbox::take_credit(UcxLane& lane, std::uint32_t released) noexcept {
  const std::uint32_t more = released - lane.told;
  if (static_cast<std::int32_t>(more) <= 0) {
    return true;  // a later message reported it before
  }
  if (more > lane.sent - lane.told) {
    return false;
  }
  lane.told = released;
  if (open_window(lane)) {
    shared_->tell(&lane);
  }
  return true;
}

// Returns to the window the messages that the peer and UCX have released. Returns true if there
// were any.
bool UcxOutbox::open_window(UcxLane& lane) noexcept {
  const std::uint32_t drained = lane.drained.load(std::memory_order_relaxed);
  bool more = false;
  for (; lane.released != lane.told && lane.released != drained; ++lane.released) {
    lane.unreleased.remove(lane.outgoing(lane.released).bytes);
    more = true;
  }
  return more;
}

void UcxOutbox::withdraw_credit(UcxLane& lane) noexcept {
  credits_due_ -= lane.credit_due ? 1 : 0;
  lane.credit_due = false;
}

void UcxOutbox::send_credit(UcxLane& lane) noexcept {
  if (!lane.credit_due) {
    lane.credit_due = true;
    ++credits_due_;
  }
  if (!lane.credit.done || endpoint_->is_gone() || !endpoint_->is_open()) {
    return;  // retry() sends it
  }
  withdraw_credit(lane);
  lane.unreported = {};
  ++messages_;
  frames_ += lane.key.counts() ? 1U : 0U;
  post_word(lane.credit, header_of(&lane, MessageKind::credit));
}

void UcxOutbox::retry() noexcept {
  if (credits_due_ == 0) {
    return;
  }
  for (UcxLane* const lane : lanes_->in_turn()) {
    if (lane->credit_due) {
      send_credit(*lane);
    }
  }
}

std::uint64_t UcxOutbox::frames() const noexcept {
  const auto& lanes = lanes_->in_turn();
  const auto due = std::count_if(lanes.begin(), lanes.end(), [](const UcxLane* lane) {
    return lane->credit_due && lane->key.counts();
  });
  return frames_ + static_cast<std::uint64_t>(due);
}

bool UcxOutbox::looks_at_shared(const UcxLane& lane) noexcept {
  return std::any_of(lane.out.begin(), lane.out.end(), [](const OutMessage& one) {
    return !one.done && one.storage == OutMessage::Storage::shared;
  });
}

void UcxOutbox::close(UcxLane& lane) noexcept {
  if (lane.reserved != nullptr) {
    shared_->out_slots.give_back(std::exchange(lane.reserved, nullptr));
  }
  withdraw_credit(lane);
}

}  // namespace unisono::ucx
