#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "cli/failure.h"
#include "record/numbers.h"
#include "record/views.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kBuckets = 24;

// One operation, with its ranks in the order in which they began it.
struct Operation {
  std::string label = {};
  std::string purpose = {};                        // the program's own label
  std::vector<std::pair<double, int>> begun = {};  // us, rank
};

std::vector<Operation> operations_of(const ordered_json& trace) {
  std::map<std::pair<std::string, std::int64_t>, Operation> found;
  if (trace.contains("ops")) {
    const ordered_json& ops = trace["ops"];
    for (std::size_t row = 0; row < ops.at("rank").size(); ++row) {
      const std::string group =
          ops.contains("group") ? ops["group"].at(row).get<std::string>() : "world";
      const std::int64_t number = whole_at(trace, "ops", "number", row);
      Operation& operation = found[{group, number}];
      operation.label = fmt::format("{} #{} ({})", group, number,
                                    ops.at("collective").at(row).get<std::string>());
      if (ops.contains("label") && !ops["label"].at(row).is_null()) {
        operation.purpose = ops["label"].at(row).get<std::string>();
      }
      operation.begun.emplace_back(
          number_of(ops.at("start_us").at(row), fmt::format("/ops/start_us/{}", row)),
          rank_at(trace, "ops", "rank", row));
    }
  }
  std::vector<Operation> operations;
  for (auto& [key, operation] : found) {
    if (operation.begun.size() > 1) {
      std::sort(operation.begun.begin(), operation.begun.end());
      operations.push_back(std::move(operation));
    }
  }
  std::stable_sort(operations.begin(), operations.end(),
                   [](const Operation& a, const Operation& b) {
                     return a.begun.front().first < b.begun.front().first;
                   });
  return operations;
}

// The uncertainty of each rank's clock; infinite if it is unknown.
class Uncertainty {
 public:
  explicit Uncertainty(const ordered_json& trace)
      : us_(trace.value("clock_uncertainty_us", ordered_json::array())) {}
  double of(int a, int b) const { return of(a) + of(b); }

 private:
  double of(int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    if (rank < 0 || index >= us_.size()) {
      return 0;
    }
    return us_.at(index).is_null() ? HUGE_VAL : us_.at(index).get<double>();
  }
  ordered_json us_;
};

// Returns how much later the last rank of an operation was than the one before it; 0: the clocks
// are too uncertain.
double lateness(const Operation& operation, const Uncertainty& clocks) {
  const auto& [last_us, last] = operation.begun.back();
  const auto& [before_us, before] = operation.begun[operation.begun.size() - 2];
  const double late = last_us - before_us;
  return late > clocks.of(last, before) ? late : 0;
}

// Returns the beginning of the period, up to the end of the recording, in which the rank was last
// in most operations. It maximises the sum from there on, which counts +1 for last and -1
// otherwise. Being last only in the last operation does not count.
std::size_t begin_of_lateness(const std::vector<Operation>& operations, int rank,
                              const Uncertainty& clocks) {
  std::size_t begin = operations.size();
  int sum = 0;
  int most = 0;
  for (std::size_t i = operations.size(); i-- > 0;) {
    const auto& begun = operations[i].begun;
    const bool is_in = std::any_of(begun.begin(), begun.end(),
                                   [rank](const auto& each) { return each.second == rank; });
    if (!is_in) {
      continue;
    }
    sum += begun.back().second == rank && lateness(operations[i], clocks) > 0 ? 1 : -1;
    if (sum >= most && sum > 1) {
      most = sum;
      begin = i;
    }
  }
  return begin;
}

void add_labels(Skew& skew, const std::map<std::string, std::size_t>& operations,
                const std::map<std::string, std::map<int, double>>& held_up) {
  for (const auto& [text, count] : operations) {
    if (text.empty()) {
      continue;
    }
    Skew::Label label{.text = text, .operations = count};
    double most = 0;
    if (const auto found = held_up.find(text); found != held_up.end()) {
      for (const auto& [rank, us] : found->second) {
        label.held_up_us += us;
        if (us > most) {
          most = us;
          label.worst = rank;
        }
      }
    }
    skew.labels.push_back(std::move(label));
  }
  std::stable_sort(
      skew.labels.begin(), skew.labels.end(),
      [](const Skew::Label& a, const Skew::Label& b) { return a.held_up_us > b.held_up_us; });
}

Skew measure(const ordered_json& trace) {
  const std::vector<Operation> operations = operations_of(trace);
  const Uncertainty clocks(trace);
  Skew skew{.operations = operations.size(), .histogram = std::vector<std::size_t>(kBuckets)};
  std::map<int, Skew::Rank> ranks;
  std::map<std::string, std::map<int, double>> held_up;  // by label and rank, us
  std::map<std::string, std::size_t> labelled;
  for (const Operation& operation : operations) {
    for (const auto& [at_us, rank] : operation.begun) {
      ranks[rank].rank = rank;
      ++ranks[rank].operations;
    }
    const auto& [last_us, last] = operation.begun.back();
    const double whole_us = last_us - operation.begun.front().first;
    const auto bucket = std::bit_width(static_cast<std::uint64_t>(std::clamp(whole_us, 0.0, 1e15)));
    ++skew.histogram[std::min(static_cast<std::size_t>(bucket), kBuckets - 1)];
    labelled[operation.purpose] += 1;
    const double late_us = lateness(operation, clocks);
    if (late_us <= 0) {
      continue;
    }
    Skew::Rank& rank = ranks[last];
    ++rank.last;
    rank.late_us += late_us;
    rank.most_us = std::max(rank.most_us, late_us);
    const double all_us = late_us * static_cast<double>(operation.begun.size() - 1);
    rank.held_up_us += all_us;
    held_up[operation.purpose][last] += all_us;
  }
  add_labels(skew, labelled, held_up);
  for (auto& [number, rank] : ranks) {
    rank.late_us /= static_cast<double>(std::max<std::size_t>(rank.last, 1));
    skew.ranks.push_back(rank);
  }
  std::stable_sort(
      skew.ranks.begin(), skew.ranks.end(),
      [](const Skew::Rank& a, const Skew::Rank& b) { return a.held_up_us > b.held_up_us; });
  if (!skew.ranks.empty() && skew.ranks.front().last != 0) {
    const std::size_t begin = begin_of_lateness(operations, skew.ranks.front().rank, clocks);
    if (begin < operations.size()) {
      skew.since = operations[begin].label;
      skew.since_us = operations[begin].begun.front().first;
    }
  }
  return skew;
}

}  // namespace

Skew skew_of(const ordered_json& trace) {
  try {
    return measure(trace);
  } catch (const nlohmann::json::exception&) {
    throw UsageError("the recording is not whole", "as in docs/formats/trace.md",
                     "unisono run --record FILE makes one");
  }
}

}  // namespace unisono::cli
