#include "unisono/exact_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace unisono {
namespace {

constexpr std::uint32_t kMantissaBits = 23;
constexpr std::uint32_t kSpecialExponent = 255;
constexpr unsigned kDigitBits = 32;
constexpr std::int64_t kDigitMask = 0xFFFFFFFF;
// The square of the smallest float is 2^-298. The two digits below it are always zero, so that
// value() has digits to round.
constexpr unsigned kZeroPlaces = 2 * kDigitBits;
constexpr int kLowestPlace = -298 - static_cast<int>(kZeroPlaces);

struct Parts {
  std::uint64_t mantissa = 0;  // value = mantissa * 2^(exponent - 150)
  std::uint32_t exponent = 0;  // 1 to 254; 255: infinite or not a number
  bool is_negative = false;
};

Parts parts_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = bits >> kMantissaBits & kSpecialExponent;
  const std::uint32_t mantissa = bits & ((1U << kMantissaBits) - 1);
  return {.mantissa = exponent == 0 ? mantissa : mantissa | 1U << kMantissaBits,
          .exponent = std::max(exponent, 1U),
          .is_negative = bits >> 31U != 0};
}

}  // namespace

// Adds mantissa * 2^(place + kLowestPlace). REQUIRES: mantissa < 2^63.
void ExactSum::add_scaled(std::uint64_t mantissa, unsigned place, bool is_negative) {
  constexpr std::uint64_t kMostAdditions = std::uint64_t{1} << 29U;
  if (++additions_ > kMostAdditions) {
    carry();
  }
  const std::size_t digit = place / kDigitBits;
  const unsigned shift = place % kDigitBits;
  constexpr auto kMask = static_cast<std::uint64_t>(kDigitMask);
  const std::uint64_t low = (mantissa & kMask) << shift;
  const std::uint64_t high = (mantissa >> kDigitBits) << shift;
  const auto add = [&](std::size_t at, std::uint64_t more) {
    words_[at] += is_negative ? -static_cast<std::int64_t>(more) : static_cast<std::int64_t>(more);
  };
  add(digit, low & kMask);
  add(digit + 1, (low >> kDigitBits) + (high & kMask));
  add(digit + 2, high >> kDigitBits);
}

void ExactSum::add_special(float value) {
  ++words_[std::isnan(value) ? kNotANumber : value > 0 ? kInfinite : kMinusInfinite];
}

void ExactSum::carry() {
  for (std::size_t i = 0; i + 1 < kDigits; ++i) {
    words_[i + 1] += words_[i] >> kDigitBits;
    words_[i] &= kDigitMask;
  }
  additions_ = 0;
}

void ExactSum::add(std::span<const float> values) {
  for (const float value : values) {
    const Parts parts = parts_of(value);
    if (parts.exponent == kSpecialExponent) {
      add_special(value);
    } else {
      add_scaled(parts.mantissa, kZeroPlaces + parts.exponent + 148, parts.is_negative);
    }
  }
}

// A mantissa's square has 48 bits, so one word can hold the sum of 2^15 squares. Squares with the
// same exponent share a word, so each square costs one addition.
void ExactSum::add_squares(std::span<const float> values) {
  constexpr std::size_t kMost = std::size_t{1} << 15U;
  std::array<std::uint64_t, kSpecialExponent + 1> sums;
  while (!values.empty()) {
    const std::span<const float> some = values.first(std::min(values.size(), kMost));
    values = values.subspan(some.size());
    sums.fill(0);
    for (const float value : some) {
      const Parts parts = parts_of(value);
      sums[parts.exponent] += parts.mantissa * parts.mantissa;
    }
    if (sums[kSpecialExponent] != 0) {
      for (const float value : some) {
        if (!std::isfinite(value)) {
          add_special(value * value);
        }
      }
    }
    for (unsigned exponent = 1; exponent < kSpecialExponent; ++exponent) {
      if (sums[exponent] != 0) {
        add_scaled(sums[exponent], kZeroPlaces + 2 * exponent - 2, false);
      }
    }
  }
}

void ExactSum::add(const ExactSum& other) {
  carry();
  ExactSum carried = other;
  carried.carry();
  for (std::size_t i = 0; i < kWords; ++i) {
    words_[i] += carried.words_[i];
  }
  carry();
}

void ExactSum::all_reduce(Communicator& communicator) {
  carry();
  communicator.all_reduce(words_, sum);
  carry();
}

double ExactSum::value() const {
  if (words_[kNotANumber] != 0 || (words_[kInfinite] != 0 && words_[kMinusInfinite] != 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (words_[kInfinite] != 0 || words_[kMinusInfinite] != 0) {
    return words_[kInfinite] != 0 ? std::numeric_limits<double>::infinity()
                                  : -std::numeric_limits<double>::infinity();
  }
  ExactSum rest = *this;
  rest.carry();
  const bool is_negative = rest.words_[kDigits - 1] < 0;
  if (is_negative) {
    std::ranges::transform(rest.words_, rest.words_.begin(),
                           [](std::int64_t word) { return -word; });
    rest.carry();
  }
  std::size_t top = kDigits - 1;
  while (top > 2 && rest.words_[top] == 0) {
    --top;
  }
  // Takes the highest 64 bits, beginning with the first bit that is set. Also sets the lowest of
  // these bits if any bit below them is set, so that the conversion rounds only once.
  const auto digit = [&](std::size_t at) { return static_cast<std::uint64_t>(rest.words_[at]); };
  std::uint64_t high = digit(top) << kDigitBits | digit(top - 1);
  if (high == 0) {
    return 0;
  }
  const auto zeros = static_cast<unsigned>(std::countl_zero(high));
  std::uint64_t below = digit(top - 2);
  if (zeros > 0) {
    high = high << zeros | below >> (kDigitBits - zeros);
    below = below << zeros & static_cast<std::uint64_t>(kDigitMask);
  }
  for (std::size_t i = 0; i + 2 < top; ++i) {
    below |= digit(i);
  }
  high |= below != 0 ? 1U : 0U;
  const int exponent =
      static_cast<int>((top - 1) * kDigitBits) - static_cast<int>(zeros) + kLowestPlace;
  const double magnitude = std::ldexp(static_cast<double>(high), exponent);
  return is_negative ? -magnitude : magnitude;
}

}  // namespace unisono
