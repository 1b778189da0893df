// 64-bit hash for signatures: small, equal on every machine, not cryptographic.
#pragma once

#include <cstdint>
#include <string_view>

namespace unisono {

// Finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every input bit affects every
// output bit.
constexpr std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

class Hash {
 public:
  constexpr Hash& add(std::uint64_t value) {
    state_ = mix(state_ + 0x9e3779b97f4a7c15U + value);
    return *this;
  }
  constexpr Hash& add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    for (const char c : text) {
      add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    }
    return *this;
  }
  constexpr std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace unisono
