// A collective call as plain data. All forms of Communicator's calls build a Call.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "unisono/types.hpp"

namespace unisono {

// A user-defined operation on `count` elements: inout[i] = in[i] op inout[i]. The operation must be
// associative and commutative. For scan and exclusive_scan with the library's algorithms, the
// operation only needs to be associative, because `in` then comes from lower ranks than `inout`.
// `combine` may run in the progress thread, and must not call unisono. `context` must live as long
// as the call.
struct UserOp {
  void (*combine)(void* inout, const void* in, std::size_t count, void* context) = nullptr;
  void* context = nullptr;
};

// A reduce operation with its parameters. Converts from ReduceOp.
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  double factor = 1.0;  // only for premul_sum
  UserOp user = {};
  constexpr Reduction(ReduceOp value) : op(value) {}  // NOLINT(google-explicit-constructor)
  static Reduction premul_sum(double factor) {        // the sum of `factor` times each input
    Reduction result{ReduceOp::premul_sum};
    result.factor = factor;
    return result;
  }
  static Reduction custom(UserOp user) {  // the caller's function
    Reduction result{ReduceOp::user};
    result.user = user;
    return result;
  }
};
inline constexpr Reduction sum{ReduceOp::sum};
inline constexpr Reduction prod{ReduceOp::prod};
inline constexpr Reduction min{ReduceOp::min};
inline constexpr Reduction max{ReduceOp::max};
inline constexpr Reduction avg{ReduceOp::avg};

// Value of Call::max_error that selects the communicator's max_error.
inline constexpr double kInheritedMaxError = -1;

// The untyped form of a collective call. rules.h describes the buffers and the lists.
struct Call {
  Collective collective = Collective::barrier;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  Dtype dtype = Dtype::u8;
  Reduction reduction = ReduceOp::sum;
  int root = 0;
  std::span<const std::size_t> counts = {};
  std::span<const std::size_t> displs = {};
  std::span<const std::size_t> recv_counts = {};
  std::span<const std::size_t> recv_displs = {};
  // The name of an algorithm, with or without parameters; "reproducible" (see
  // ConnectOptions::algorithm); or a schedule file such as "mine.json". Empty: the library chooses.
  std::string_view algorithm = {};
  int timeout_ms = -1;  // -1: the communicator's limit; 0: no limit
  // The error that the call may add, the same on all ranks. 0: only the operation itself rounds.
  // Unset: ConnectOptions::max_error, if the call sums and can keep the bound.
  //
  // With a positive value, ranks on several hosts may exchange 8-bit or 16-bit codes instead of
  // f32. From 0.008, codes are i8 with a scale for each block of 32 elements. From 0.003, codes are
  // bf16. Codes work for f32, in every collective except barriers, scans and v-forms. A reduction
  // must be sum, avg or premul_sum. Any other call with a positive value throws usage, and so does
  // a positive value below 0.003.
  //
  // Each input is rounded at most once. A result that goes to all ranks is rounded at most once
  // more. All ranks get the same bits, also for their own data. Finite numbers stay finite. For
  // roughly normally distributed numbers, max_error bounds the root mean square of the error
  // divided by the root mean square of the result. For any numbers, the error of an element is at
  // most the sum of two parts:
  // - 0.008 * (m_1 + ... + m_n), where m_i is the greatest magnitude in the element's block in
  //   input i,
  // - 2^-149 (the smallest f32) per rounding. With bf16 codes, it is 2^-134 for the last 1 to 3
  //   elements of a message.
  double max_error = kInheritedMaxError;
};

namespace detail {
// Returns true if the call sets a max_error of its own.
constexpr bool has_own_max_error(const Call& call) {
  return call.max_error != kInheritedMaxError && call.max_error != 0;
}
}  // namespace detail

}  // namespace unisono
