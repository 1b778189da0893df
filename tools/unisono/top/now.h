// The clock of the boards.
#pragma once

#include <cstdint>
#include <ctime>

namespace unisono::cli {

inline std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace unisono::cli
