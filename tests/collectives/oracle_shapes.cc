// The shapes of the reference: the position of each part, for each collective and rank.
#include <algorithm>

#include "oracle.h"

namespace unisono::testing {
namespace {

// Element counts of the parts of a v-form: some are zero, some are long.
std::size_t uneven(const Case& one, int salt) {
  const std::uint64_t h = scramble(one.seed * 1000003 + static_cast<std::uint64_t>(salt));
  return h % 4 == 0 || one.count == 0 ? 0 : h / 4 % (2 * one.count) + 1;
}

// Packed in rank order, or in reverse order with gaps.
std::vector<std::size_t> offsets_of(const Case& one, const std::vector<std::size_t>& counts) {
  std::vector<std::size_t> offsets(counts.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t part = one.gaps ? counts.size() - 1 - i : i;
    offsets[part] = next;
    next += counts[part] + (one.gaps ? 1 + part % 3 : 0);
  }
  return offsets;
}

std::size_t extent(const std::vector<std::size_t>& offsets,
                   const std::vector<std::size_t>& counts) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    end = counts[i] == 0 ? end : std::max(end, offsets[i] + counts[i]);
  }
  return end;
}

void copies(Shape& shape, std::size_t to, int rank, std::size_t from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    shape.origins[to + i] = {.kind = Origin::Kind::copy, .rank = rank, .index = from + i};
  }
}

void reductions(Shape& shape, std::size_t from, int terms) {
  for (std::size_t i = 0; i < shape.out; ++i) {
    shape.origins[i] = {.kind = Origin::Kind::reduction, .terms = terms, .index = from + i};
  }
}

Collective plain(Collective collective) {
  switch (collective) {
    case Collective::scatter_v:
      return Collective::scatter;
    case Collective::gather_v:
      return Collective::gather;
    case Collective::all_gather_v:
      return Collective::all_gather;
    case Collective::reduce_scatter_v:
      return Collective::reduce_scatter;
    case Collective::all_to_all_v:
      return Collective::all_to_all;
    default:
      return collective;
  }
}

void shape_vector(const Case& one, int rank, Shape& shape) {
  const bool root = rank == one.root;
  shape.in = one.collective == Collective::broadcast && !root ? 0 : one.count;
  shape.out = one.collective == Collective::reduce && !root ? 0 : one.count;
  shape.origins.resize(shape.out);
  if (one.collective == Collective::broadcast) {
    copies(shape, 0, one.root, 0, one.count);
  } else if (one.collective == Collective::scan) {
    reductions(shape, 0, rank + 1);
  } else if (one.collective != Collective::exclusive_scan) {
    reductions(shape, 0, one.ranks);
  } else if (rank != 0 || one.op != ReduceOp::user) {
    reductions(shape, 0, rank);
  }
}

void shape_parts(const Case& one, int rank, Shape& shape) {
  const auto n = static_cast<std::size_t>(one.ranks);
  const auto me = static_cast<std::size_t>(rank);
  std::vector<std::size_t> counts(n, one.count);
  if (is_v(one.collective)) {
    for (std::size_t i = 0; i < n; ++i) {
      counts[i] = uneven(one, static_cast<int>(i));
    }
    shape.counts = counts;
  }
  const std::vector<std::size_t> offsets = offsets_of(one, counts);
  if (one.gaps) {
    shape.displs = offsets;
  }
  const std::size_t whole = extent(offsets, counts);
  const Collective collective = plain(one.collective);
  const bool root = rank == one.root;
  shape.own_offset = offsets[me];
  if (collective == Collective::scatter || collective == Collective::reduce_scatter) {
    shape.in = collective == Collective::scatter && !root ? 0 : whole;
    shape.out = counts[me];
    shape.origins.resize(shape.out);
    if (collective == Collective::scatter) {
      copies(shape, 0, one.root, offsets[me], counts[me]);
    } else {
      reductions(shape, offsets[me], one.ranks);
    }
    return;
  }
  shape.in = counts[me];
  shape.out = collective == Collective::gather && !root ? 0 : whole;
  shape.origins.resize(shape.out);
  for (std::size_t from = 0; shape.out != 0 && from < n; ++from) {
    copies(shape, offsets[from], static_cast<int>(from), 0, counts[from]);
  }
}

// Returns the number of elements that `from` sends to each rank.
std::vector<std::size_t> row_of(const Case& one, int from) {
  std::vector<std::size_t> row;
  for (int to = 0; to < one.ranks; ++to) {
    row.push_back(is_v(one.collective) ? uneven(one, from * one.ranks + to) : one.count);
  }
  return row;
}

void shape_pairs(const Case& one, int rank, Shape& shape) {
  const auto me = static_cast<std::size_t>(rank);
  const std::vector<std::size_t> send = row_of(one, rank);
  std::vector<std::size_t> receive;
  for (int from = 0; from < one.ranks; ++from) {
    receive.push_back(row_of(one, from)[me]);
  }
  const auto send_offsets = offsets_of(one, send);
  const auto receive_offsets = offsets_of(one, receive);
  shape.in = extent(send_offsets, send);
  shape.out = extent(receive_offsets, receive);
  shape.origins.resize(shape.out);
  for (int from = 0; from < one.ranks; ++from) {
    const auto i = static_cast<std::size_t>(from);
    copies(shape, receive_offsets[i], from, offsets_of(one, row_of(one, from))[me], receive[i]);
  }
  if (is_v(one.collective)) {
    shape.counts = send;
    shape.recv_counts = receive;
    if (one.gaps) {
      shape.displs = send_offsets;
      shape.recv_displs = receive_offsets;
    }
  }
}

}  // namespace

Shape shape_of(const Case& one, int rank) {
  Shape shape;
  switch (plain(one.collective)) {
    case Collective::barrier:
      break;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::all_reduce:
    case Collective::scan:
    case Collective::exclusive_scan:
      shape_vector(one, rank, shape);
      break;
    case Collective::all_to_all:
      shape_pairs(one, rank, shape);
      break;
    default:
      shape_parts(one, rank, shape);
      break;
  }
  return shape;
}

}  // namespace unisono::testing
