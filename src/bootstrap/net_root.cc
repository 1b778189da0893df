#include "bootstrap/net_root.h"

#include <algorithm>
#include <map>

#include "base/asking.h"
#include "bootstrap/absence.h"
#include "bootstrap/meet.h"
#include "bootstrap/text_exchange.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

// A rank that closes before it has sent its card may have given up just before the answer came. If
// it does not connect again within this time, it is gone.
constexpr int kComesAgainMs = 800;

class Host {
 public:
  Host(tcp::Acceptor& rendezvous, const BusinessCard& mine, const ConnectOptions& options)
      : rendezvous_(rendezvous),
        size_(options.size),
        absence_check_(options.job, options.size),
        exchange_(rendezvous, size_, kMostCardBytes),
        interrupted_(ten_times_a_second(options.interrupted)),
        deadline_(Deadline::of_timeout(options.connect_timeout_ms).asking(interrupted_)),
        known_(static_cast<std::size_t>(size_), false),
        settled_(static_cast<std::size_t>(size_), false),
        cards_(static_cast<std::size_t>(size_)) {
    join_request_.size = size_;
    known_[0] = true;
    cards_[0] = mine;
  }

  std::vector<BusinessCard> collect() {
    while (count_ < size_) {
      if (deadline_.is_interrupted()) {
        fail(ErrorCode::aborted, "rank 0 was interrupted before all ranks were there");
      }
      check_ranks();
      check_absent();
      if (deadline_.passed()) {
        fail_missing();
      }
      if (silent_.passed() && !said_waiting_) {
        said_waiting_ = true;
        say_waiting("joined " + std::to_string(count_) + " of " + std::to_string(size_) +
                    ", still waiting for " + missing());
      }
      int wait_ms = said_waiting_ ? 1000 : std::min(1000, silent_.left_ms());
      wait_ms = absence_check_.has_log() ? std::min(wait_ms, kAskMs) : wait_ms;
      for (const auto& [rank, until] : away_) {
        wait_ms = exchange_.is_here(rank) ? wait_ms : std::min(wait_ms, until.left_ms());
      }
      wait_ms = deadline_.poll_ms() < 0 ? wait_ms : std::min(wait_ms, deadline_.poll_ms());
      exchange_.wait(wait_ms);
      for (const TextExchange::Received& received : exchange_.receive()) {
        take(received);
      }
    }
    if (const std::string what = find_unreachable(cards_); !what.empty()) {
      fail(ErrorCode::config, what);
    }
    exchange_.tell(to_table(cards_), Deadline::earlier(Deadline::after_ms(10'000), deadline_));
    return cards_;
  }

 private:
  void take(const TextExchange::Received& received) {
    const auto at = static_cast<std::size_t>(received.rank);
    if (received.hung_up && !known_[at]) {
      away_.erase(received.rank);
      away_.try_emplace(received.rank, Deadline::after_ms(kComesAgainMs));
      return;
    }
    if (received.hung_up) {
      fail_without(received.rank);
    }
    away_.erase(received.rank);
    known_[at] = true;
    ++count_;
    cards_[at] = read_card(received.rank, received.text);
  }

  void check_ranks() {
    for (const auto& [rank, until] : away_) {
      if (until.passed() && !exchange_.is_here(rank)) {
        fail_without(rank);
      }
    }
    if (rendezvous_.starved_for_ms(tcp::clock_ms()) > kStarvedMs) {
      fail(ErrorCode::resource,
           "rank 0 cannot accept the other ranks: it has no free file descriptor"
           "\nraise the limit of open files (ulimit -n): rank 0 needs about two per other rank");
    }
  }

  void check_absent() {
    const Absence absence = absence_check_.find(
        [this](int rank) { return rank < size_ && !known_[static_cast<std::size_t>(rank)]; });
    for (const int rank : absence.ranks) {
      settled_[static_cast<std::size_t>(rank)] = true;
    }
    if (absence.rank >= 0) {
      fail(ErrorCode::connection, absence.message, absence.rank);
    }
  }

  [[noreturn]] void fail_without(int rank) {
    settled_[static_cast<std::size_t>(rank)] = true;
    fail(ErrorCode::connection,
         "rank " + std::to_string(rank) +
             " closed its connection during the rendezvous\nlook at its last output",
         rank);
  }

  BusinessCard read_card(int rank, const std::string& text) {
    try {
      return parse_card(text);
    } catch (const Error&) {
      fail(ErrorCode::corrupt, "rank " + std::to_string(rank) +
                                   " sent an address card that cannot be read\nuse the same "
                                   "version of unisono on all ranks");
    }
  }

  [[noreturn]] void fail(ErrorCode code, const std::string& message, int at_fault = -1) {
    tell_all(error_text(code, message));
    throw Error(code, message, {.rank = 0, .peer = at_fault});
  }

  // Ranks start at about the same time, so a rank that comes slightly late also gets the reason;
  // otherwise it would look for rank 0 in vain.
  void tell_all(const std::string& why) {
    // An interruption must not change this time.
    const Deadline end = Deadline::earlier(deadline_.asking(nullptr), Deadline::after_ms(kLateMs));
    settled_[0] = true;
    for (;;) {
      for (const int rank : exchange_.tell(why, Deadline::after_ms(kLateMs))) {
        settled_[static_cast<std::size_t>(rank)] = true;
      }
      if (std::find(settled_.begin(), settled_.end(), false) == settled_.end() || end.passed()) {
        return;
      }
      exchange_.wait(end.poll_ms());
      for (const TextExchange::Received& received : exchange_.receive()) {
        settled_[static_cast<std::size_t>(received.rank)] =
            settled_[static_cast<std::size_t>(received.rank)] || received.hung_up;
      }
    }
  }

  std::string missing() const {
    std::string names;
    int count = 0;
    for (int rank = 1; rank < size_; ++rank) {
      if (!known_[static_cast<std::size_t>(rank)] && ++count <= 16) {
        names += (names.empty() ? "" : ", ") + std::to_string(rank);
      }
    }
    return (count > 1 ? "ranks " : "rank ") + names +
           (count > 16 ? " and " + std::to_string(count - 16) + " more" : "");
  }

  [[noreturn]] void fail_missing() {
    std::string message = "joined " + std::to_string(count_) + " of " + std::to_string(size_) +
                          "; missing " + missing() + " after " + waited(join_request_);
    std::string refused;
    for (const std::string& line : rendezvous_.refusals()) {
      refused += (refused.empty() ? "" : "; ") + line;
    }
    message += refused.empty() ? "" : " (turned away: " + refused + ")";
    fail(ErrorCode::connection,
         message + "\n" +
             (rendezvous_.has_refused_a_rank()
                  ? tcp::kAlike
                  : "check that these ranks run, have the same UNISONO_TOKEN and can reach " +
                        rendezvous_.address().text()));
  }

  tcp::Acceptor& rendezvous_;
  int size_;
  AbsenceCheck absence_check_;
  TextExchange exchange_;
  JoinRequest join_request_;
  std::function<bool()> interrupted_;
  Deadline deadline_;
  Deadline silent_ = Deadline::after_ms(kSilentMs);
  bool said_waiting_ = false;
  std::vector<bool> known_;    // by rank: its card has arrived
  std::vector<bool> settled_;  // after a failure: the rank has been told, or is gone
  std::vector<BusinessCard> cards_;
  std::map<int, Deadline> away_;  // ranks that closed without a card: until when they may be back
  int count_ = 1;                 // number of cards
};

}  // namespace

std::vector<BusinessCard> collect_cards(tcp::Acceptor& rendezvous, const BusinessCard& mine,
                                        const ConnectOptions& options) {
  return Host(rendezvous, mine, options).collect();
}

}  // namespace unisono::comm
