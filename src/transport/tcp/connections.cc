#include "transport/tcp/connections.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include "transport/tcp/socket.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

constexpr std::uint64_t kWake = ~std::uint64_t{0};
constexpr std::uint64_t kOther = kWake - 1;
constexpr std::int64_t kLookUs = 100'000;

[[noreturn]] void no_resource(const char* what) {
  throw Error(ErrorCode::resource, std::string("no ") + what + " for the connections: " +
                                       std::strerror(errno) +  // NOLINT(concurrency-mt-unsafe)
                                       "\nraise the limit of open files (ulimit -n)");
}

std::uint64_t name_of(std::size_t rank, std::size_t stream) {
  return rank * kMostStreams + stream;
}

// Returns the link's failure; none if `link` is nullptr, because there is no connection that could
// fail.
Failure failure_of(TcpLink* link) noexcept {
  if (link == nullptr) {
    return {};
  }
  const std::lock_guard lock(link->mutex);
  return link->health().failure();
}

// Falls back to the coarser call if the system, or a container's filter, lacks the finer one.
bool wait_for(int epoll, int timeout_us) noexcept {
  std::array<epoll_event, 1> event;
  timeout_us = std::max(timeout_us, 0);
  const timespec timeout{.tv_sec = timeout_us / 1'000'000,
                         .tv_nsec = long{timeout_us % 1'000'000} * 1000};
  int events = ::epoll_pwait2(epoll, event.data(), 1, &timeout, nullptr);
  if (events < 0 && errno != EINTR) {
    events = ::epoll_wait(epoll, event.data(), 1, (timeout_us + 999) / 1000);
  }
  return events > 0;
}

}  // namespace

Connections::Connections(int rank, Channels channels, const ConnectionsOptions& options)
    : rank_(rank),
      options_(options),
      links_(channels.size()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !wake_) {
    no_resource("epoll descriptor");
  }
  const auto add = [this](int fd, std::uint64_t name) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = name}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      no_resource("place in epoll");
    }
  };
  add(wake_.get(), kWake);
  std::vector<int> sockets;
  events_.waker = wake_.get();
  for (std::size_t peer = 0; peer < channels.size(); ++peer) {
    const std::size_t streams = channels[peer].size();
    if (streams == 0) {
      continue;
    }
    if (streams > kMostStreams) {
      throw Error(ErrorCode::internal, "more streams to a rank than the maximum");
    }
    for (std::size_t i = 0; i < streams; ++i) {
      add(channels[peer][i].get(), name_of(peer, i));
      keep_though_silent(channels[peer][i].get());
      sockets.push_back(channels[peer][i].get());
    }
    links_[peer].for_output.assign(streams, false);
    links_[peer].watched.assign(streams, true);
    links_[peer].link =
        std::make_unique<TcpLink>(static_cast<int>(peer), std::move(channels[peer]),
                                  static_cast<std::uint32_t>(std::max(options.slots, 1)), &events_);
  }
  fork_guard_.emplace(std::move(sockets));
}

Connections::~Connections() = default;

void Connections::wake_for(int descriptor) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kOther}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    no_resource("place in epoll");
  }
}

bool Connections::attend(Entry& entry) noexcept {
  const std::lock_guard lock(entry.link->mutex);
  const bool came = !entry.link->health().failure() && entry.link->receive();
  if (entry.link->health().waits()) {
    entry.link->flush();
  }
  return came;
}

bool Connections::progress() noexcept {
  bool came = false;
  for (Entry& entry : links_) {
    came |= entry.link != nullptr && attend(entry);
  }
  return came;
}

Connections::Traffic Connections::traffic() noexcept {
  Traffic sum;
  for (Entry& entry : links_) {
    if (entry.link != nullptr) {
      const std::lock_guard lock(entry.link->mutex);
      sum.heard += entry.link->bytes_read();
      sum.told += entry.link->bytes_written();
    }
  }
  return sum;
}

bool Connections::push() noexcept {
  bool all = true;
  for (Entry& entry : links_) {
    if (entry.link != nullptr) {
      const std::lock_guard lock(entry.link->mutex);
      all &= !entry.link->health().waits() || entry.link->flush();
    }
  }
  return all;
}

// Registers the events of this link with epoll. REQUIRES: its mutex is held.
void Connections::watch(Entry& entry) noexcept {
  const auto peer = static_cast<std::size_t>(&entry - links_.data());
  for (std::size_t i = 0; i < entry.watched.size(); ++i) {
    const auto stream = static_cast<int>(i);
    const bool ended = entry.link->stream_ended(stream);
    const bool output = entry.link->health().waits() && entry.link->stream_waits(stream) && !ended;
    if (!entry.watched[i] || (output == entry.for_output[i] && !ended)) {
      continue;
    }
    epoll_event event{.events = EPOLLIN | (output ? std::uint32_t{EPOLLOUT} : 0U),
                      .data = {.u64 = name_of(peer, i)}};
    ::epoll_ctl(epoll_.get(), ended ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, entry.link->descriptor(stream),
                &event);
    entry.for_output[i] = output;
    entry.watched[i] = !ended;
  }
}

