#include "bench/cases.h"

#include <algorithm>
#include <numeric>

#include "base/as_size.h"
#include "base/collectives.h"

namespace unisono::cli {
namespace {

std::size_t before(const std::vector<std::size_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
}

// The part of each rank; `own` is the part of this rank, `total` the sum of all parts.
struct Parts {
  std::size_t own = 0;
  std::size_t total = 0;
  std::size_t offset = 0;  // of this rank's part in the whole
};

void place_parts(const Case& row, int rank, const Parts& parts, CaseCounts& layout) {
  const CollectiveTraits& traits = traits_of(row.workload.collective);
  const auto count_of = [&](Holding holding) {
    return holding == Holding::part                                ? parts.own
           : holding == Holding::whole_at_root && rank != row.root ? 0
                                                                   : parts.total;
  };
  layout.in_count = count_of(traits.input);
  layout.out_count = count_of(traits.output);
  // In place, a part is at its place in the whole vector if this rank also has the whole vector.
  layout.in_offset = traits.input == Holding::part && layout.out_count != 0 ? parts.offset : 0;
  layout.out_offset = traits.output == Holding::part && layout.in_count != 0 ? parts.offset : 0;
}

void place_vector(const Case& row, int rank, std::size_t count, CaseCounts& layout) {
  const bool is_root = rank == row.root;
  const CollectiveTraits& traits = traits_of(row.workload.collective);
  layout.count = count;
  layout.in_count = traits.input == Holding::whole_at_root && !is_root ? 0 : count;
  layout.out_count = traits.output == Holding::whole_at_root && !is_root ? 0 : count;
}

}  // namespace

std::size_t uneven_share(std::size_t total, int parts, int part) {
  // Part p has weight 2p+1, so that the weights add up to parts^2.
  const auto up_to = [&](int p) {
    // total * p^2 / parts^2 without overflow.
    const std::size_t squares = as_size(parts) * as_size(parts);
    return total / squares * as_size(p * p) + total % squares * as_size(p * p) / squares;
  };
  return up_to(part + 1) - up_to(part);
}

CaseCounts layout_of(const Case& row, int rank, int ranks) {
  CaseCounts layout;
  const std::size_t element = size_of(row.dtype);
  const Collective collective = row.workload.collective;
  if (!row.workload.send_recv && !moves_data(collective)) {
    return layout;
  }
  const std::size_t wanted = static_cast<std::size_t>(row.bytes / element);
  const std::size_t total = row.bytes == 0 ? 0 : std::max<std::size_t>(1, wanted);
  if (row.workload.send_recv || cut_of(collective) == VectorCut::none) {
    place_vector(row, rank, total, layout);
    if (row.workload.send_recv) {
      layout.in_count = total;
      layout.out_count = total;
    }
    layout.size_bytes = total * element;
    return layout;
  }
  Parts parts;
  if (is_v_form(collective)) {
    for (int part = 0; part < ranks; ++part) {
      // all_to_all_v: the part from s to d has the size of part (s + d) mod n, both ways.
      const bool pairs = cut_of(collective) == VectorCut::pairs;
      layout.counts.push_back(uneven_share(total, ranks, pairs ? (rank + part) % ranks : part));
    }
    if (cut_of(collective) == VectorCut::pairs) {
      layout.recv_counts = layout.counts;
    }
    parts = {
        .own = layout.counts[as_size(rank)], .total = total, .offset = before(layout.counts, rank)};
    layout.count = total;
  } else {
    const std::size_t part = total == 0 ? 0 : std::max<std::size_t>(1, total / as_size(ranks));
    parts = {.own = part, .total = part * as_size(ranks), .offset = part * as_size(rank)};
    layout.count = part;
  }
  place_parts(row, rank, parts, layout);
  layout.size_bytes = parts.total * element;
  return layout;
}

double bus_factor(const BenchWorkload& workload, int ranks) {
  return workload.send_recv ? 1 : unisono::bus_factor(workload.collective, ranks);
}

bool has_in_place(const BenchWorkload& workload) {
  return !workload.send_recv && moves_data(workload.collective);
}

}  // namespace unisono::cli
