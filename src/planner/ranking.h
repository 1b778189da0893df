// Collects the layouts of a search: keeps the best ones, and counts the others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/device.h"

namespace unisono::planner {

class Levels;

// A reason for refusing layouts, and the number of layouts that were refused for it.
struct Refusal {
  std::string why = {};
  std::int64_t layouts = 0;
};

template <typename Estimate>
struct Ranking {
  std::vector<Estimate> best = {};  // fastest first
  std::int64_t fitting = 0;
  std::int64_t tried = 0;
  std::vector<Refusal> refused = {};  // most layouts first
  double least_missing_bytes = 0;     // if no layout fits: the missing memory of the layout that
                                      // needs least
  std::string least_missing = {};     // name of that layout
  // The layout that exceeds the time limits least, among those that fit into memory but exceed
  // them.
  std::optional<Estimate> nearest = {};
};

struct SearchOptions {
  std::size_t most = 10;  // number of layouts to keep
  bool tries_uly = true;
  bool tries_pools = false;        // for serving: prompts and answers on separate devices
  bool tries_offload = false;      // to host memory, if nothing else fits
  const Levels* levels = nullptr;  // for training; nullptr: the formula alone
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

inline std::vector<int> divisors(int number, int most) {
  std::vector<int> result;
  for (int i = 1; i <= std::min(number, most); ++i) {
    if (number % i == 0) {
      result.push_back(i);
    }
  }
  return result;
}

// Counts refused layouts, and remembers which one needs the least additional memory.
template <typename Estimate>
class Sieve {
 public:
  Sieve(const Cluster& cluster, const SearchOptions& options)
      : cluster_(cluster), options_(options) {}

  void refuse(const std::string& why) {
    ++ranking_.tried;
    ++refused_[why];
  }

  // `times`: its time over the time limit.
  void refuse_slow(const Estimate& estimate, double times) {
    if (estimate.memory.total() > cluster_.usable_bytes()) {
      refuse("memory");
      return;
    }
    refuse("limits of time");
    if (times < least_times_) {
      least_times_ = times;
      ranking_.nearest = estimate;
    }
  }

  // Counts the layout, and keeps it if it is fast enough.
  template <typename Faster>
  void take(const Estimate& estimate, const Faster& faster) {
    const double missing = estimate.memory.total() - cluster_.usable_bytes();
    if (missing > 0) {
      refuse("memory");
      if (missing < least_) {
        least_ = missing;
        ranking_.least_missing = text_of(estimate.layout);
      }
      return;
    }
    ++ranking_.tried;
    ++ranking_.fitting;
    std::vector<Estimate>& best = ranking_.best;
    const auto place = std::upper_bound(best.begin(), best.end(), estimate, faster);
    if (place == best.end() && best.size() >= options_.most) {
      return;
    }
    best.insert(place, estimate);
    if (best.size() > options_.most) {
      best.pop_back();
    }
  }

  // Returns the last layout to be kept, once all places are taken; else nullptr.
  const Estimate* last() const {
    return ranking_.best.size() < options_.most ? nullptr : &ranking_.best.back();
  }

  Ranking<Estimate> ranking() && {
    for (const auto& [why, count] : refused_) {
      ranking_.refused.push_back({.why = why, .layouts = count});
    }
    std::ranges::stable_sort(ranking_.refused, std::ranges::greater{}, &Refusal::layouts);
    if (ranking_.best.empty() && std::isfinite(least_)) {
      ranking_.least_missing_bytes = least_;
    }
    return std::move(ranking_);
  }

 private:
  const Cluster& cluster_;
  const SearchOptions& options_;
  Ranking<Estimate> ranking_;
  std::map<std::string, std::int64_t> refused_;
  double least_ = std::numeric_limits<double>::infinity();
  double least_times_ = std::numeric_limits<double>::infinity();
};

}  // namespace unisono::planner
