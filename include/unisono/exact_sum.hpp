// Exact sums of floats, rounded once at the end. The result has the same bits for any order of the
// numbers and for any distribution of the numbers over ranks. So a model's parallel layout does not
// change the result. Use ExactSum for scalars, such as a loss or the norm of all gradients, and
// TreeSum for vectors.
//
//   unisono::ExactSum squares;
//   squares.add_squares(gradients_of_this_rank);
//   squares.all_reduce(communicator);
//   const double norm = std::sqrt(squares.value());
//
// Source: the long accumulator (Kulisch, 1971), an integer with enough bits for every float.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"

namespace unisono {

// An exact running sum.
// Threads: one at a time.
class UNISONO_EXPORT ExactSum {
 public:
  // Local. Adds numbers, or their squares.
  void add(std::span<const float> values);
  void add(float value) { add(std::span<const float>(&value, 1)); }
  void add_squares(std::span<const float> values);
  // Local. Adds another sum.
  void add(const ExactSum& other);

  // Collective. Replaces this sum by the sum over all ranks. Costs one all_reduce of kWords * 8
  // bytes.
  // Errors: those of Communicator::run().
  void all_reduce(Communicator& communicator);

  // Local. Returns the sum, rounded to the nearest double. Infinite addends and NaNs have the same
  // effect as in a sum of doubles.
  double value() const;

  static constexpr std::size_t kWords = 25;

 private:
  static constexpr std::size_t kDigits = 22;  // of 32 bits
  enum : std::size_t { kInfinite = kDigits, kMinusInfinite, kNotANumber };
  void add_scaled(std::uint64_t mantissa, unsigned place, bool is_negative);
  void add_special(float value);
  void carry();

  // The digits, which may exceed 32 bits until carry(), and the counts of infinities and NaNs.
  std::array<std::int64_t, kWords> words_ = {};
  std::uint64_t additions_ = 0;  // since the last carry()
};

}  // namespace unisono
