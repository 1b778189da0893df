// Collects findings up to a limit, because a schedule with many mistakes does not need a long list.
#pragma once

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "schedule/finding.h"
#include "schedule/sort_by.h"

namespace unisono {

class Findings {
 public:
  static constexpr std::size_t kMost = 100;

  void add(Finding finding) {
    if (!full()) {
      list_.push_back(std::move(finding));
    }
  }
  bool full() const { return list_.size() >= kMost; }
  bool empty() const { return list_.empty(); }

  // Returns the findings ordered by step; findings about the end come last.
  std::vector<Finding> take() && {
    sort_by(list_, [](const Finding& finding) {
      return finding.step < 0 ? std::numeric_limits<int>::max() : finding.step;
    });
    return std::move(list_);
  }

 private:
  std::vector<Finding> list_;
};

}  // namespace unisono
