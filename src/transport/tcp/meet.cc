#include "transport/tcp/meet.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>

#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

constexpr std::int64_t kFirstPauseMs = 2;
constexpr std::int64_t kLongestPauseMs = 100;
// A listener that does not say a word in this time may be none; try again.
constexpr std::int64_t kAnswerMs = 2 * kHandshakeMs;

std::int64_t clock_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// One stream to one rank, tried until it is there.
class Dial {
 public:
  Dial(const Identity& self, const std::vector<Address>& to, const Wanted& wanted,
       const MeetOptions& options)
      : self_(self), to_(to), wanted_(wanted), options_(options) {}

  void step(std::int64_t now_ms) {
    if (!greeter_ && now_ms >= next_ms_) {
      begin(now_ms);
    }
    if (!greeter_) {
      return;
    }
    if (connecting_) {
      pollfd entry{greeter_->descriptor(), POLLOUT, 0};
      if (::poll(&entry, 1, 0) == 0) {
        return;
      }
      connecting_ = false;
      if (const int error = connect_error(greeter_->descriptor()); error != 0) {
        return retry(now_ms, std::strerror(error));  // NOLINT(concurrency-mt-unsafe)
      }
    }
    const bool there = greeter_->step();
    const Handshake& shake = greeter_->shake();
    if (shake.state() == Handshake::State::refused) {
      // Others may be at that address before or after the rank that is meant.
      refused_ = true;
      return retry(now_ms, shake.problem());
    }
    if (greeter_->finished()) {
      done_ = greeter_->take();
      greeter_.reset();
    } else if (!there || now_ms >= greeter_->deadline_ms()) {
      retry(now_ms, there ? "it does not answer" : "it hung up");
    }
  }
  bool done() const { return static_cast<bool>(done_); }
  UniqueFd take() { return std::move(done_); }
  const Wanted& wanted() const { return wanted_; }
  const Address& to() const { return to_[tried_ % to_.size()]; }
  const std::string& obstacle() const { return obstacle_; }
  // What waiting does not mend.
  bool refused() const { return refused_; }
  void add_events(std::vector<pollfd>& entries) const {
    if (greeter_) {
      entries.push_back({greeter_->descriptor(),
                         connecting_ ? static_cast<short>(POLLOUT) : greeter_->events(), 0});
    }
  }
  std::int64_t next_ms() const { return greeter_ ? greeter_->deadline_ms() : next_ms_; }

 private:
  void begin(std::int64_t now_ms) {
    refused_ = false;
    UniqueFd socket =
        begin_connect(to(), options_.from ? &*options_.from : nullptr, options_.socket);
    if (!socket) {
      return retry(now_ms, std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
    }
    greeter_.emplace(std::move(socket), Handshake::dial(self_, wanted_), now_ms + kAnswerMs);
    connecting_ = true;
  }
  void retry(std::int64_t now_ms, const std::string& why) {
    obstacle_ = why;
    greeter_.reset();
    if (++tried_ % to_.size() != 0) {
      next_ms_ = now_ms;
      return;
    }
    next_ms_ = now_ms + pause_ms_;
    pause_ms_ = std::min(2 * pause_ms_, kLongestPauseMs);
  }

  const Identity& self_;
  const std::vector<Address>& to_;
  std::size_t tried_ = 0;
  Wanted wanted_;
  const MeetOptions& options_;
  std::optional<Greeter> greeter_;
  bool connecting_ = false;
  bool refused_ = false;
  std::int64_t next_ms_ = 0;
  std::int64_t pause_ms_ = kFirstPauseMs;
  std::string obstacle_ = "it was not tried";
  UniqueFd done_;
};

[[noreturn]] void fail(const Gate& gate, const std::deque<Dial>& dials,
                       const std::vector<std::vector<UniqueFd>>& streams,
                       const std::vector<std::vector<Address>>& addresses, int rank,
                       std::int64_t waited_ms) {
  std::string missing;
  int wanted = 0;
  int there = 0;
  for (std::size_t peer = 0; peer < addresses.size(); ++peer) {
    if (addresses[peer].empty() || static_cast<int>(peer) == rank) {
      continue;
    }
    ++wanted;
    const auto open = [](const UniqueFd& socket) { return static_cast<bool>(socket); };
    if (std::all_of(streams[peer].begin(), streams[peer].end(), open)) {
      ++there;
      continue;
    }
    std::string why = "it did not call";
    for (const Dial& dial : dials) {
      if (dial.wanted().peer == static_cast<int>(peer) && !dial.done()) {
        why = dial.obstacle();
      }
    }
    missing += (missing.empty() ? "rank " : "; rank ") + std::to_string(peer) + " at " +
               addresses[peer].front().text() + ": " + why;
  }
  std::string refused;
  for (const std::string& line : gate.refusals()) {
    refused += (refused.empty() ? "; turned away: " : "; ") + line;
  }
  throw Error(
      ErrorCode::connection,
      "rank " + std::to_string(rank) + " connected to " + std::to_string(there) + " of " +
          std::to_string(wanted) + " ranks in " + std::to_string(waited_ms) +
          " ms (missing: " + missing + refused +
          ")\nsee whether these ranks run, and whether a firewall lets their ports through");
}

}  // namespace

