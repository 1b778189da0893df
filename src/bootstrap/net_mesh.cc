#include "bootstrap/net_mesh.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <set>

#include "base/asking.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

constexpr std::int64_t kFirstPauseMs = 2;
constexpr std::int64_t kLongestPauseMs = 100;
// A listener that does not say a word in this time may be none; try again.
constexpr std::int64_t kAnswerMs = 2 * kHandshakeMs;
// How often those that are there are looked at.
constexpr std::int64_t kLookMs = 50;
// Who is refused by all that it still wants, for the same lasting reason, gives up after this.
constexpr std::int64_t kInVainMs = 5000;

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
        if (now_ms >= greeter_->deadline_ms()) {
          retry(now_ms, "nothing answers there: a firewall drops it, or the address is wrong");
        }
        return;
      }
      connecting_ = false;
      if (const int error = connect_error(greeter_->descriptor()); error != 0) {
        return retry(now_ms, std::strerror(error));  // NOLINT(concurrency-mt-unsafe)
      }
      if (options_.relay && !ask_relay()) {
        return retry(now_ms, "the relay hung up");
      }
    }
    const bool there = greeter_->step();
    const Handshake& shake = greeter_->shake();
    if (shake.state() == Handshake::State::refused) {
      // Others may be at that address before or after the rank that is meant.
      const bool again = refused_ms_ >= 0 && is_final(shake.refusal());
      refused_ms_ = !is_final(shake.refusal()) ? -1 : again ? refused_ms_ : now_ms;
      return retry(now_ms, shake.problem());
    }
    if (greeter_->finished()) {
      done_ = greeter_->take();
      greeter_.reset();
    } else if (!there || now_ms >= greeter_->deadline_ms()) {
      retry(now_ms, greeter_->tls_failed() ? "the encryption did not come about"
                    : there                ? "it does not answer"
                                           : "it hung up");
    }
  }
  // What it had connected is no more.
  void again(std::int64_t now_ms) { retry(now_ms, "it hung up"); }
  bool done() const { return static_cast<bool>(done_); }
  Channel take() { return std::move(done_); }
  const Wanted& wanted() const { return wanted_; }
  const std::string& obstacle() const { return obstacle_; }
  // For so long it has been refused for what waiting hardly mends.
  std::int64_t refused_for_ms(std::int64_t now_ms) const {
    return refused_ms_ < 0 ? 0 : now_ms - refused_ms_;
  }
  const Address& to() const { return to_[tried_ % to_.size()]; }
  void add_events(std::vector<pollfd>& entries) const {
    if (greeter_) {
      entries.push_back({greeter_->descriptor(),
                         connecting_ ? static_cast<short>(POLLOUT) : greeter_->events(), 0});
    }
  }
  std::int64_t next_ms() const { return greeter_ ? greeter_->deadline_ms() : next_ms_; }

 private:
  void begin(std::int64_t now_ms) {
    UniqueFd socket = begin_connect(options_.relay ? options_.relay->address : to(),
                                    options_.from ? &*options_.from : nullptr, options_.socket);
    if (!socket) {
      return retry(now_ms, std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
    }
    greeter_.emplace(std::move(socket), Handshake::dial(self_, wanted_), now_ms + kAnswerMs);
    connecting_ = true;
  }
  bool ask_relay() const {
    const std::string text = to_text(RelayRequest{.key = options_.relay->key,
                                                  .from = self_.rank,
                                                  .to = wanted_.peer,
                                                  .stream = wanted_.stream,
                                                  .address = to()});
    const ssize_t put = ::send(greeter_->descriptor(), text.data(), text.size(), MSG_NOSIGNAL);
    return put == static_cast<ssize_t>(text.size());  // the first bytes of a socket always fit
  }
  void retry(std::int64_t now_ms, const std::string& why) {
    obstacle_ = why;
    greeter_.reset();
    connecting_ = false;
    if (++tried_ % to_.size() != 0) {
      next_ms_ = now_ms;  // the next of its addresses
      return;
    }
    next_ms_ = now_ms + pause_ms_;
    pause_ms_ = std::min(2 * pause_ms_, kLongestPauseMs);
  }

  static bool is_final(Refusal refusal) {
    return refusal == Refusal::token || refusal == Refusal::version || refusal == Refusal::size ||
           refusal == Refusal::protection;
  }

  const Identity& self_;
  const std::vector<Address>& to_;
  std::size_t tried_ = 0;
  Wanted wanted_;
  const MeetOptions& options_;
  std::optional<Greeter> greeter_;
  bool connecting_ = false;
  std::int64_t refused_ms_ = -1;
  std::int64_t next_ms_ = 0;
  std::int64_t pause_ms_ = kFirstPauseMs;
  std::string obstacle_ = "it was not tried";
  Channel done_;
};

