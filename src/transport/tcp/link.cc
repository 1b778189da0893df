#include "transport/tcp/link.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace unisono::tcp {
namespace {

std::vector<LinkStream> streams_of(std::vector<Channel> channels) {
  std::vector<LinkStream> streams(channels.size());
  for (std::size_t i = 0; i < channels.size(); ++i) {
    streams[i].channel = std::move(channels[i]);
  }
  return streams;
}

}  // namespace

TcpLink::TcpLink(int peer, std::vector<Channel> channels, std::uint32_t slots, LinkEvents* events)
    : health_(peer, events),
      streams_(streams_of(std::move(channels))),
      outbox_(streams_, slots, &lanes_, &health_),
      inbox_(streams_, slots, &lanes_, &health_) {}

Lane* TcpLink::open(const LaneKey& key) noexcept {
  return lanes_.open(key, [&key] { return make_lane(key); });
}

void TcpLink::close(Lane* lane) noexcept {
  inbox_.close(*lane);
  outbox_.close(*lane);
  lanes_.remove(lane);
}

bool TcpLink::has_room(const Lane& lane, std::size_t bytes) noexcept {
  if (outbox_.has_room(lane, bytes)) {
    return true;
  }
  receive();  // the peer may have told of room
  return outbox_.has_room(lane, bytes);
}

// Longer messages have no place in the ring.
bool TcpLink::send(Lane& lane, const void* data, std::size_t bytes,
                   std::uint64_t signature) noexcept {
  if (!is_short(bytes) || !has_room(lane, bytes)) {
    return false;
  }
  outbox_.send(lane, data, bytes, signature);
  return true;
}

std::byte* TcpLink::reserve(Lane& lane, std::size_t bytes) noexcept {
  const bool can = lane.reserved == nullptr && has_room(lane, bytes);
  return can ? outbox_.reserve(lane, bytes) : lane.reserved;
}

bool TcpLink::share(Lane& lane, const void* data, std::size_t bytes,
                    std::uint64_t signature) noexcept {
  if (!has_room(lane, bytes)) {
    return false;
  }
  outbox_.share(lane, data, bytes, signature);
  return true;
}

void TcpLink::release(Lane& lane) noexcept {
  if (inbox_.release(lane)) {
    outbox_.tell_released(lane);
  }
}

bool TcpLink::half_dead() const noexcept {
  return !health_.gone() &&
         std::any_of(streams_.begin(), streams_.end(),
                     [](const LinkStream& one) { return one.ended || one.broken; });
}

void TcpLink::fail_half_dead() noexcept {
  for (const LinkStream& one : streams_) {
    if (one.error != 0 && one.error != EPIPE && one.error != ECONNRESET) {
      return fail(Reason::reset, one.error);
    }
  }
  fail(Reason::closed);
}

}  // namespace unisono::tcp
