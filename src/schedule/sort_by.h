// A stable sort by a key. It replaces std::stable_sort, which in libstdc++ 12 calls a function that
// clang rejects as deprecated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace unisono {

template <typename T, typename Key>
void sort_by(std::vector<T>& values, const Key& key) {
  std::vector<std::pair<int, std::size_t>> order;
  order.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    order.emplace_back(key(values[i]), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<T> sorted;
  sorted.reserve(values.size());
  for (const auto& place : order) {
    sorted.push_back(std::move(values[place.second]));
  }
  values = std::move(sorted);
}

}  // namespace unisono
