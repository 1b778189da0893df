// Placement: describes how a tensor is distributed over the ranks of an axis. redistribute()
// changes the placement.
//
//   Replicate   every rank has the whole tensor
//   Shard(d)    rank r has part r of dimension d (shard_range)
//   Partial     every rank has a summand of the shape of the whole tensor; the tensor is the sum
//
// The terms are those of PyTorch's DTensor. Tensor, sequence, context and Ulysses parallelism all
// use redistribute():
//
//   from -> to               communication     used by
//   Partial -> Replicate     all_reduce        output of row-parallel products
//   Partial -> Shard(d)      reduce_scatter    sequence parallelism, gradients of ZeRO
//   Shard(d) -> Replicate    all_gather        sequence parallelism, parameters of ZeRO
//   Shard(a) -> Shard(b)     all_to_all        Ulysses (sequence <-> heads), transposes
//   Replicate -> Shard(d)    none              a slice
//   Shard(d) -> Partial      none              a slice among zeros
//   Replicate -> Partial     none              rank 0 keeps it, others have zeros; needs an option
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/parallel/tensor.hpp"

namespace unisono::parallel {

// Consecutive indices.
struct Range {
  std::size_t first = 0;
  std::size_t count = 0;
  bool operator==(const Range&) const = default;
};

// Local. Returns part `rank` of `size` elements that are divided among `ranks` ranks:
// [size*rank/ranks, size*(rank+1)/ranks). The lengths of two parts differ by at most one. If there
// are fewer elements than ranks, some parts are empty.
UNISONO_EXPORT Range shard_range(std::size_t size, int ranks, int rank);

// The way in which a tensor is distributed over an axis.
struct Placement {
  enum class Kind : std::uint8_t { replicate, shard, partial };  // see the top of this header
  Kind kind = Kind::replicate;
  std::size_t dim = 0;          // dimension of a shard
  ReduceOp op = ReduceOp::sum;  // operation of a partial: sum, avg, prod, min or max
  bool operator==(const Placement&) const = default;
};
inline Placement Replicate() {  // Local. Every rank has a copy.
  return {};
}
inline Placement Shard(std::size_t dim) {  // Local. Every rank has a part.
  return {.kind = Placement::Kind::shard, .dim = dim};
}
inline Placement Partial(ReduceOp op = ReduceOp::sum) {  // Local. Every rank has a summand.
  return {.kind = Placement::Kind::partial, .op = op};
}
UNISONO_EXPORT std::string to_string(const Placement& placement);  // for example "shard(0)"

// A change of placement.
struct Conversion {
  Placement from;
  Placement to;
  bool operator==(const Conversion&) const = default;
};
// Local. Returns the conversion of the backward pass. For example, all_gather is the backward pass
// of reduce_scatter. A conversion is a linear map over the memory of all ranks, and its backward
// pass is the transpose of this map. Replicate becomes Partial(sum), because the gradient of a
// value that every rank uses is the sum of the gradients of all ranks. Partial(sum) becomes
// Replicate.
// Errors: usage for a Partial that is not a sum.
UNISONO_EXPORT Conversion conjugate(const Conversion& conversion);

// Options of redistribute().
struct RedistributeOptions {
  bool replicate_to_partial = false;  // allows Replicate -> Partial
  int timeout_ms = -1;                // as in Call
};

// Collective. Fills `out` from `in`. `in` has the placement `from`, and `out` gets the placement
// `to`.
// Shapes: this rank's parts, with any strides. Any dimension can be sharded, and parts may be
// uneven.
// In place: Partial -> Replicate if `in` is `out`; Shard -> Replicate if `in` is this rank's part
// of `out`. Any other overlap is an error.
// Errors: usage; mismatch, naming both ranks, if the parts of two ranks do not belong to the same
// tensor; those of Communicator::run().
//
// Copies: if `in` is registered memory on every rank (Communicator::allocate, register_buffer) and
// all ranks are on one host, each rank reads the elements directly and writes them to their final
// place. A collective sends the data in all other cases, and always for Partial -> Replicate, for a
// mean of floats narrower than f32, and for more than 64 ranks. Data that is not contiguous is
// packed before the collective and unpacked after it.
//
// Sums: if a rank reads the elements directly, it adds them in rank order. Otherwise the algorithm
// of the collective determines the order. Sums and means of bf16, f16 and f8 are formed in f32 and
// rounded once.
//
// Bytes: each rank sends (n-1)/n of its input. An all_reduce also sends (n-1)/n of the result. On
// one host, and with at most two ranks per host, 8-bit and 16-bit elements are sent in their own
// type. With more ranks per host, or more than 64 ranks, they are sent as f32. A 16-bit sum then
// sends twice, and an 8-bit sum four times, the bytes of a sum that is rounded at every step.
// Communicator::all_reduce() instead rounds wherever its algorithm adds, unless "reproducible" is
// requested.
UNISONO_EXPORT void redistribute(Communicator& communicator, const Tensor& in, Placement from,
                                 const Tensor& out, Placement to,
                                 const RedistributeOptions& options = {});

// Local. Copies elements between two tensors of one shape and dtype.
// Errors: usage.
UNISONO_EXPORT void copy(const Tensor& in, const Tensor& out);

}  // namespace unisono::parallel