// Prepares epoll for a sleep. Returns true if something has arrived meanwhile, so that the caller
// must not sleep.
//
// Looks only at links that the system reports, and at all links only if output is pending.
// Therefore the cost of a sleep does not grow with the number of ranks.
bool Connections::arm() noexcept {
  constexpr int kAtOnce = 64;
  std::array<epoll_event, kAtOnce> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), kAtOnce, 0);
  bool came = false;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t name = events[static_cast<std::size_t>(i)].data.u64;
    if (name == kWake) {
      // For all sleeping threads; the last one resets it.
      events_.arrivals.fetch_add(1);
      std::uint64_t rings = 0;
      came |= events_.sleepers.load() != 0 || ::read(wake_.get(), &rings, sizeof(rings)) > 0;
      continue;
    }
    if (name == kOther) {
      came = true;
      continue;
    }
    Entry& entry = links_[static_cast<std::size_t>(name / kMostStreams)];
    came |= attend(entry);
    const std::lock_guard lock(entry.link->mutex);
    watch(entry);
  }
  if (events_.backlogs.load(std::memory_order_relaxed) != 0 ||
      events_.unread.load(std::memory_order_relaxed) != 0) {
    for (Entry& entry : links_) {
      if (entry.link != nullptr) {
        came |= events_.unread.load(std::memory_order_relaxed) != 0 && attend(entry);
        const std::lock_guard lock(entry.link->mutex);
        watch(entry);
      }
    }
  }
  return came;
}

// Does not read the data that ended the sleep. The thread that needs the data reads it, perhaps
// directly into its destination; otherwise arm() reads it in the next call.
bool Connections::wait(int timeout_us) noexcept {
  const std::optional<std::uint32_t> seen = waiters_.seen();
  bool came = arm();
  if (!came) {
    events_.sleepers.fetch_add(1);
    came = events_.arrivals.load() != seen || wait_for(epoll_.get(), timeout_us);
    events_.sleepers.fetch_sub(1);
  }
  waiters_.note_seen(events_.arrivals.load());
  return came;
}

Failure Connections::failure() noexcept {
  const int first = events_.first_failed.load();
  return first < 0 ? Failure{} : failure_of(link(first));
}

transport::Loss Connections::loss_of(int rank) {
  return tcp::loss_of(failure_of(link(rank)));
}

bool Connections::has_left(int rank) noexcept {
  TcpLink* const to = link(rank);
  if (to == nullptr) {
    return false;
  }
  const std::lock_guard lock(to->mutex);
  return to->health().has_left();
}

transport::Frames Connections::frames(int rank) noexcept {
  TcpLink* const to = link(rank);
  if (to == nullptr) {
    return {};
  }
  const std::lock_guard lock(to->mutex);
  return to->frames();
}

std::string Connections::farewell_of(int rank) {
  TcpLink* const to = link(rank);
  if (to == nullptr) {
    return {};
  }
  const std::lock_guard lock(to->mutex);
  return to->health().has_left() ? to->health().farewell() : std::string();
}

std::optional<transport::Network::Abort> Connections::aborted() noexcept {
  for (Entry& entry : links_) {
    if (entry.link == nullptr || events() == 0) {
      continue;
    }
    const std::lock_guard lock(entry.link->mutex);
    if (const std::string* reason = entry.link->health().abort_reason()) {
      return Abort{.peer = entry.link->health().peer(), .reason = *reason};
    }
  }
  return std::nullopt;
}

void Connections::abort(std::string_view reason) noexcept {
  for (Entry& entry : links_) {
    if (entry.link != nullptr) {
      const std::lock_guard lock(entry.link->mutex);
      entry.link->send_abort(reason);
    }
  }
}

void Connections::leave(std::string_view farewell) noexcept {
  for (Entry& entry : links_) {
    if (entry.link != nullptr) {
      const std::lock_guard lock(entry.link->mutex);
      entry.link->send_leave(farewell);
    }
  }
}

bool Connections::delivered(const std::function<bool(int)>& lost, int silence_ms) noexcept {
  flush();
  bool all = true;
  for (Entry& entry : links_) {
    if (entry.link == nullptr || lost(entry.link->health().peer())) {
      continue;
    }
    const std::lock_guard lock(entry.link->mutex);
    all &= entry.link->is_delivered(silence_ms);
  }
  return all;
}

void Connections::begin_epoch(std::uint32_t epoch) noexcept {
  epoch_ = epoch;
  for (Entry& entry : links_) {
    if (entry.link != nullptr) {
      const std::lock_guard lock(entry.link->mutex);
      entry.link->retire_before(epoch);
    }
  }
}

void Connections::look_for_losses() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  look_at_streams(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

void Connections::look_at_streams(std::int64_t now_us) noexcept {
  if (now_us - looked_us_.load(std::memory_order_relaxed) < kLookUs) {
    return;
  }
  looked_us_.store(now_us, std::memory_order_relaxed);
  for (Entry& entry : links_) {
    if (entry.link != nullptr) {
      const std::lock_guard lock(entry.link->mutex);
      entry.link->look_for_loss(now_us, options_.silence_ms);
    }
  }
}

}  // namespace unisono::tcp
