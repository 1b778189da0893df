// Random numbers that are the same on every machine.
#pragma once

#include <cstdint>

namespace unisono::sim {

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() noexcept {
    std::uint64_t value = state_ += 0x9e3779b97f4a7c15U;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31);
  }
  // REQUIRES: n > 0.
  std::uint64_t below(std::uint64_t n) noexcept { return next() % n; }
  bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace unisono::sim
