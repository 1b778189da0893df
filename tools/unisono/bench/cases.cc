#include "bench/cases.h"

#include <algorithm>
#include <numeric>

#include "schedule/schedule.h"

namespace unisono::cli {
namespace {

std::size_t as_size(int value) {
  return static_cast<std::size_t>(value);
}

std::size_t before(const std::vector<std::size_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
}

// The parts of one rank each: `own` of this rank, `total` of all.
struct Parts {
  std::size_t own = 0;
  std::size_t total = 0;
  std::size_t offset = 0;  // of this rank's part in the whole
};

void place_parts(const Case& row, int rank, const Parts& parts, Layout& layout) {
  const bool is_root = rank == row.root;
  switch (plain_form(row.workload.collective)) {
    case Collective::scatter:
      layout.in_count = is_root ? parts.total : 0;
      layout.out_count = parts.own;
      layout.out_offset = is_root ? parts.offset : 0;
      break;
    case Collective::gather:
      layout.in_count = parts.own;
      layout.in_offset = is_root ? parts.offset : 0;
      layout.out_count = is_root ? parts.total : 0;
      break;
    case Collective::all_gather:
      layout.in_count = parts.own;
      layout.in_offset = parts.offset;
      layout.out_count = parts.total;
      break;
    case Collective::reduce_scatter:
      layout.in_count = parts.total;
      layout.out_count = parts.own;
      layout.out_offset = parts.offset;
      break;
    default:  // all_to_all
      layout.in_count = parts.total;
      layout.out_count = parts.total;
      break;
  }
}

void place_vector(const Case& row, int rank, std::size_t count, Layout& layout) {
  const bool is_root = rank == row.root;
  const Collective collective = row.workload.collective;
  layout.count = count;
  layout.in_count = collective == Collective::broadcast && !is_root ? 0 : count;
  layout.out_count = collective == Collective::reduce && !is_root ? 0 : count;
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

Layout layout_of(const Case& row, int rank, int ranks) {
  Layout layout;
  const std::size_t element = size_of(row.dtype);
  const Collective collective = row.workload.collective;
  if (!row.workload.send_recv && collective == Collective::barrier) {
    return layout;
  }
  const std::size_t wanted = static_cast<std::size_t>(row.bytes / element);
  const std::size_t total = row.bytes == 0 ? 0 : std::max<std::size_t>(1, wanted);
  if (row.workload.send_recv || collective == Collective::broadcast ||
      collective == Collective::reduce || collective == Collective::all_reduce) {
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
      const bool pairs = collective == Collective::all_to_all_v;
      layout.counts.push_back(uneven_share(total, ranks, pairs ? (rank + part) % ranks : part));
    }
    if (collective == Collective::all_to_all_v) {
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

double bus_factor(const Workload& workload, int ranks) {
  const double n = ranks;
  if (workload.send_recv) {
    return 1;
  }
  switch (plain_form(workload.collective)) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

bool has_in_place(const Workload& workload) {
  return !workload.send_recv && workload.collective != Collective::barrier;
}

}  // namespace unisono::cli
