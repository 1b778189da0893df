#include "chaos/relay.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace unisono::chaos {
namespace {

std::int64_t clock_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

constexpr std::int64_t kLookUs = 2000;  // how soon it hears of its end

}  // namespace

Relay::Relay(UniqueFd first, UniqueFd second, RelayOptions options)
    : first_(std::move(first)),
      second_(std::move(second)),
      options_(std::move(options)),
      ways_{Way{.from = first_.get(),
                .to = second_.get(),
                .flow = Flow(options_.link, 2 * options_.link.seed, options_.damage)},
            Way{.from = second_.get(),
                .to = first_.get(),
                .flow = Flow(options_.link, 2 * options_.link.seed + 1)}},
      thread_([this] { run(); }) {}

Relay::~Relay() {
  stops_ = true;
  thread_.join();
}

void Relay::run() {
  while (!stops_) {
    const std::int64_t now_us = clock_us();
    if (resets_) {
      return break_off();
    }
    const auto limit = static_cast<std::uint64_t>(options_.mute_after);
    if (options_.mute_after >= 0 && passed_ >= limit) {
      std::this_thread::sleep_for(std::chrono::microseconds(kLookUs));
      continue;
    }
    for (Way& way : ways_) {
      take(way, now_us);
      give(way, now_us);
    }
    if (ways_[0].told && ways_[1].told) {
      over_ = true;
      return;
    }
    wait(now_us);
  }
}

void Relay::take(Way& way, std::int64_t now_us) {
  const std::size_t room = std::min(way.flow.room(), buffer_.size());
  if (way.ended || room == 0) {
    return;
  }
  const ssize_t got = ::recv(way.from, buffer_.data(), room, MSG_DONTWAIT);
  if (got > 0) {
    const std::span<const std::byte> bytes(buffer_.data(), static_cast<std::size_t>(got));
    if (options_.tap) {
      options_.tap(bytes);
    }
    if (&way == ways_.data()) {
      passed_ += bytes.size();
    }
    way.flow.put(bytes, now_us);
  } else {
    way.ended = got == 0 || (errno != EAGAIN && errno != EINTR);
  }
}

void Relay::give(Way& way, std::int64_t now_us) {
  for (auto bytes = way.flow.ready(now_us); !bytes.empty(); bytes = way.flow.ready(now_us)) {
    const ssize_t put = ::send(way.to, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put <= 0) {
      way.told = way.told || (put < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS);
      break;
    }
    way.flow.leave(static_cast<std::size_t>(put));
  }
  if (way.ended && way.flow.is_empty() && !way.told) {
    ::shutdown(way.to, SHUT_WR);
    way.told = true;
  }
}

void Relay::wait(std::int64_t now_us) {
  std::array<pollfd, 2> entries{pollfd{first_.get(), 0, 0}, pollfd{second_.get(), 0, 0}};
  std::int64_t until_us = now_us + kLookUs;
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    const Way& way = ways_[i];
    if (!way.ended && way.flow.room() != 0) {
      entries[i].events = static_cast<short>(entries[i].events | POLLIN);
    }
    if (const auto next_us = way.flow.next_us()) {
      if (*next_us <= now_us) {
        entries[1 - i].events = static_cast<short>(entries[1 - i].events | POLLOUT);
      } else {
        until_us = std::min(until_us, *next_us);
      }
    }
  }
  for (pollfd& entry : entries) {  // a side that hung up would wake it for ever
    entry.fd = entry.events == 0 ? -1 : entry.fd;
  }
  const std::int64_t left_us = std::max<std::int64_t>(until_us - now_us, 0);
  const timespec timeout{.tv_sec = 0, .tv_nsec = static_cast<long>(left_us * 1000)};
  ::ppoll(entries.data(), entries.size(), &timeout, nullptr);
}

void Relay::break_off() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  for (UniqueFd* const socket : {&first_, &second_}) {
    ::setsockopt(socket->get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    socket->reset();
  }
  over_ = true;
}

}  // namespace unisono::chaos
