// Groups values by a dense key, in two passes and without sorting.
#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace unisono {

template <typename Value>
class Grouped {
 public:
  // `for_each(visit)` must call visit(key, value) for each value. It is called twice and must visit
  // the same values each time; keys are below `keys`. The values of a group keep their order.
  template <typename ForEach>
  Grouped(std::size_t keys, const ForEach& for_each) : first_(keys + 1, 0) {
    for_each([this](std::size_t key, const Value&) { ++first_[key + 1]; });
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    values_.resize(first_.back());
    std::vector<std::size_t> next = first_;
    for_each([&](std::size_t key, const Value& value) { values_[next[key]++] = value; });
  }

  std::size_t groups() const { return first_.size() - 1; }
  std::span<const Value> of(std::size_t key) const {
    return std::span(values_).subspan(first_[key], first_[key + 1] - first_[key]);
  }
  std::span<Value> of(std::size_t key) {
    return std::span(values_).subspan(first_[key], first_[key + 1] - first_[key]);
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<Value> values_;
};

}  // namespace unisono
