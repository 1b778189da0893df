// A collective call as plain data: what all the forms of Communicator's calls come down to.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "unisono/types.hpp"

namespace unisono {

// Combines `count` elements: inout[i] = in[i] op inout[i]. Must be associative and commutative.
struct UserOp {
  void (*combine)(void* inout, const void* in, std::size_t count, void* context) = nullptr;
  void* context = nullptr;
};

// A reduce operation with what it needs: converts from ReduceOp.
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  double factor = 1.0;  // premul_sum
  UserOp user = {};
  constexpr Reduction(ReduceOp value) : op(value) {}  // NOLINT(google-explicit-constructor)
  static Reduction premul_sum(double factor) {
    Reduction result{ReduceOp::premul_sum};
    result.factor = factor;
    return result;
  }
  static Reduction custom(UserOp user) {
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

// Call::accuracy: that of the communicator.
inline constexpr double kInheritedAccuracy = -1;

// The untyped form of a collective call, which all others come down to.
//
//   collective       in                              out                     count
//   broadcast        root: count                     count                   the vector
//   reduce           count                           root: count             the vector
//   all_reduce       count                           count                   the vector
//   scatter          root: n*count                   count                   one rank's part
//   gather           count                           root: n*count           one rank's part
//   all_gather       count                           n*count                 one rank's part
//   reduce_scatter   n*count                         count                   one rank's part
//   all_to_all       n*count                         n*count                 one pair's part
//
// v-forms give `counts` instead: of each rank's part (scatter_v, gather_v, all_gather_v,
// reduce_scatter_v; the same on all ranks), or this rank's send and receive counts (all_to_all_v:
// counts, recv_counts). Parts lie packed in rank order unless `displs` (`recv_displs`) give their
// offsets in elements.
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
  // A name, with parameters or not, "reproducible" (ConnectOptions::algorithm), or a schedule file
  // "mine.json"; empty: chosen.
  std::string_view algorithm = {};
  int timeout_ms = -1;  // -1: the communicator's; 0: for ever
  // What error the call bears, the same on all ranks. 0: nothing is rounded but as the op rounds.
  // Unset: the communicator's (ConnectOptions::accuracy), where the call sums and can keep to it.
  // Else ranks on several hosts may send each other codes of 8 or 16 bits in place of f32, in any
  // collective but a barrier and v-forms, where sums are sum, avg or premul_sum: each input is
  // rounded at most once, a result that goes to all ranks at most once, and these get the same
  // bits, also of what was their own. The error stays below this, as a root mean square relative to
  // that of the result, for numbers that are distributed like normal ones; whatever the numbers, no
  // element is off by more than 0.008 times the sum, over the inputs, of the greatest magnitude in
  // its block of 32, and by 2^-149 (one step of the least f32) for each rounding; in bf16 the last
  // 1 to 3 elements of a message may be off by 2^-134. Finite numbers stay finite. From 0.008 on
  // codes are i8 with a scale for each block, from 0.003 bf16; less is refused, as is what cannot
  // be.
  double accuracy = kInheritedAccuracy;
};

namespace detail {
// Whether the call itself says what error it bears.
constexpr bool has_own_accuracy(const Call& call) {
  return call.accuracy != kInheritedAccuracy && call.accuracy != 0;
}
}  // namespace detail

}  // namespace unisono
