#include "network_model/choose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "network_model/repeats.h"
#include "schedule/schedule.h"

namespace unisono::network_model {
namespace {

constexpr double kStep = 1.4142135623730951;  // ratio of two successive sizes that are compared
constexpr double kRounding = 1.0001;

double quickest(const std::vector<double>& times) {
  return *std::min_element(times.begin(), times.end());
}

// Returns the spread of repeated times (network_model/repeats.h), in logarithms, averaged over the
// sizes.
double noise_of(const std::map<double, std::vector<double>>& sizes) {
  double sum = 0;
  for (const auto& [bytes, times] : sizes) {
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    sum += sorted.size() > 1 ? std::log(sorted[1] / sorted[0]) : 0;
  }
  return sum / static_cast<double>(sizes.size());
}

// Returns the number of threads to use, given the times by number of threads. Keeps `current` (0:
// the smallest number) unless another number is worth changing to. Then returns the smallest number
// that is almost as fast as the best.
int quickest_threads(const std::map<int, std::vector<double>>& counts, int current) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [threads, times] : counts) {
    best = std::min(best, quickest(times));
  }
  const auto usual = current == 0 ? counts.begin() : counts.find(current);
  const double noise = std::exp(noise_of({{0, usual->second}}));
  if (quickest(usual->second) <= best * std::max(kWorthChanging, noise)) {
    return usual->first;
  }
  return std::find_if(
             counts.begin(), counts.end(),
             [&](const auto& count) { return quickest(count.second) <= best * kWorthChanging; })
      ->first;
}

// The range of measured sizes of an algorithm.
struct Span {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;

  bool holds(double bytes) const { return least <= bytes * kRounding && bytes <= most * kRounding; }
};

// The algorithms of one collective and rank count.
using Spans = std::map<std::string, Span>;

class Chooser {
 public:
  Chooser(const cost::Machine& machine, const DefaultAlgorithm& default_algorithm,
          Collective collective, int ranks, const Spans& measured)
      : machine_(machine),
        default_(default_algorithm),
        collective_(collective),
        ranks_(ranks),
        worth_changing_(std::max(kWorthChanging, 1 + typical_noise(machine.points(), ranks))),
        measured_(measured) {}

  void add_rows(std::vector<cost::Choice>& rows) const {
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (const auto& [name, span] : measured_) {
      least = std::min(least, span.least);
      most = std::max(most, span.most);
    }
    std::string current;
    double bytes = least;
    while (bytes <= most * kRounding) {
      const std::string chosen = choose(bytes, current);
      if (chosen != current) {
        rows.push_back({.collective = collective_,
                        .ranks = ranks_,
                        .from_bytes = current.empty() ? 0 : std::round(bytes),
                        .algorithm = chosen});
        current = chosen;
      }
      bytes = bytes < 1 ? 1 : bytes * kStep;
    }
    if (most > 0) {  // no barrier
      rows.push_back({.collective = collective_,
                      .ranks = ranks_,
                      .from_bytes = std::round(kBeyond * most),
                      .algorithm = {}});
    }
  }

 private:
  std::string choose(double bytes, const std::string& current) const {
    std::string best;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [name, span] : measured_) {
      if (span.holds(bytes)) {
        const double time = machine_.time_s(collective_, name, ranks_, bytes);
        if (time < least) {
          least = time;
          best = name;
        }
      }
    }
    const auto stays = [&](const std::string& name) {
      const auto found = measured_.find(name);
      return found != measured_.end() && found->second.holds(bytes) &&
             machine_.time_s(collective_, name, ranks_, bytes) <= least * worth_changing_;
    };
    const std::string usual(default_(collective_, ranks_, bytes));
    if (stays(usual)) {
      return usual;
    }
    // For a size without measurements nearby, the choice of the next smaller size is the best
    // estimate.
    return stays(current) || best.empty() ? current : best;
  }

  const cost::Machine& machine_;
  const DefaultAlgorithm& default_;
  Collective collective_;
  int ranks_;
  double worth_changing_;
  const Spans& measured_;
};

}  // namespace

std::vector<cost::Choice> choose_algorithms(const cost::Machine& machine,
                                            const DefaultAlgorithm& default_algorithm) {
  std::map<std::pair<Collective, int>, Spans> measured;
  for (const cost::Point& point : machine.points()) {
    if (!point.algorithm.empty()) {
      Span& span = measured[{plain_form(point.collective), point.ranks}][point.algorithm];
      span.least = std::min(span.least, point.bytes);
      span.most = std::max(span.most, point.bytes);
    }
  }
  std::vector<cost::Choice> rows;
  for (const auto& [key, algorithms] : measured) {
    Chooser(machine, default_algorithm, key.first, key.second, algorithms).add_rows(rows);
  }
  return rows;
}

std::vector<cost::WaitChoice> choose_waits(std::span<const TimedWait> timed) {
  // [ranks, oversubscribed][policy][bytes]
  std::map<std::pair<int, bool>, std::map<WaitPolicy, std::map<double, std::vector<double>>>> all;
  for (const TimedWait& one : timed) {
    all[{one.wait.ranks, one.wait.oversubscribed}][one.wait.policy][one.bytes].push_back(
        one.time_s);
  }
  std::vector<cost::WaitChoice> choices;
  for (const auto& [layout, policies] : all) {
    const WaitPolicy usual = built_in_wait(layout.second);
    if (!policies.contains(usual)) {
      continue;
    }
    cost::WaitChoice choice{
        .ranks = layout.first, .oversubscribed = layout.second, .policy = usual};
    double least = -std::max(std::log(kWorthChanging), noise_of(policies.at(usual)));
    for (const auto& [policy, sizes] : policies) {
      double sum = 0;  // of the logarithms of the time ratios
      int count = 0;
      for (const auto& [bytes, times] : policies.at(usual)) {
        if (const auto found = sizes.find(bytes); found != sizes.end()) {
          sum += std::log(quickest(found->second) / quickest(times));
          ++count;
        }
      }
      if (count > 0 && sum / count < least) {
        least = sum / count;
        choice.policy = policy;
      }
    }
    choices.push_back(choice);
  }
  return choices;
}

std::vector<cost::ThreadChoice> choose_threads(std::span<const TimedThreads> timed) {
  // [collective, ranks][bytes][threads]
  std::map<std::pair<Collective, int>, std::map<double, std::map<int, std::vector<double>>>> all;
  for (const TimedThreads& one : timed) {
    all[{one.of.collective, one.of.ranks}][one.of.from_bytes][one.of.threads].push_back(one.time_s);
  }
  std::vector<cost::ThreadChoice> rows;
  for (const auto& [group, sizes] : all) {
    int current = 0;
    for (const auto& [bytes, counts] : sizes) {
      if (current != 0 && !counts.contains(current)) {
        continue;  // no comparison here: keep the choice of the size below
      }
      const int chosen = quickest_threads(counts, current);
      if (chosen != current) {
        rows.push_back({.collective = group.first,
                        .ranks = group.second,
                        .from_bytes = current == 0 ? 0 : bytes,
                        .threads = chosen});
        current = chosen;
      }
    }
  }
  return rows;
}

}  // namespace unisono::network_model
