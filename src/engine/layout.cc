#include "engine/layout.h"

#include <algorithm>
#include <numeric>

#include "base/private.h"

namespace unisono::engine {
namespace {

// Returns where piece `index` of `pieces` begins in `count` elements, without overflow for any
// 64-bit count.
std::size_t cut(std::size_t count, int index, int pieces) {
  const auto i = static_cast<std::size_t>(index);
  const auto n = static_cast<std::size_t>(pieces);
  return count / n * i + count % n * i / n;
}

// The ranks' parts of a vector, in elements.
struct Parts {
  std::vector<std::size_t> offset;
  std::vector<std::size_t> count;
};

Parts parts_of(int ranks, std::size_t count, std::span<const std::size_t> counts,
               std::span<const std::size_t> displs) {
  Parts parts;
  std::size_t packed = 0;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    parts.count.push_back(counts.empty() ? count : counts[rank]);
    parts.offset.push_back(displs.empty() ? packed : displs[rank]);
    packed += parts.count.back();
  }
  return parts;
}

void lay_out_parts(const Schedule& schedule, int rank, const Sizes& sizes,
                   std::vector<ChunkPlace>& places) {
  const Parts parts = parts_of(schedule.ranks, sizes.count, sizes.counts, sizes.displs);
  const int pieces = schedule.chunks / schedule.ranks;
  for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
    const auto owner = static_cast<std::size_t>(chunk / pieces);
    const int piece = chunk % pieces;
    const std::size_t begin = cut(parts.count[owner], piece, pieces);
    const std::size_t end = cut(parts.count[owner], piece + 1, pieces);
    const std::size_t in_whole = (parts.offset[owner] + begin) * sizes.element;
    const std::size_t in_part = begin * sizes.element;
    // One side holds the whole vector, the other side only its rank's part.
    const bool input_whole = traits_of(schedule.collective).output == Holding::part;
    ChunkPlace& place = places[static_cast<std::size_t>(chunk)];
    place.bytes = (end - begin) * sizes.element;
    place.input = input_whole ? in_whole : in_part;
    place.output = input_whole ? in_part : in_whole;
    if (static_cast<int>(owner) != rank && !input_whole) {
      place.input = 0;
    }
    if (static_cast<int>(owner) != rank && input_whole) {
      place.output = 0;
    }
  }
}

void lay_out_pairs(const Schedule& schedule, int rank, const Sizes& sizes,
                   std::vector<ChunkPlace>& places) {
  const int n = schedule.ranks;
  const bool explicit_sizes =
      is_v_form(schedule.collective) || !sizes.counts.empty() || !sizes.recv_counts.empty();
  const Parts sent = parts_of(n, sizes.count, sizes.counts, sizes.displs);
  const Parts got = parts_of(n, sizes.count, sizes.recv_counts, sizes.recv_displs);
  const int pieces = schedule.chunks / (n * n);
  for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
    const int from = chunk / pieces / n;
    const int to = chunk / pieces % n;
    const int piece = chunk % pieces;
    ChunkPlace& place = places[static_cast<std::size_t>(chunk)];
    const std::size_t count = from == rank     ? sent.count[static_cast<std::size_t>(to)]
                              : to == rank     ? got.count[static_cast<std::size_t>(from)]
                              : explicit_sizes ? 0
                                               : sizes.count;
    const std::size_t begin = cut(count, piece, pieces);
    place.bytes = (cut(count, piece + 1, pieces) - begin) * sizes.element;
    if (from == rank) {
      place.input = (sent.offset[static_cast<std::size_t>(to)] + begin) * sizes.element;
    }
    if (to == rank) {
      place.output = (got.offset[static_cast<std::size_t>(from)] + begin) * sizes.element;
    }
  }
}

}  // namespace

UNISONO_PRIVATE std::vector<ChunkPlace> lay_out(const Schedule& schedule, int rank,
                                                const Sizes& sizes) {
  std::vector<ChunkPlace> places(static_cast<std::size_t>(schedule.chunks));
  switch (cut_of(schedule.collective)) {
    case VectorCut::none:
      for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
        const std::size_t begin = cut(sizes.count, chunk, schedule.chunks);
        const std::size_t end = cut(sizes.count, chunk + 1, schedule.chunks);
        places[static_cast<std::size_t>(chunk)] = {.input = begin * sizes.element,
                                                   .output = begin * sizes.element,
                                                   .bytes = (end - begin) * sizes.element};
      }
      break;
    case VectorCut::parts:
      lay_out_parts(schedule, rank, sizes, places);
      break;
    case VectorCut::pairs:
      lay_out_pairs(schedule, rank, sizes, places);
      break;
  }
  return places;
}

UNISONO_PRIVATE std::size_t offset_of(std::span<const std::size_t> counts,
                                      std::span<const std::size_t> displs, std::size_t index) {
  if (!displs.empty()) {
    return displs[index];
  }
  const auto before = counts.first(index);
  return std::accumulate(before.begin(), before.end(), std::size_t{0});
}

Extent extent_of(const Schedule& schedule, int rank, std::span<const ChunkPlace> places) {
  Extent extent;
  for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
    const ChunkPlace& place = places[static_cast<std::size_t>(chunk)];
    if (place.bytes != 0 && has_input(schedule, rank, chunk)) {
      extent.input = std::max(extent.input, place.input + place.bytes);
    }
    if (place.bytes != 0 && needs_output(schedule, rank, chunk)) {
      extent.output = std::max(extent.output, place.output + place.bytes);
    }
  }
  return extent;
}

}  // namespace unisono::engine