[[noreturn]] void fail(const Gate& gate, const std::deque<Dial>& dials, const Channels& streams,
                       const std::vector<std::vector<Address>>& addresses, int rank,
                       const std::set<std::size_t>& lost, std::int64_t waited_ms) {
  std::string missing;
  int wanted = 0;
  int there = 0;
  for (std::size_t peer = 0; peer < addresses.size(); ++peer) {
    if (addresses[peer].empty() || static_cast<int>(peer) == rank) {
      continue;
    }
    ++wanted;
    const auto open = [](const Channel& socket) { return static_cast<bool>(socket); };
    if (std::all_of(streams[peer].begin(), streams[peer].end(), open)) {
      ++there;
      continue;
    }
    std::string why = lost.count(peer) != 0 ? "it was connected, and hung up" : "it did not call";
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

void check_protection(const Identity& self, const std::vector<std::vector<Address>>& addresses) {
  for (const std::vector<Address>& candidates : addresses) {
    const bool far = std::any_of(candidates.begin(), candidates.end(),
                                 [](const Address& one) { return !one.is_loopback(); });
    if (self.token.empty() && far) {
      throw Error(ErrorCode::config,
                  "ranks on other hosts, and no token: anybody could join the job"
                  "\nset UNISONO_TOKEN on all ranks, or start them with unisono run");
    }
  }
  if (!self.protection.tls) {
    return;
  }
  if (self.token.empty()) {
    throw Error(ErrorCode::config,
                "UNISONO_TLS=1, but the job has no token, and the key comes from it"
                "\nset UNISONO_TOKEN on all ranks, or start them with unisono run");
  }
  if (const std::string problem = why_no_tls(); !problem.empty()) {
    throw Error(ErrorCode::config,
                "UNISONO_TLS=1, but " + problem + "\ninstall OpenSSL 3 (Debian: libssl3)");
  }
}

// The connections as they come, and go again: a rank may die and be started anew, or give up an
// answer that was under way, before all have met.
class Meeting {
 public:
  Meeting(Gate& gate, const Identity& self, const std::vector<std::vector<Address>>& addresses,
          const MeetOptions& options)
      : gate_(gate), self_(self), addresses_(addresses), streams_(addresses.size()) {
    for (std::size_t peer = 0; peer < addresses.size(); ++peer) {
      const auto rank = static_cast<int>(peer);
      if (addresses[peer].empty() || rank == self.rank) {
        continue;
      }
      streams_[peer].resize(static_cast<std::size_t>(self.streams));
      missing_ += streams_[peer].size();
      for (int i = 0; i < self.streams && rank < self.rank; ++i) {
        dials_.emplace_back(self, addresses[peer], Wanted{.peer = rank, .stream = i}, options);
      }
    }
  }

  bool complete() const { return missing_ == 0; }
  // All that is missing has been refused for so long that waiting is in vain.
  bool is_hopeless(std::int64_t now_ms) const {
    std::size_t refused = 0;
    for (const Dial& dial : dials_) {
      refused += !is_there(dial.wanted()) && dial.refused_for_ms(now_ms) > kInVainMs ? 1 : 0;
    }
    return missing_ != 0 && refused == missing_;
  }
  void step(std::int64_t now_ms) {
    if (now_ms >= look_ms_) {
      look_ms_ = now_ms + kLookMs;
      drop_the_dead(now_ms);
    }
    gate_.step(now_ms);
    for (Admitted& admitted : gate_.take_admitted()) {
      keep(admitted.peer, std::move(admitted.socket));
    }
    for (Dial& dial : dials_) {
      if (!is_there(dial.wanted())) {
        dial.step(now_ms);
        if (dial.done()) {
          keep(dial.wanted(), dial.take());
        }
      }
    }
    if (complete()) {
      drop_the_dead(now_ms);
    }
  }
  // Until something happens, or `end_ms`.
  void wait(std::int64_t end_ms) const {
    std::vector<pollfd> entries;
    std::int64_t next_ms = std::min(end_ms, look_ms_);
    for (const Dial& dial : dials_) {
      if (!is_there(dial.wanted())) {
        dial.add_events(entries);
        next_ms = std::min(next_ms, dial.next_ms());
      }
    }
    gate_.add_events(entries);
    const std::int64_t gate_ms = gate_.next_deadline_ms();
    next_ms = gate_ms < 0 ? next_ms : std::min(next_ms, gate_ms);
    ::poll(entries.data(), entries.size(),
           static_cast<int>(std::max<std::int64_t>(next_ms - clock_ms(), 0)));
  }
  Channels take() { return std::move(streams_); }
  [[noreturn]] void fail(std::int64_t waited_ms) const {
    unisono::tcp::fail(gate_, dials_, streams_, addresses_, self_.rank, lost_, waited_ms);
  }

 private:
  Channel* place_of(const Wanted& peer) {
    auto& streams = streams_[static_cast<std::size_t>(peer.peer)];
    const auto stream = static_cast<std::size_t>(peer.stream);
    return stream < streams.size() ? &streams[stream] : nullptr;
  }
  bool is_there(const Wanted& peer) const {
    return static_cast<bool>(
        streams_[static_cast<std::size_t>(peer.peer)][static_cast<std::size_t>(peer.stream)]);
  }
  void keep(const Wanted& peer, Channel socket) {
    Channel* const place = place_of(peer);
    if (place != nullptr && !*place) {
      *place = std::move(socket);
      --missing_;
    }
  }
  void drop_the_dead(std::int64_t now_ms) {
    for (std::size_t peer = 0; peer < streams_.size(); ++peer) {
      for (std::size_t i = 0; i < streams_[peer].size(); ++i) {
        Channel& stream = streams_[peer][i];
        if (!stream || !is_dead(stream.get())) {
          continue;
        }
        stream.reset();
        ++missing_;
        lost_.insert(peer);
        const Wanted gone{.peer = static_cast<int>(peer), .stream = static_cast<int>(i)};
        gate_.let_again(gone);
        for (Dial& dial : dials_) {
          if (dial.wanted().peer == gone.peer && dial.wanted().stream == gone.stream) {
            dial.again(now_ms);
          }
        }
      }
    }
  }

  Gate& gate_;
  const Identity& self_;
  const std::vector<std::vector<Address>>& addresses_;
  Channels streams_;
  std::deque<Dial> dials_;
  std::size_t missing_ = 0;
  std::set<std::size_t> lost_;  // ranks that were there before
  std::int64_t look_ms_ = 0;
};

}  // namespace

Channels meet(Gate& gate, const Identity& self, const std::vector<std::vector<Address>>& addresses,
              const MeetOptions& options) {
  check_protection(self, addresses);
  Meeting meeting(gate, self, addresses, options);
  const std::int64_t since_ms = clock_ms();
  const std::int64_t end_ms = since_ms + options.timeout_ms;
  const std::function<bool()> interrupted = ten_times_a_second(options.interrupted);
  for (;;) {
    const std::int64_t now_ms = clock_ms();
    meeting.step(now_ms);
    if (meeting.complete()) {
      return meeting.take();
    }
    if (now_ms >= end_ms || meeting.is_hopeless(now_ms)) {
      meeting.fail(now_ms - since_ms);
    }
    if (interrupted != nullptr && interrupted()) {
      throw Error(ErrorCode::aborted, "the meeting of the ranks was interrupted");
    }
    meeting.wait(interrupted == nullptr ? end_ms : std::min(end_ms, now_ms + kAskMs));
  }
}

}  // namespace unisono::tcp
