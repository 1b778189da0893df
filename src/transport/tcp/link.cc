#include "transport/tcp/link.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/tcp/socket.h"

namespace unisono::tcp {
namespace {

constexpr std::int64_t kHalfDeadUs = 1'000'000;

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

Lane* TcpLink::open(const transport::LaneKey& key) noexcept {
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
  receive();  // the peer may have reported room
  return outbox_.has_room(lane, bytes);
}

// Sends a short message. Longer messages would not fit into the ring.
bool TcpLink::send(Lane& lane, const void* data, std::size_t bytes,
                   std::uint64_t signature) noexcept {
  if (!transport::is_short(bytes) || !has_room(lane, bytes)) {
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

// The system may detect a death on one stream and not on the others. Then the link fails after a
// while.
void TcpLink::look_for_loss(std::int64_t now_us, int silence_ms) noexcept {
  if (health_.gone()) {
    return;
  }
  receive();
  const bool half_dead =
      !health_.gone() && std::any_of(streams_.begin(), streams_.end(),
                                     [](const LinkStream& one) { return one.ended || one.broken; });
  half_us_ = !half_dead ? 0 : half_us_ == 0 ? now_us : half_us_;
  if (half_us_ != 0 && now_us - half_us_ > kHalfDeadUs) {
    fail_half_dead();
  }
  for (const LinkStream& one : streams_) {
    if (!health_.gone() && is_silent(one.channel.get(), silence_ms)) {
      health_.fail(Reason::reset, ETIMEDOUT);
    }
  }
}

void TcpLink::fail_half_dead() noexcept {
  for (const LinkStream& one : streams_) {
    if (one.error != 0 && one.error != EPIPE && one.error != ECONNRESET) {
      return health_.fail(Reason::reset, one.error);
    }
  }
  health_.fail(Reason::closed);
}

bool TcpLink::is_delivered(int silence_ms) const noexcept {
  bool waits = health_.waits();
  bool silent = false;
  for (std::size_t i = 0; i < streams_.size() && !health_.gone(); ++i) {
    const int descriptor = streams_[i].channel.get();
    int waiting = 0;
    waits |= ::ioctl(descriptor, SIOCOUTQ, &waiting) == 0 && waiting != 0;
    silent |= is_silent(descriptor, silence_ms);
  }
  return !waits || silent;
}

}  // namespace unisono::tcp
