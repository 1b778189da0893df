#include "membership/net_agreement.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/secret.h"
#include "bootstrap/net_mesh.h"
#include "bootstrap/text_exchange.h"
#include "membership/quorum.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 20;
// Time limits of attempts to reach a rank: of the first attempt, and of the longest one.
constexpr int kSliceMs = 300;
constexpr int kLongestSliceMs = 2000;
constexpr int kNextMs = 5000;         // a coordinator that is late is replaced by the next rank
constexpr int kLateMs = 1000;         // and each following rank has this long to be there
constexpr int kAnswerGraceMs = 3000;  // for an answer, which is given at the end of the time
constexpr int kLookMs = 20;

std::string to_line(const std::vector<int>& ranks) {
  std::string line;
  for (const int rank : ranks) {
    line += std::to_string(rank) + " ";
  }
  return line + "\n";
}

// Removes and parses the first line. Throws corrupt unless it has ascending numbers below `size`.
std::vector<int> take_line(std::string_view& text, int size) {
  std::vector<int> ranks;
  while (!text.empty() && text.front() != '\n') {
    int rank = -1;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, rank);
    const bool ascends = rank > (ranks.empty() ? -1 : ranks.back()) && rank < size;
    if (error != std::errc() || stop == end || *stop != ' ' || !ascends) {
      break;
    }
    ranks.push_back(rank);
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()) + 1);
  }
  if (text.empty() || text.front() != '\n') {
    throw Error(ErrorCode::corrupt,
                "another rank's proposal of the ranks that continue cannot be read");
  }
  text.remove_prefix(1);
  return ranks;
}

std::string new_mark() {
  std::uint64_t mark = 0;
  fill_random(std::as_writable_bytes(std::span(&mark, 1)));
  return std::to_string(mark);
}

std::string answer_text(const AgreedView& answer) {
  return to_line(answer.ranks) + answer.mark + "\n" + to_table(answer.cards);
}

