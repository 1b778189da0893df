// Overlaps a collective with the matrix product before or after it: one block is computed while
// another block is sent (Wang et al., ASPLOS 2023). The caller's compute() is called once for each
// block of rows, so that no rank waits for a whole buffer. all_gather_then begins with the rank's
// own block, then_reduce_scatter with the block of rank 0.
//
// Each rank has one block, which shard_range() of the rows defines. The world's progress thread
// moves data while compute() runs. If compute() kept its core busy the last time and there is no
// spare core for that thread, blocks are moved between the callbacks instead.
//
// Threads: as for Communicator.
//
// Errors: usage; those of Communicator::run(); exceptions of compute(), after which the other ranks
// wait until their timeout unless the world is aborted.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/parallel/any_span.hpp"
#include "unisono/parallel/placement.hpp"
#include "unisono/typed_call.hpp"

namespace unisono::parallel {

// The cost of an overlapped collective.
struct Overlapped {
  double exposed_us = 0;  // how long this rank waited for transfers
};

namespace detail {
// The functions below for memory whose type is known at run time.
using WriteRows = std::function<void(Range rows, void* out)>;
UNISONO_EXPORT Overlapped all_gather_then(Communicator& communicator, const void* shard,
                                          std::size_t shard_count, AnySpan whole, std::size_t width,
                                          const std::function<void(Range rows)>& compute);
UNISONO_EXPORT Overlapped then_reduce_scatter(Communicator& communicator, std::size_t rows,
                                              AnySpan shard, std::size_t width,
                                              const WriteRows& compute);
UNISONO_EXPORT Overlapped then_all_reduce(Communicator& communicator, AnySpan whole,
                                          std::size_t width, int blocks, const WriteRows& compute);

template <typename Element>
WriteRows write_rows(const std::function<void(Range, std::span<Element>)>& compute,
                     std::size_t width) {
  return [&compute, width](Range rows, void* out) {
    compute(rows, {static_cast<Element*>(out), rows.count * width});
  };
}
}  // namespace detail

// Collective. Gathers `whole`, and calls compute(rows) for each block when its rows of `whole` have
// arrived. A row has `width` elements of any type that can be sent.
// Shapes: `shard`: this rank's rows; `whole`: all rows.
// In place: `shard` may be its own place in `whole`.
template <InBuffer Shard, OutBuffer Whole>
Overlapped all_gather_then(Communicator& communicator, Shard&& shard, Whole&& whole,
                           std::size_t width, const std::function<void(Range rows)>& compute) {
  static_assert(std::is_same_v<ElementOf<Shard>, ElementOf<Whole>>, "both have one type");
  const auto part = unisono::detail::view(shard);
  return detail::all_gather_then(communicator, part.data(), part.size(), whole, width, compute);
}

// Collective. Sums over the ranks. compute(rows, out) writes this rank's contribution to these rows
// to `out`; the first call is for the rows of rank 0. Afterwards `shard` holds this rank's rows,
// summed over all ranks in the order of reduce(). Needs memory for two blocks.
// Shapes: `shard`: this rank's rows.
template <OutBuffer Shard>
Overlapped then_reduce_scatter(
    Communicator& communicator, std::size_t rows, Shard&& shard, std::size_t width,
    const std::function<void(Range rows, std::span<ElementOf<Shard>> out)>& compute) {
  return detail::then_reduce_scatter(communicator, rows, shard, width,
                                     detail::write_rows<ElementOf<Shard>>(compute, width));
}

// Collective. Sums over the ranks. compute(rows, out) writes this rank's contribution to these rows
// to `out`, a part of `whole`. Afterwards `whole` holds the sums. `blocks` is the number of blocks
// of rows; one block is summed while the next one is computed. Shapes: `whole`: all rows.
template <OutBuffer Whole>
Overlapped then_all_reduce(
    Communicator& communicator, Whole&& whole, std::size_t width, int blocks,
    const std::function<void(Range rows, std::span<ElementOf<Whole>> out)>& compute) {
  return detail::then_all_reduce(communicator, whole, width, blocks,
                                 detail::write_rows<ElementOf<Whole>>(compute, width));
}

}  // namespace unisono::parallel
