// A number of ranks, rows or steps as an index.
#pragma once

#include <cstddef>

namespace unisono::cli {

constexpr std::size_t as_size(int value) {
  return static_cast<std::size_t>(value);
}

}  // namespace unisono::cli
