// Formats and parses placements; computes each rank's share of a dimension, of the heads and of a
// sequence.
#include <string>

#include "unisono/error.hpp"
#include "unisono/parallel/context_parallel.hpp"
#include "unisono/parallel/placement.hpp"
#include "unisono/parallel/tensor_parallel.hpp"

namespace unisono::parallel {
namespace {

void append(std::vector<std::size_t>& positions, const Range& range) {
  for (std::size_t i = 0; i < range.count; ++i) {
    positions.push_back(range.first + i);
  }
}

}  // namespace

Range shard_range(std::size_t size, int ranks, int rank) {
  const auto n = static_cast<std::size_t>(ranks);
  const auto r = static_cast<std::size_t>(rank);
  // Computes size * part / n without overflowing 64 bits.
  const auto begin = [&](std::size_t part) { return size / n * part + size % n * part / n; };
  return {.first = begin(r), .count = begin(r + 1) - begin(r)};
}

std::string to_string(const Placement& placement) {
  switch (placement.kind) {
    case Placement::Kind::replicate:
      return "replicate";
    case Placement::Kind::shard:
      return "shard(" + std::to_string(placement.dim) + ")";
    case Placement::Kind::partial:
      return "partial(" + std::string(unisono::to_string(placement.op)) + ")";
  }
  return "?";
}

HeadShare head_share(std::size_t heads, std::size_t key_value_heads, int ranks, int rank,
                     bool even) {
  const auto refuse = [&](const std::string& what, const std::string& next) {
    throw Error(ErrorCode::usage, "heads: " + what + "\n" + next, {.rank = rank});
  };
  if (key_value_heads == 0 || heads % key_value_heads != 0) {
    refuse(std::to_string(heads) + " heads cannot share " + std::to_string(key_value_heads) +
               " key-value heads evenly",
           "choose key-value heads that divide the heads");
  }
  if (heads < static_cast<std::size_t>(ranks) ||
      (even && heads % static_cast<std::size_t>(ranks) != 0)) {
    refuse(std::to_string(heads) + " heads cannot be divided among " + std::to_string(ranks) +
               " ranks",
           "make the axis smaller");
  }
  const std::size_t group = heads / key_value_heads;
  const Range query = shard_range(heads, ranks, rank);
  const std::size_t first = query.first / group;
  const std::size_t last = (query.first + query.count - 1) / group;
  return {.query = query,
          .key_value = {.first = first, .count = last - first + 1},
          .heads_per_key = group,
          .offset = query.first - first * group};
}

std::vector<std::size_t> context_positions(ContextOrder order, std::size_t length, int ranks,
                                           int rank) {
  std::vector<std::size_t> positions;
  switch (order) {
    case ContextOrder::contiguous:
      append(positions, shard_range(length, ranks, rank));
      break;
    case ContextOrder::zigzag:
      append(positions, shard_range(length, 2 * ranks, rank));
      append(positions, shard_range(length, 2 * ranks, 2 * ranks - 1 - rank));
      break;
    case ContextOrder::striped:
      for (auto at = static_cast<std::size_t>(rank); at < length;
           at += static_cast<std::size_t>(ranks)) {
        positions.push_back(at);
      }
      break;
  }
  return positions;
}

std::size_t causal_work(ContextOrder order, std::size_t length, int ranks, int rank) {
  std::size_t pairs = 0;
  for (const std::size_t position : context_positions(order, length, ranks, rank)) {
    pairs += position + 1;
  }
  return pairs;
}

}  // namespace unisono::parallel
