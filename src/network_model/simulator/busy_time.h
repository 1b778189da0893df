// The time in which a rank moved data: the union of the intervals in which its sending or receiving
// ports were busy. The intervals of one side begin in time order, but one side may be far ahead of
// the other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace unisono::network_model {

class BusyTime {
 public:
  enum Side : std::size_t { sending, receiving };

  void add(Side side, double begin, double end) {
    if (!(end > begin)) {
      return;
    }
    std::vector<Interval>& mine = open_[side].list;
    if (!mine.empty() && mine.back().end >= begin) {
      // With several ports, the intervals of one side overlap.
      sum_ += std::max(0.0, end - mine.back().end);
      mine.back().end = std::max(end, mine.back().end);
    } else {
      sum_ += end - begin;
      mine.push_back({begin, end});
    }
    meet();
  }

  // Accounts for `periods` equal periods that were skipped; the open intervals advance with them.
  void shift(double added_us, double offset_us) {
    sum_ += added_us;
    for (Open& side : open_) {
      for (Interval& interval : side.list) {
        interval.begin += offset_us;
        interval.end += offset_us;
      }
    }
  }

  double total_us() const { return sum_ - overlap_ - open_overlap(); }

 private:
  struct Interval {
    double begin = 0;
    double end = 0;
  };

  // The intervals that may still overlap others: from `first` on.
  struct Open {
    std::vector<Interval> list;
    std::size_t first = 0;

    std::size_t size() const { return list.size() - first; }
    const Interval& front() const { return list[first]; }
    void pop() {
      ++first;
      constexpr std::size_t kMostGone = 4;
      if (first >= kMostGone && 2 * first >= list.size()) {
        list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(first));
        first = 0;
      }
    }
  };

  // Counts overlaps that cannot change any more: those before the last interval of either side.
  void meet() {
    Open& a = open_[sending];
    Open& b = open_[receiving];
    while (a.size() > 1 && b.size() > 1) {
      overlap_ += overlap(a.front(), b.front());
      (a.front().end < b.front().end ? a : b).pop();
    }
    // An interval that ends before the first interval of the other side overlaps nothing.
    while (a.size() > 1 && b.size() > 0 && a.front().end <= b.front().begin) {
      a.pop();
    }
    while (b.size() > 1 && a.size() > 0 && b.front().end <= a.front().begin) {
      b.pop();
    }
  }

  double open_overlap() const {
    const Open& a = open_[sending];
    const Open& b = open_[receiving];
    double sum = 0;
    for (std::size_t i = a.first, j = b.first; i < a.list.size() && j < b.list.size();) {
      sum += overlap(a.list[i], b.list[j]);
      (a.list[i].end < b.list[j].end ? i : j) += 1;
    }
    return sum;
  }

  static double overlap(const Interval& a, const Interval& b) {
    return std::max(0.0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
  }

  std::array<Open, 2> open_;
  double sum_ = 0;
  double overlap_ = 0;
};

}  // namespace unisono::network_model