std::vector<std::vector<UniqueFd>> meet(Gate& gate, const Identity& self,
                                        const std::vector<std::vector<Address>>& addresses,
                                        const MeetOptions& options) {
  const auto per_peer = static_cast<std::size_t>(self.streams);
  std::vector<std::vector<UniqueFd>> streams(addresses.size());
  std::deque<Dial> dials;
  std::size_t missing = 0;
  for (std::size_t peer = 0; peer < addresses.size(); ++peer) {
    if (addresses[peer].empty() || static_cast<int>(peer) == self.rank) {
      continue;
    }
    streams[peer].resize(per_peer);
    missing += per_peer;
    for (int i = 0; i < self.streams && static_cast<int>(peer) < self.rank; ++i) {
      dials.emplace_back(self, addresses[peer], Wanted{.peer = static_cast<int>(peer), .stream = i},
                         options);
    }
  }
  const std::int64_t since_ms = clock_ms();
  const auto keep = [&](const Wanted& peer, UniqueFd socket) {
    const auto rank = static_cast<std::size_t>(peer.peer);
    const auto stream = static_cast<std::size_t>(peer.stream);
    if (stream < streams[rank].size() && !streams[rank][stream]) {
      streams[rank][stream] = std::move(socket);
      --missing;
    }
  };
  while (missing != 0) {
    const std::int64_t now_ms = clock_ms();
    const std::int64_t end_ms = since_ms + options.timeout_ms;
    if (now_ms >= end_ms) {
      fail(gate, dials, streams, addresses, self.rank, now_ms - since_ms);
    }
    gate.step(now_ms);
    for (Admitted& admitted : gate.take_admitted()) {
      keep(admitted.peer, std::move(admitted.socket));
    }
    std::vector<pollfd> entries;
    std::int64_t next_ms = end_ms;
    for (Dial& dial : dials) {
      const auto peer = static_cast<std::size_t>(dial.wanted().peer);
      const auto stream = static_cast<std::size_t>(dial.wanted().stream);
      if (streams[peer][stream]) {
        continue;
      }
      dial.step(now_ms);
      if (dial.done()) {
        keep(dial.wanted(), dial.take());
        continue;
      }
      dial.add_events(entries);
      next_ms = std::min(next_ms, dial.next_ms());
    }
    if (missing != 0) {
      gate.add_events(entries);
      next_ms = gate.next_deadline_ms() < 0 ? next_ms : std::min(next_ms, gate.next_deadline_ms());
      ::poll(entries.data(), entries.size(),
             static_cast<int>(std::clamp<std::int64_t>(next_ms - clock_ms(), 0, 1000)));
    }
  }
  return streams;
}

}  // namespace unisono::tcp
