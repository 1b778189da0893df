#include "bootstrap/net_mesh.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "base/asking.h"
#include "bootstrap/meet.h"
#include "bootstrap/probe.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

// Interval between checks of connected ranks.
constexpr std::int64_t kLookMs = 50;
// A rank gives up if all ranks that it still needs have refused it for this time, for a reason that
// lasts.
constexpr std::int64_t kInVainMs = 5000;
// Time before a rank starts to probe ranks that have not called.
constexpr std::int64_t kPatienceMs = 200;
// A rank that has found a dead rank stays visible for this time. The others then find the dead rank
// themselves, and do not blame this rank, which leaves because of the death.
constexpr std::int64_t kFarewellMs = 300;

[[noreturn]] void fail(const Acceptor& acceptor, const std::deque<Dial>& dials,
                       const Channels& streams, const std::vector<std::vector<Address>>& addresses,
                       int rank, const std::set<std::size_t>& lost, std::int64_t waited_ms) {
  std::string missing;
  bool refused_in_words = acceptor.has_refused_a_rank();
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
    std::string why = lost.count(peer) != 0 ? "it was connected, then closed the connection"
                                            : "it did not connect";
    for (const Dial& dial : dials) {
      if (dial.wanted().peer == static_cast<int>(peer) && !dial.done()) {
        why = dial.obstacle();
        refused_in_words |= dial.is_refused();
      }
    }
    missing += (missing.empty() ? "rank " : "; rank ") + std::to_string(peer) + " at " +
               addresses[peer].front().text() + ": " + why;
  }
  std::string refused;
  for (const std::string& line : acceptor.refusals()) {
    refused += (refused.empty() ? "; turned away: " : "; ") + line;
  }
  throw Error(ErrorCode::connection,
              "rank " + std::to_string(rank) + " connected to " + std::to_string(there) + " of " +
                  std::to_string(wanted) + " ranks in " + std::to_string(waited_ms) +
                  " ms (missing: " + missing + refused + ")\n" +
                  (refused_in_words
                       ? kAlike
                       : "check that these ranks run, and that no firewall blocks their ports"));
}

void check_protection(const Identity& self, const std::vector<std::vector<Address>>& addresses) {
  for (const std::vector<Address>& candidates : addresses) {
    const bool far = std::any_of(candidates.begin(), candidates.end(),
                                 [](const Address& one) { return !one.is_loopback(); });
    if (self.token.empty() && far) {
      throw Error(ErrorCode::config,
                  "there are ranks on other hosts, but no token: anybody could join the job"
                  "\nset UNISONO_TOKEN on all ranks, or start them with unisono run");
    }
  }
  if (!self.protection.tls) {
    return;
  }
  if (self.token.empty()) {
    throw Error(ErrorCode::config,
                "UNISONO_TLS=1 needs a job token, from which the key is derived, but there is none"
                "\nset UNISONO_TOKEN on all ranks, or start them with unisono run");
  }
  if (const std::string problem = why_no_tls(); !problem.empty()) {
    throw Error(ErrorCode::config,
                "UNISONO_TLS=1, but " + problem + "\ninstall OpenSSL 3 (Debian: libssl3)");
  }
}

