// Overlaps a collective with the matrix product before or after it: one block of rows is computed
// while another block is sent (Wang et al., ASPLOS 2023). The caller's compute() is called several
// times, each time for some of the rows, so that no rank waits for a whole buffer.
//
// all_gather_then and then_reduce_scatter have one block for each rank: shard_range() of the rows.
// all_gather_then begins with the rank's own block, and then_reduce_scatter begins with the block
// of rank 0. then_reduce_scatter may compute a block in several calls.
//
// The world's progress thread sends data while compute() runs. If the last compute() kept its core
// busy and the progress thread has no spare core, blocks are sent between the calls of compute()
// instead.
//
// Threads: as for Communicator.
//
// Errors: usage; those of Communicator::run(); exceptions of compute(). After an exception of
// compute(), the other ranks wait until their timeout unless the caller aborts the world.
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
// The functions below, for memory whose type is known at run time.
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

// Collective. Gathers the shards of all ranks into `whole`. When the rows of a block have arrived,
// calls compute(rows), which reads these rows of `whole`. A row has `width` elements of any type
// that can be sent.
// Shapes: `shard`: this rank's rows; `whole`: all rows.
// In place: `shard` may be this rank's rows in `whole`.
template <InBuffer Shard, OutBuffer Whole>
Overlapped all_gather_then(Communicator& communicator, Shard&& shard, Whole&& whole,
                           std::size_t width, const std::function<void(Range rows)>& compute) {
  static_assert(std::is_same_v<ElementOf<Shard>, ElementOf<Whole>>, "both have one type");
  const auto part = unisono::detail::view(shard);
  return detail::all_gather_then(communicator, part.data(), part.size(), whole, width, compute);
}

// Collective. Sums contributions over the ranks. compute(rows, out) writes this rank's contribution
// to these rows to `out`. The first call is for rows of rank 0. Afterwards `shard` holds this
// rank's rows, summed over all ranks in the order of reduce(). Needs memory for two blocks.
// Shapes: `shard`: this rank's rows.
template <OutBuffer Shard>
Overlapped then_reduce_scatter(
    Communicator& communicator, std::size_t rows, Shard&& shard, std::size_t width,
    const std::function<void(Range rows, std::span<ElementOf<Shard>> out)>& compute) {
  return detail::then_reduce_scatter(communicator, rows, shard, width,
                                     detail::write_rows<ElementOf<Shard>>(compute, width));
}

// Collective. Sums contributions over the ranks. compute(rows, out) writes this rank's contribution
// to these rows to `out`, which is their place in `whole`. Afterwards `whole` holds the sums. The
// rows are cut into `blocks` blocks, and one block is summed while the next block is computed.
// Shapes: `whole`: all rows.
template <OutBuffer Whole>
Overlapped then_all_reduce(
    Communicator& communicator, Whole&& whole, std::size_t width, int blocks,
    const std::function<void(Range rows, std::span<ElementOf<Whole>> out)>& compute) {
  return detail::then_all_reduce(communicator, whole, width, blocks,
                                 detail::write_rows<ElementOf<Whole>>(compute, width));
}

}  // namespace unisono::parallel
