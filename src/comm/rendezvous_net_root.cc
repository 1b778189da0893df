#include "comm/rendezvous_net_root.h"

#include <poll.h>

#include <algorithm>
#include <chrono>

#include "comm/rendezvous_meet.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

std::int64_t clock_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

struct Guest {
  tcp::Channel socket = {};
  TextReader reader = {};
  bool known = false;  // its card is here
};

class Host {
 public:
  Host(tcp::Gate& lobby, const Card& mine, const ConnectOptions& options)
      : lobby_(lobby),
        size_(options.size),
        deadline_(Deadline::of_timeout(options.connect_timeout_ms)),
        guests_(static_cast<std::size_t>(size_)),
        cards_(static_cast<std::size_t>(size_)) {
    invitation_.size = size_;
    guests_[0].known = true;
    cards_[0] = mine;
  }

  std::vector<Card> collect() {
    while (known_ < size_) {
      if (deadline_.passed()) {
        fail_missing();
      }
      if (silent_.passed() && !said_waiting_) {
        said_waiting_ = true;
        say_waiting("joined " + std::to_string(known_) + " of " + std::to_string(size_) +
                    ", still waiting for " + missing());
      }
      wait();
      lobby_.step(clock_ms());
      for (tcp::Admitted& admitted : lobby_.take_admitted()) {
        guests_[static_cast<std::size_t>(admitted.peer.peer)].socket = std::move(admitted.socket);
      }
      for (int rank = 1; rank < size_; ++rank) {
        hear(rank);
      }
    }
    if (const std::string what = find_unreachable(cards_); !what.empty()) {
      fail(ErrorCode::config, what);
    }
    tell(to_table(cards_));
    return cards_;
  }

 private:
  void wait() {
    std::vector<pollfd> entries;
    lobby_.add_events(entries);
    for (const Guest& guest : guests_) {
      if (guest.socket) {
        entries.push_back({guest.socket.get(), POLLIN, 0});
      }
    }
    int wait_ms = said_waiting_ ? 1000 : std::min(1000, silent_.left_ms());
    wait_ms = deadline_.left_ms() < 0 ? wait_ms : std::min(wait_ms, deadline_.left_ms());
    ::poll(entries.data(), entries.size(), wait_ms);
  }

  // A guest says nothing after its card.
  void hear(int rank) {
    Guest& guest = guests_[static_cast<std::size_t>(rank)];
    if (!guest.socket) {
      return;
    }
    using State = TextReader::State;
    const State state = guest.known ? State::done : guest.reader.step(guest.socket, kMostCardBytes);
    if (state == State::closed || (guest.known && has_hung_up(guest.socket))) {
      fail(ErrorCode::connection, "rank " + std::to_string(rank) +
                                      " went away while the ranks met\nlook at its last output");
    }
    if (state == State::done && !guest.known) {
      guest.known = true;
      ++known_;
      cards_[static_cast<std::size_t>(rank)] = read_card(rank, guest.reader.text());
    }
  }

  Card read_card(int rank, const std::string& text) {
    try {
      return parse_card(text);
    } catch (const Error&) {
      fail(ErrorCode::corrupt, "rank " + std::to_string(rank) +
                                   " sent a card that cannot be read\nthe same version of unisono "
                                   "on all ranks");
    }
  }

  void tell(const std::string& text) {
    const Deadline end = Deadline::earlier(Deadline::after_ms(10'000), deadline_);
    for (Guest& guest : guests_) {
      if (guest.socket) {
        send_text(guest.socket, text, end);
      }
    }
  }

  [[noreturn]] void fail(ErrorCode code, const std::string& message) {
    deadline_ = Deadline::after_ms(1000);  // to say so
    tell("E" + std::string(1, static_cast<char>(code)) + message);
    throw Error(code, message);
  }

  std::string missing() const {
    std::string names;
    int count = 0;
    for (int rank = 1; rank < size_; ++rank) {
      if (!guests_[static_cast<std::size_t>(rank)].known && ++count <= 16) {
        names += (names.empty() ? "" : ", ") + std::to_string(rank);
      }
    }
    return (count > 1 ? "ranks " : "rank ") + names +
           (count > 16 ? " and " + std::to_string(count - 16) + " more" : "");
  }

  [[noreturn]] void fail_missing() {
    std::string message = "joined " + std::to_string(known_) + " of " + std::to_string(size_) +
                          "; missing " + missing() + " after " + waited(invitation_);
    std::string refused;
    for (const std::string& line : lobby_.refusals()) {
      refused += (refused.empty() ? "" : "; ") + line;
    }
    message += refused.empty() ? "" : " (turned away: " + refused + ")";
    fail(ErrorCode::connection, message +
                                    "\nsee whether these ranks run, have the same "
                                    "UNISONO_TOKEN and reach " +
                                    lobby_.address().text());
  }

  tcp::Gate& lobby_;
  int size_;
  Invitation invitation_;
  Deadline deadline_;
  Deadline silent_ = Deadline::after_ms(kSilentMs);
  bool said_waiting_ = false;
  std::vector<Guest> guests_;  // by rank
  std::vector<Card> cards_;
  int known_ = 1;
};

}  // namespace

std::vector<Card> collect_cards(tcp::Gate& lobby, const Card& mine, const ConnectOptions& options) {
  return Host(lobby, mine, options).collect();
}

}  // namespace unisono::comm