// The connections while they are made and lost. Before all ranks have connected, a rank may die and
// be restarted, or may give up although an answer is in transit.
class Meeting {
 public:
  Meeting(Acceptor& acceptor, const Identity& self,
          const std::vector<std::vector<Address>>& addresses, const MeetOptions& options)
      : acceptor_(acceptor),
        self_(self),
        addresses_(addresses),
        streams_(addresses.size()),
        look_for_(options.all_listen && !options.relay),
        look_for_ms_(clock_ms() + kPatienceMs) {
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
  // Returns true if all missing ranks have refused this rank for so long that waiting is in vain.
  bool is_hopeless(std::int64_t now_ms) const {
    std::size_t refused = 0;
    for (const Dial& dial : dials_) {
      refused += !is_there(dial.wanted()) && dial.refused_for_ms(now_ms) > kInVainMs ? 1U : 0U;
    }
    return missing_ != 0 && refused == missing_;
  }
  void step(std::int64_t now_ms) {
    if (now_ms >= look_ms_) {
      look_ms_ = now_ms + kLookMs;
      drop_the_dead(now_ms);
    }
    acceptor_.step(now_ms);
    for (Admitted& admitted : acceptor_.take_admitted()) {
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
    if (look_for_) {
      look_for_missing(now_ms);
    }
  }
  // Throws if ranks have been dead for so long that all other ranks know it.
  void throw_if_dead(std::int64_t now_ms) const {
    // If several ranks are dead, the first one is the cause, because ranks that found it dead leave
    // as well. A vanished host is detected later than a refusal, so the vanished host may be the
    // reason why the refusing rank left.
    const auto first =
        std::min_element(dead_.begin(), dead_.end(), [](const auto& one, const auto& other) {
          return std::pair(!one.second.vanished, one.second.since_ms) <
                 std::pair(!other.second.vanished, other.second.since_ms);
        });
    if (first == dead_.end() || now_ms < first->second.known_ms + kFarewellMs) {
      return;
    }
    const auto& [rank, death] = *first;
    const Address& address = addresses_[static_cast<std::size_t>(rank)].front();
    if (death.vanished) {
      throw_vanished(self_.rank, rank, address);
    }
    if (!any_in_doubt(now_ms)) {
      throw_lost(self_.rank, rank, address);
    }
  }
  void throw_if_starved(std::int64_t now_ms) const {
    std::int64_t for_ms = 0;
    std::size_t dialled = 0;
    for (const Dial& dial : dials_) {
      if (!is_there(dial.wanted())) {
        ++dialled;
        for_ms = std::max(for_ms, dial.starved_for_ms(now_ms));
      }
    }
    if (missing_ > dialled) {
      for_ms = std::max(for_ms, acceptor_.starved_for_ms(now_ms));
    }
    if (for_ms > comm::kStarvedMs) {
      throw Error(ErrorCode::resource,
                  "rank " + std::to_string(self_.rank) +
                      " cannot connect to the other ranks: " + kNoDescriptor +
                      "\nraise the limit of open files (ulimit -n): a rank needs about " +
                      std::to_string(self_.streams) + " for each rank of another host",
                  {.rank = self_.rank});
    }
  }
  // Waits until something happens, or until `end_ms`.
  void wait(std::int64_t end_ms) const {
    std::vector<pollfd> entries;
    std::int64_t next_ms = std::min(end_ms, look_ms_);
    for (const Dial& dial : dials_) {
      if (!is_there(dial.wanted())) {
        dial.add_events(entries);
        next_ms = std::min(next_ms, dial.next_ms());
      }
    }
    for (const auto& [rank, monitor] : monitors_) {
      monitor.add_events(entries);
      next_ms = std::min(next_ms, monitor.next_ms());
    }
    if (look_for_ && missing_ != 0 && monitors_.empty()) {
      next_ms = std::min(next_ms, look_for_ms_);
    }
    acceptor_.add_events(entries);
    const std::int64_t acceptor_ms = acceptor_.next_deadline_ms();
    next_ms = acceptor_ms < 0 ? next_ms : std::min(next_ms, acceptor_ms);
    ::poll(entries.data(), entries.size(),
           static_cast<int>(std::max<std::int64_t>(next_ms - clock_ms(), 0)));
  }
  Channels take() { return std::move(streams_); }
  // Removes and returns the ranks that have all their streams.
  Channels take_complete() {
    for (std::size_t peer = 0; peer < streams_.size(); ++peer) {
      if (lacks(peer)) {
        streams_[peer].clear();
      }
    }
    return std::move(streams_);
  }
  [[noreturn]] void fail(std::int64_t waited_ms) const {
    unisono::tcp::fail(acceptor_, dials_, streams_, addresses_, self_.rank, lost_, waited_ms);
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
        acceptor_.let_again(gone);
        for (Dial& dial : dials_) {
          if (dial.wanted().peer == gone.peer && dial.wanted().stream == gone.stream) {
            dial.again(now_ms);
          }
        }
      }
    }
  }

