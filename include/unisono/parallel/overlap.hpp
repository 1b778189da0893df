// Collective matrix products: compute one block while another one travels (Wang et al., ASPLOS
// 2023). The caller's compute is called once for each block of rows, beginning with the rank's own
// (all_gather_then) or ending with it (then_reduce_scatter), so that no rank waits for a whole
// buffer.
//
// Blocks are those of the ranks, by shard_range() of the rows. Bytes move while compute runs: what
// is asynchronous is moved by the world's progress thread.
//
// Thread rule: as Communicator. Errors: usage; as of Communicator::run(); what compute() throws,
// after which the others wait until their timeout, unless the world is aborted.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/parallel/placement.hpp"

namespace unisono::parallel {

struct Overlapped {
  double exposed_us = 0;  // how long this rank has waited for transfers
};

// compute(rows): these rows of `whole` are there. `shard`: this rank's rows, which may be where
// they belong in `whole`. Rows have `width` elements.
UNISONO_EXPORT Overlapped all_gather_then(Communicator& communicator, std::span<const float> shard,
                                          std::span<float> whole, std::size_t width,
                                          const std::function<void(Range rows)>& compute);

// compute(rows, out): writes this rank's summand of these rows to `out`. Afterwards `shard` has the
// sum of this rank's rows. Order of sums: that of a ring.
UNISONO_EXPORT Overlapped then_reduce_scatter(
    Communicator& communicator, std::size_t rows, std::span<float> shard, std::size_t width,
    const std::function<void(Range rows, std::span<float> out)>& compute);

// compute(rows, out): writes this rank's summand of these rows, into `whole`, which has the sums
// afterwards. `blocks`: into how many the rows are cut; the sum of one travels while the next one
// is computed.
UNISONO_EXPORT Overlapped
then_all_reduce(Communicator& communicator, std::span<float> whole, std::size_t width, int blocks,
                const std::function<void(Range rows, std::span<float> out)>& compute);

}  // namespace unisono::parallel