AgreedView parse_answer(std::string_view text, int size) {
  AgreedView answer;
  answer.ranks = take_line(text, size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  answer.mark = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  answer.cards = parse_table(text, static_cast<int>(answer.ranks.size()));
  return answer;
}

class Coordinator {
 public:
  Coordinator(NetAgreement& agreement, const tcp::Identity& self, const Deadline& deadline)
      : agreement_(agreement),
        acceptor_(open(agreement), self),
        exchange_(acceptor_, self.size, kMostCardBytes),
        deadline_(deadline),
        standing_(static_cast<std::size_t>(self.size), RankStatus::absent),
        cards_(static_cast<std::size_t>(self.size)) {
    standing_[static_cast<std::size_t>(self.rank)] = RankStatus::present;
    cards_[static_cast<std::size_t>(self.rank)] = agreement.mine;
    note_last(agreement.last);
  }
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  ~Coordinator() {
    for (const UniqueFd& socket : agreement_.endpoints) {
      tcp::stop_listening(socket.get());
    }
  }

  AgreedView coordinate() {
    while (!is_settled() && !deadline_.passed()) {
      exchange_.wait(kLookMs);
      for (const TextExchange::Received& received : exchange_.receive()) {
        take(received);
      }
    }
    if (!may_go_on()) {
      const std::string why = no_quorum(standing_);
      exchange_.tell(error_text(ErrorCode::evicted, why), Deadline::after_ms(1000));
      throw Error(ErrorCode::evicted, why);
    }
    AgreedView answer;
    answer.ranks = with_status(standing_, RankStatus::present);
    answer.mark = new_mark();
    for (const int rank : answer.ranks) {
      answer.cards.push_back(cards_[static_cast<std::size_t>(rank)]);
    }
    exchange_.tell(answer_text(answer), Deadline::after_ms(kAnswerGraceMs));
    return answer;
  }

 private:
  static std::vector<UniqueFd> open(NetAgreement& agreement) {
    std::vector<UniqueFd> listeners;
    for (const UniqueFd& socket : agreement.endpoints) {
      UniqueFd copy(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
      if (copy && tcp::listen_again(copy.get())) {
        listeners.push_back(std::move(copy));
      }
    }
    if (listeners.empty()) {
      throw Error(ErrorCode::resource,
                  "rank " + std::to_string(agreement.self.rank) +
                      " cannot listen where the other ranks look for it: its ports are in use\nset "
                      "UNISONO_PORTS to a range that nothing else uses");
    }
    return listeners;
  }

  bool is_settled() {
    bool settled = true;
    for (std::size_t rank = 0; rank < standing_.size(); ++rank) {
      const auto number = static_cast<int>(rank);
      if (standing_[rank] == RankStatus::absent && agreement_.is_gone(number)) {
        standing_[rank] = RankStatus::gone;
      }
      settled &= standing_[rank] != RankStatus::absent || is_given_up(number);
    }
    return settled;
  }

  // Returns true if these ranks may continue. The ranks of an earlier answer may have continued, so
  // a smaller part of them must not. Without a quorum, no rank may continue if a rank that has left
  // may have continued.
  bool may_go_on() const {
    if (!agreement_.quorum) {
      const std::vector<int> absent = with_status(standing_, RankStatus::absent);
      return std::none_of(absent.begin(), absent.end(),
                          [&](int rank) { return agreement_.patience_ms(rank) == 0; });
    }
    return has_quorum(standing_) &&
           std::all_of(last_.begin(), last_.end(), [&](const std::vector<int>& ranks) {
             std::vector<RankStatus> of_those;
             for (const int rank : ranks) {
               of_those.push_back(standing_[static_cast<std::size_t>(rank)]);
             }
             return has_quorum(of_those);
           });
  }

  void note_last(const std::vector<int>& ranks) {
    if (!ranks.empty()) {
      last_.insert(ranks);
    }
  }

  bool is_given_up(int rank) const {
    const int patience_ms = agreement_.patience_ms(rank);
    return patience_ms >= 0 && since_.later_by_ms(patience_ms).passed();
  }

  void take(const TextExchange::Received& received) {
    const auto at = static_cast<std::size_t>(received.rank);
    if (received.hung_up) {
      standing_[at] = RankStatus::absent;
      return;
    }
    std::string_view text = received.text;
    const auto size = static_cast<int>(standing_.size());
    // The rank with the least time left sets the limit for all ranks; but a rank with no time left
    // does not end the agreement at once.
    const std::vector<int> left_ms = take_line(text, INT_MAX);
    if (!left_ms.empty()) {
      const int ms = std::max(left_ms.front(), kLateMs);
      deadline_ = Deadline::earlier(deadline_, Deadline::after_ms(ms));
    }
    const std::vector<int> gone = take_line(text, size);
    note_last(take_line(text, size));
    cards_[at] = parse_card(text);
    standing_[at] = RankStatus::present;
    for (const int rank : gone) {
      RankStatus& status = standing_[static_cast<std::size_t>(rank)];
      status = status == RankStatus::absent ? RankStatus::gone : status;
    }
  }

  NetAgreement& agreement_;
  tcp::Acceptor acceptor_;
  TextExchange exchange_;
  Deadline deadline_;
  Deadline since_ = Deadline::after_ms(0);
  std::vector<RankStatus> standing_;
  std::vector<BusinessCard> cards_;
  std::set<std::vector<int>> last_;
};

class Participant {
 public:
  explicit Participant(NetAgreement& agreement)
      : agreement_(agreement),
        self_(agreement.self),
        waited_ms_(static_cast<std::size_t>(agreement.self.size), 0) {
    self_.job += "/agreement";
  }

  AgreedView call() {
    Deadline deadline = Deadline::of_timeout(agreement_.timeout_ms);
    for (;;) {
      const int coordinator = find_coordinator();
      if (coordinator == self_.rank) {
        return Coordinator(agreement_, self_, deadline).coordinate();
      }
      if (auto answer = ask(coordinator, deadline)) {
        return std::move(*answer);
      }
      if (deadline.passed()) {
        waited_ms_[static_cast<std::size_t>(coordinator)] = kForEver;
        most_ms_ = kLateMs;
        deadline = Deadline::after_ms(kNextMs);
      }
    }
  }

 private:
  static constexpr int kForEver = 1 << 30;

  // Returns the lowest rank that may be reachable; this rank itself if there is no other.
  int find_coordinator() const {
    for (int rank = 0; rank < self_.rank; ++rank) {
      const int waited_ms = waited_ms_[static_cast<std::size_t>(rank)];
      const int patience_ms = agreement_.patience_ms(rank);
      if (!agreement_.is_gone(rank) && waited_ms <= (patience_ms < 0 ? most_ms_ : patience_ms)) {
        return rank;
      }
    }
    return self_.rank;
  }

  // Returns nothing if the coordinator is not reachable, or is lost meanwhile.
  std::optional<AgreedView> ask(int coordinator, const Deadline& deadline) {
    std::vector<std::vector<tcp::Address>> addresses(static_cast<std::size_t>(self_.size));
    const auto at = static_cast<std::size_t>(coordinator);
    addresses[at] = agreement_.addresses[at];
    tcp::Acceptor closed(std::vector<UniqueFd>{}, self_);
    tcp::Channel channel;
    const int patience_ms = agreement_.patience_ms(coordinator);
    const int left_ms = deadline.left_ms();
    // A distant or busy rank needs longer to admit this rank.
    const int longer_ms = std::clamp(waited_ms_[at], kSliceMs, kLongestSliceMs);
    const int longest_ms = patience_ms < 0 ? longer_ms : std::clamp(patience_ms, 1, longer_ms);
    const int slice = left_ms < 0 ? longest_ms : std::clamp(left_ms, 1, longest_ms);
    waited_ms_[at] += slice;
    try {
      channel = std::move(tcp::meet(closed, self_, addresses, {.timeout_ms = slice})[at].front());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::connection) {
        throw;
      }
      return std::nullopt;
    }
    std::vector<int> gone;
    for (int rank = 0; rank < self_.size; ++rank) {
      if (rank != self_.rank && agreement_.is_gone(rank)) {
        gone.push_back(rank);
      }
    }
    std::vector<int> time;
    if (deadline.left_ms() >= 0) {
      time.push_back(deadline.left_ms());
    }
    std::string obstacle;
    const auto text = ask_text(
        channel,
        to_line(time) + to_line(gone) + to_line(agreement_.last) + to_text(agreement_.mine),
        kMostBytes, deadline.later_by_ms(kAnswerGraceMs), obstacle);
    if (!text) {
      return std::nullopt;
    }
    return parse_answer(*text, self_.size);
  }

  NetAgreement& agreement_;
  tcp::Identity self_;
  std::vector<int> waited_ms_;  // in vain, by rank
  int most_ms_ = kForEver - 1;  // for a reachable rank
};

}  // namespace

AgreedView agree_over_network(NetAgreement& agreement) {
  return Participant(agreement).call();
}

}  // namespace unisono::comm