  bool lacks(std::size_t peer) const {
    const auto& streams = streams_[peer];
    return std::any_of(streams.begin(), streams.end(), [](const Channel& one) { return !one; });
  }
  // Returns true if only a separate probe can detect this rank's death. For a rank that this rank
  // dials, a refused dial detects it; for a connected rank, the connection does.
  bool needs_monitor(std::size_t peer, std::int64_t now_ms) const {
    const auto rank = static_cast<int>(peer);
    if (const auto found = monitors_.find(rank);
        found != monitors_.end() && found->second.is_in_doubt(now_ms)) {
      return true;
    }
    if (!lacks(peer)) {
      return !streams_[peer].empty() && is_unheard(streams_[peer].front().get(), kUnheardMs);
    }
    if (rank > self_.rank) {
      return now_ms >= look_for_ms_ || lost_.count(peer) != 0;
    }
    return any_dial(rank, [](const Dial& dial) { return dial.is_unanswered(); });
  }
  bool any_in_doubt(std::int64_t now_ms) const {
    return std::any_of(monitors_.begin(), monitors_.end(),
                       [&](const auto& monitor) { return monitor.second.is_in_doubt(now_ms); });
  }
  template <typename Is>
  bool any_dial(int rank, const Is& is) const {
    return std::any_of(dials_.begin(), dials_.end(), [&](const Dial& dial) {
      return dial.wanted().peer == rank && !is_there(dial.wanted()) && is(dial);
    });
  }
  void look_for_missing(std::int64_t now_ms) {
    for (std::size_t peer = 0; peer < streams_.size(); ++peer) {
      const auto rank = static_cast<int>(peer);
      HostMonitor* monitor = nullptr;
      if (needs_monitor(peer, now_ms)) {
        monitor = &monitors_.try_emplace(rank, addresses_[peer]).first->second;
        monitor->step(now_ms);
      } else {
        monitors_.erase(rank);
      }
      // A connected rank need not listen any longer.
      const bool nobody_listens =
          lacks(peer) && ((monitor != nullptr && monitor->nobody_listens()) ||
                          any_dial(rank, [](const Dial& dial) { return dial.nobody_listens(); }));
      if (monitor != nullptr && monitor->host_is_gone(now_ms)) {
        dead_.try_emplace(rank, Death{.since_ms = now_ms - monitor->silent_for_ms(now_ms),
                                      .known_ms = now_ms,
                                      .vanished = true});
      } else if (nobody_listens) {
        dead_.try_emplace(rank, Death{.since_ms = now_ms, .known_ms = now_ms});
      } else {
        dead_.erase(rank);
      }
    }
  }

  struct Death {
    std::int64_t since_ms = 0;  // when the first failed probe was
    std::int64_t known_ms = 0;
    bool vanished = false;  // with its host; else nobody listens at its port
  };

  Acceptor& acceptor_;
  const Identity& self_;
  const std::vector<std::vector<Address>>& addresses_;
  Channels streams_;
  std::deque<Dial> dials_;
  std::size_t missing_ = 0;
  std::set<std::size_t> lost_;  // ranks that were connected before
  std::int64_t look_ms_ = 0;
  bool look_for_;
  std::int64_t look_for_ms_;
  std::map<int, HostMonitor> monitors_;  // of ranks in doubt
  std::map<int, Death> dead_;
};

}  // namespace

Channels meet(Acceptor& acceptor, const Identity& self,
              const std::vector<std::vector<Address>>& addresses, const MeetOptions& options) {
  check_protection(self, addresses);
  Meeting meeting(acceptor, self, addresses, options);
  const std::int64_t since_ms = clock_ms();
  const std::int64_t end_ms = since_ms + options.timeout_ms;
  const std::function<bool()> interrupted = ten_times_a_second(options.interrupted);
  for (;;) {
    const std::int64_t now_ms = clock_ms();
    meeting.step(now_ms);
    if (meeting.complete()) {
      return meeting.take();
    }
    try {
      meeting.throw_if_dead(now_ms);
    } catch (const Error& error) {
      if (options.tell != nullptr) {
        options.tell(meeting.take_complete(), error);
      }
      throw;
    }
    meeting.throw_if_starved(now_ms);
    if (now_ms >= end_ms || meeting.is_hopeless(now_ms)) {
      meeting.fail(now_ms - since_ms);
    }
    if (interrupted != nullptr && interrupted()) {
      throw Error(ErrorCode::aborted, "the rendezvous of the ranks was interrupted");
    }
    meeting.wait(interrupted == nullptr ? end_ms : std::min(end_ms, now_ms + kAskMs));
  }
}

}  // namespace unisono::tcp
