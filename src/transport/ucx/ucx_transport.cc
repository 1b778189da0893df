#include "transport/ucx/ucx_transport.h"

#include <algorithm>
#include <utility>

#include "unisono/error.hpp"

namespace unisono::ucx {
namespace {

constexpr std::size_t kInlineBytes = 1024;

// Any sender on the lane may call this, with or without the mutex.
bool is_drained(const UcxLane& lane, transport::Mark mark) noexcept {
  return static_cast<std::int32_t>(lane.drained.load(std::memory_order_acquire) - mark) >= 0;
}

bool is_flushed(const UcxLane& lane) noexcept {
  return is_drained(lane, lane.sent) || lane.link->endpoint().is_gone();
}

}  // namespace

UcxTransport::UcxTransport(UcxConnections& connections, const transport::LaneKey& group,
                           const std::vector<int>& members, int rank)
    : shared_(connections.shared()),
      rank_(rank),
      most_bytes_(shared_.worker->only_copies() ? kEagerBytes : transport::kMostBytes),
      limits_{.inline_bytes = kInlineBytes,
              .slot_bytes = most_bytes_,
              .multicast = false,
              .through_kernel = true},
      lanes_(members.size()) {
  bool enough = true;
  {
    const std::lock_guard lock(shared_.mutex);
    for (std::size_t member = 0; member < members.size(); ++member) {
      UcxLink* const link = connections.link(members[member]);
      if (static_cast<int>(member) != rank && link != nullptr) {
        lanes_[member] = link->open(group);
        enough = enough && lanes_[member] != nullptr;
      }
    }
  }
  if (!enough) {
    close();
    throw Error(ErrorCode::resource, "no memory for the lanes of a group");
  }
}

void UcxTransport::close() noexcept {
  if (std::all_of(lanes_.begin(), lanes_.end(), [](UcxLane* one) { return one == nullptr; })) {
    return;
  }
  const std::lock_guard lock(shared_.mutex);
  for (UcxLane*& one : lanes_) {
    if (one != nullptr) {
      one->link->close(std::exchange(one, nullptr));
    }
  }
}

bool UcxTransport::peek(int number, transport::Incoming& message) noexcept {
  UcxLane* const from = lane(number);
  if (from == nullptr) {
    return false;
  }
  const std::lock_guard lock(shared_.mutex);
  if (from->link->inbox().peek(*from, message)) {
    return true;
  }
  shared_.progress_for(*from);
  return from->link->inbox().peek(*from, message);
}

bool UcxTransport::peek_unread(int number, transport::Incoming& message) noexcept {
  UcxLane* const from = lane(number);
  if (from == nullptr) {
    return false;
  }
  const std::lock_guard lock(shared_.mutex);
  if (from->link->inbox().peek_unread(*from, message)) {
    return true;
  }
  shared_.progress_for(*from);
  return from->link->inbox().peek_unread(*from, message);
}

std::size_t UcxTransport::fetch(int number, std::size_t offset, void* target,
                                std::size_t bytes) noexcept {
  UcxLane* const from = lane(number);
  if (from == nullptr) {
    return 0;
  }
  auto* const to = static_cast<std::byte*>(target);
  const std::lock_guard lock(shared_.mutex);
  if (const std::size_t got = from->link->inbox().fetch(*from, offset, to, bytes)) {
    return got;
  }
  shared_.progress_for(*from);
  return from->link->inbox().fetch(*from, offset, to, bytes);
}

void UcxTransport::release(int number) noexcept {
  if (UcxLane* const from = lane(number)) {
    const std::lock_guard lock(shared_.mutex);
    from->link->inbox().release(*from);
  }
}

bool UcxTransport::send(int number, const void* data, std::size_t bytes,
                        std::uint64_t signature) noexcept {
  UcxLane* const to = lane(number);
  if (to == nullptr) {
    return false;
  }
  const std::lock_guard lock(shared_.mutex);
  return to->link->outbox().send(*to, data, bytes, signature);
}

std::byte* UcxTransport::reserve(int number, std::size_t bytes) noexcept {
  UcxLane* const to = lane(number);
  if (to == nullptr) {
    return nullptr;
  }
  const std::lock_guard lock(shared_.mutex);
  return to->link->outbox().reserve(*to, bytes);
}

void UcxTransport::commit(int number, std::size_t bytes, std::uint64_t signature) noexcept {
  if (UcxLane* const to = lane(number)) {
    const std::lock_guard lock(shared_.mutex);
    to->link->outbox().commit(*to, bytes, signature);
  }
}

bool UcxTransport::share(int number, const void* data, std::size_t bytes,
                         std::uint64_t signature) noexcept {
  UcxLane* const to = lane(number);
  if (to == nullptr) {
    return false;
  }
  const std::lock_guard lock(shared_.mutex);
  return to->link->outbox().share(*to, data, bytes, signature);
}

// Ignores the pending data of others.
bool UcxTransport::flush(int number) noexcept {
  bool all = true;
  for (int i = 0; i < ranks(); ++i) {
    UcxLane* const to = number == transport::kEveryLane || number == i ? lane(i) : nullptr;
    if (to != nullptr && !is_drained(*to, to->sent)) {
      const std::lock_guard lock(shared_.mutex);
      if (!is_flushed(*to)) {
        shared_.progress_for(*to);
        all = is_flushed(*to) && all;
      }
    }
  }
  return all;
}

transport::Mark UcxTransport::mark(int number) const noexcept {
  const UcxLane* const to = lane(number);
  return to == nullptr ? 0 : to->sent;
}

bool UcxTransport::drained(int number, transport::Mark mark) noexcept {
  UcxLane* const to = lane(number);
  if (to == nullptr || is_drained(*to, mark)) {
    return true;
  }
  const std::lock_guard lock(shared_.mutex);
  shared_.progress_for(*to);
  return is_drained(*to, mark);
}

std::unique_ptr<transport::Transport> UcxConnections::lanes(std::uint64_t group,
                                                            std::span<const int> members,
                                                            int rank) {
  return std::make_unique<UcxTransport>(*this, transport::LaneKey{.group = group, .epoch = epoch_},
                                        std::vector<int>(members.begin(), members.end()), rank);
}

}  // namespace unisono::ucx
