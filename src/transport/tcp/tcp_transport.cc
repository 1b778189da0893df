#include "transport/tcp/tcp_transport.h"

#include <utility>

#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

constexpr std::size_t kInlineBytes = 1024;

}  // namespace

TcpTransport::TcpTransport(Connections& connections, const transport::LaneKey& group,
                           std::vector<int> members, int rank)
    : connections_(connections),
      rank_(rank),
      limits_{.inline_bytes = kInlineBytes,
              .slot_bytes = transport::kMostBytes,
              .multicast = false,
              .through_kernel = true},
      lanes_(members.size()) {
  for (std::size_t member = 0; member < members.size(); ++member) {
    TcpLink* const link = connections.link(members[member]);
    if (static_cast<int>(member) == rank || link == nullptr) {
      continue;
    }
    const std::lock_guard lock(link->mutex);
    lanes_[member] = {.link = link, .lane = link->open(group)};
  }
  for (const Peer& to : lanes_) {
    if (to.link != nullptr && to.lane == nullptr) {
      close();
      throw Error(ErrorCode::resource, "no memory for the lanes of a group");
    }
  }
}

void TcpTransport::close() noexcept {
  for (Peer& to : lanes_) {
    if (to.lane != nullptr) {
      const std::lock_guard lock(to.link->mutex);
      to.link->close(std::exchange(to.lane, nullptr));
    }
  }
}

bool TcpTransport::peek(int lane, transport::Incoming& message) noexcept {
  Peer* const from = peer(lane);
  if (from == nullptr) {
    return false;
  }
  connections_.flush();  // a waiting thread flushes for the others
  const std::lock_guard lock(from->link->mutex);
  return from->link->peek(*from->lane, message);
}

bool TcpTransport::peek_unread(int lane, transport::Incoming& message) noexcept {
  Peer* const from = peer(lane);
  if (from == nullptr) {
    return false;
  }
  connections_.flush();
  const std::lock_guard lock(from->link->mutex);
  return from->link->peek_unread(*from->lane, message);
}

std::size_t TcpTransport::fetch(int lane, std::size_t offset, void* target,
                                std::size_t bytes) noexcept {
  Peer* const from = peer(lane);
  if (from == nullptr) {
    return 0;
  }
  const std::lock_guard lock(from->link->mutex);
  return from->link->fetch(*from->lane, offset, static_cast<std::byte*>(target), bytes);
}

void TcpTransport::release(int lane) noexcept {
  if (Peer* const from = peer(lane)) {
    const std::lock_guard lock(from->link->mutex);
    from->link->release(*from->lane);
  }
}

bool TcpTransport::send(int lane, const void* data, std::size_t bytes,
                        std::uint64_t signature) noexcept {
  Peer* const to = peer(lane);
  if (to == nullptr) {
    return false;
  }
  const std::lock_guard lock(to->link->mutex);
  return to->link->send(*to->lane, data, bytes, signature);
}

std::byte* TcpTransport::reserve(int lane, std::size_t bytes) noexcept {
  Peer* const to = peer(lane);
  if (to == nullptr) {
    return nullptr;
  }
  const std::lock_guard lock(to->link->mutex);
  return to->link->reserve(*to->lane, bytes);
}

void TcpTransport::commit(int lane, std::size_t bytes, std::uint64_t signature) noexcept {
  if (Peer* const to = peer(lane)) {
    const std::lock_guard lock(to->link->mutex);
    to->link->commit(*to->lane, bytes, signature);
  }
}

bool TcpTransport::share(int lane, const void* data, std::size_t bytes,
                         std::uint64_t signature) noexcept {
  Peer* const to = peer(lane);
  if (to == nullptr) {
    return false;
  }
  const std::lock_guard lock(to->link->mutex);
  return to->link->share(*to->lane, data, bytes, signature);
}

bool TcpTransport::flush(int lane) noexcept {
  if (connections_.flush()) {
    return true;
  }
  if (Peer* const to = lane == transport::kEveryLane ? nullptr : peer(lane)) {
    const std::lock_guard lock(to->link->mutex);
    const bool done = to->lane->drained == to->lane->sent && !to->link->has_unsent();
    return done || to->link->health().gone();
  }
  bool all = true;
  for (const Peer& to : lanes_) {
    if (to.lane != nullptr) {
      const std::lock_guard lock(to.link->mutex);
      const bool done = to.lane->drained == to.lane->sent && !to.link->has_unsent();
      all = all && (done || to.link->health().gone());
    }
  }
  return all;
}

transport::Mark TcpTransport::mark(int lane) const noexcept {
  const auto index = static_cast<std::size_t>(lane);
  if (index >= lanes_.size() || lanes_[index].lane == nullptr) {
    return 0;
  }
  const Peer& to = lanes_[index];
  const std::lock_guard lock(to.link->mutex);
  return to.lane->sent;
}

bool TcpTransport::drained(int lane, transport::Mark mark) noexcept {
  Peer* const to = peer(lane);
  if (to == nullptr) {
    return true;
  }
  const std::lock_guard lock(to->link->mutex);
  if (to->link->health().waits()) {
    to->link->flush();
  }
  return static_cast<std::int32_t>(to->lane->drained - mark) >= 0;
}

// Defined in this file, because lanes know the connections, and connections do not know lanes.
std::unique_ptr<transport::Transport> Connections::lanes(std::uint64_t group,
                                                         std::span<const int> members, int rank) {
  return std::make_unique<TcpTransport>(*this, transport::LaneKey{.group = group, .epoch = epoch_},
                                        std::vector<int>(members.begin(), members.end()), rank);
}

}  // namespace unisono::tcp
