// Exact sums of floats, rounded once at the end. The result has the same bits for any order of the
// numbers and any distribution of them over ranks, and therefore for any parallel layout of a
// model. Use ExactSum for scalars, such as a loss or the norm of all gradients, and TreeSum for
// vectors.
//
//   unisono::ExactSum squares;
//   squares.add_squares(gradients_of_this_rank);
//   squares.all_reduce(communicator);
//   const double norm = std::sqrt(squares.value());
//
// Source: a sum as one long integer that holds every float exactly (Kulisch, 1971).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"

namespace unisono {

// Threads: one at a time.
class UNISONO_EXPORT ExactSum {
 public:
  // Local. Adds numbers, or their squares.
  void add(std::span<const float> values);
  void add(float value) { add(std::span<const float>(&value, 1)); }
  void add_squares(std::span<const float> values);
  // Local. Adds another sum.
  void add(const ExactSum& other);

  // Collective. Sums over the ranks; costs one all_reduce of kWords times 8 bytes.
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

  // Digits, each of which may exceed 32 bits until it is carried, and three counts.
  std::array<std::int64_t, kWords> words_ = {};
  std::uint64_t additions_ = 0;  // since digits were carried
};

}  // namespace unisono
