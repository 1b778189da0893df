// The positions of a call's chunks in its buffers. A schedule has no sizes; a layout turns its
// chunks into ranges of bytes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace unisono::engine {

// Byte offsets of one chunk on one rank; 0 for a buffer that the rank does not have.
struct ChunkPlace {
  std::size_t input = 0;
  std::size_t output = 0;
  std::size_t bytes = 0;
};

// Sizes in elements. `counts` and `displs` are per rank; if `displs` is empty, the parts are packed
// in rank order.
//
//   scatter_v, gather_v,             counts, displs: the parts of the whole vector
//   all_gather_v, reduce_scatter_v
//   all_to_all_v                     counts, displs: the data that this rank sends to each rank;
//                                    recv_*: the data that it receives from each rank
//                                    recv_*: what it receives from each
struct Sizes {
  std::size_t element = 1;  // bytes
  std::size_t count = 0;    // as in Call
  std::span<const std::size_t> counts = {};
  std::span<const std::size_t> displs = {};
  std::span<const std::size_t> recv_counts = {};
  std::span<const std::size_t> recv_displs = {};
};

// Returns the places of all chunks on one rank. In all_to_all_v only the rank's own rows and
// columns have sizes.
std::vector<ChunkPlace> lay_out(const Schedule& schedule, int rank, const Sizes& sizes);

// Returns the element at which part `index` begins; the parts are those of Sizes.
std::size_t offset_of(std::span<const std::size_t> counts, std::span<const std::size_t> displs,
                      std::size_t index);

// Number of bytes in a rank's input and output, from the start of the buffer to its last used byte;
// 0 if there is no buffer.
struct Extent {
  std::size_t input = 0;
  std::size_t output = 0;
};
Extent extent_of(const Schedule& schedule, int rank, std::span<const ChunkPlace> places);

}  // namespace unisono::engine
