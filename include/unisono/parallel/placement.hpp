// Placements: how a tensor lies over the ranks of one axis, and redistribute(), which changes that.
//
//   Replicate   every rank has all of it
//   Shard(d)    rank r has the part r of dimension d (shard_range)
//   Partial     every rank has a summand of it, as large as the whole
//
// The terms are those of PyTorch's DTensor. redistribute() is the operation under tensor, sequence,
// context and Ulysses parallelism:
//
//   from -> to               what moves        used by
//   Partial -> Replicate     all_reduce        output of row-parallel products
//   Partial -> Shard(d)      reduce_scatter    sequence parallelism, gradients of ZeRO
//   Shard(d) -> Replicate    all_gather        sequence parallelism, parameters of ZeRO
//   Shard(a) -> Shard(b)     all_to_all        Ulysses (sequence <-> heads), transposes
//   Replicate -> Shard(d)    nothing           a slice
//   Shard(d) -> Partial      nothing           a slice among zeros
//   Replicate -> Partial     nothing           rank 0 keeps it, others have zeros; only when asked
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/parallel/tensor.hpp"

namespace unisono::parallel {

struct Range {
  std::size_t first = 0;
  std::size_t count = 0;
  bool operator==(const Range&) const = default;
};

// Part `rank` of `size` elements on `ranks` ranks: [size*rank/ranks, size*(rank+1)/ranks). Sizes
// differ by one at most, and are 0 for some ranks where there are fewer elements than ranks.
UNISONO_EXPORT Range shard_range(std::size_t size, int ranks, int rank);

struct Placement {
  enum class Kind : std::uint8_t { replicate, shard, partial };
  Kind kind = Kind::replicate;
  std::size_t dim = 0;          // of a shard
  ReduceOp op = ReduceOp::sum;  // of a partial: sum, avg, prod, min or max
  bool operator==(const Placement&) const = default;
};
inline Placement Replicate() {
  return {};
}
inline Placement Shard(std::size_t dim) {
  return {.kind = Placement::Kind::shard, .dim = dim};
}
inline Placement Partial(ReduceOp op = ReduceOp::sum) {
  return {.kind = Placement::Kind::partial, .op = op};
}
UNISONO_EXPORT std::string to_string(const Placement& placement);  // "shard(0)"

struct Conversion {
  Placement from;
  Placement to;
  bool operator==(const Conversion&) const = default;
};
// The transpose of a conversion as a linear map over the memory of all ranks, which is what its
// backward pass does: all_gather for reduce_scatter, and so on. In it Replicate and Partial(sum)
// change places, since the gradient of what every rank uses is the sum over all ranks. Errors:
// usage, for a Partial that is no sum.
UNISONO_EXPORT Conversion conjugate(const Conversion& conversion);

struct RedistributeOptions {
  bool replicate_to_partial = false;  // whether Replicate -> Partial is meant
  int timeout_ms = -1;                // as of Call
};

// Fills `out`, which lies as `to` says, from `in`, which lies as `from` says. All ranks of the
// communicator call it.
//
// Shapes: those of the parts that this rank has; any strides, any dimension, uneven parts.
// In place: Partial -> Replicate where `in` is `out`; Shard -> Replicate where `in` is this rank's
// part of `out`. Any other overlap is wrong.
// Cost: where `in` of every rank is registered memory (Communicator::allocate, register_buffer) and
// all are on one host, elements go from where they lie to where they belong, with no packing.
// Elsewhere what does not lie in order is packed before or unpacked after the collective.
// Order of sums: without packing that of the ranks; else that of the algorithm.
// Sums and means of bf16, f16 and f8 are formed in f32 and rounded once. On one host, and with at
// most two ranks a host, that costs no more bytes than the inputs: each rank sends (n-1)/n of its
// input to where it is summed (all_reduce: and as much again of the result). With more ranks a
// host, or more than 64 ranks, elements travel as f32: 2 times the bytes of a 16-bit sum that is
// rounded at every step, 4 times those of an 8-bit one. Communicator::all_reduce() instead rounds
// wherever its algorithm adds, unless it is asked for "reproducible".
// Errors: usage; mismatch, where two ranks have tensors that are not of one whole, with both named;
// as of Communicator::run().
UNISONO_EXPORT void redistribute(Communicator& communicator, const Tensor& in, Placement from,
                                 const Tensor& out, Placement to,
                                 const RedistributeOptions& options = {});

// Copies elements between two tensors of one shape and dtype on this rank. Errors: usage.
UNISONO_EXPORT void copy(const Tensor& in, const Tensor& out);

}  // namespace unisono::parallel
