#include "unisono/tree_sum.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/kernels.h"
#include "schedule/tree_order.h"
#include "unisono/error.hpp"

namespace unisono {
namespace {

// Where the two terms of the sum over leaves [first, end) meet. REQUIRES: at least two leaves.
std::size_t middle_of(std::size_t first, std::size_t end) {
  return first + std::bit_floor(end - first - 1);
}

// Are the sums of [a, b) and [b, c) the terms of an addition in tree(0, leaves)?
bool are_terms(std::size_t a, std::size_t b, std::size_t c, std::size_t leaves) {
  std::size_t first = 0;
  std::size_t end = leaves;
  while (end - first >= 2) {
    const std::size_t middle = middle_of(first, end);
    if (first == a && end == c) {
      return middle == b;
    }
    if (c <= middle) {
      end = middle;
    } else if (a >= middle) {
      first = middle;
    } else {
      return false;
    }
  }
  return false;
}

// Adds the last two nodes while they are the terms of an addition. `add(lower, upper)` leaves the
// sum in the lower one.
template <typename Node, typename Add>
void settle(std::vector<Node>& nodes, std::size_t leaves, const Add& add) {
  while (nodes.size() >= 2) {
    Node& lower = nodes[nodes.size() - 2];
    Node& upper = nodes.back();
    if (!are_terms(lower.first, lower.end, upper.end, leaves)) {
      return;
    }
    add(lower, upper);
    lower.end = upper.end;
    nodes.pop_back();
  }
}

struct Range {
  std::size_t first = 0;
  std::size_t end = 0;
};

// Appends the largest nodes of the tree over `whole` that lie inside `part`, from left to right.
void append_subtrees(Range whole, Range part, std::vector<Range>& subtrees) {
  if (part.first >= whole.end || part.end <= whole.first || part.first == part.end) {
    return;
  }
  if (part.first <= whole.first && whole.end <= part.end) {
    subtrees.push_back(whole);
    return;
  }
  const std::size_t middle = middle_of(whole.first, whole.end);
  append_subtrees({whole.first, middle}, part, subtrees);
  append_subtrees({middle, whole.end}, part, subtrees);
}

// Is the tree over the leaves that over the ranks, where every rank has one subtree?
bool is_tree_of_ranks(const std::vector<std::size_t>& starts, std::size_t first, std::size_t end) {
  if (end - first == 1) {
    return true;
  }
  const std::size_t middle = middle_of(first, end);
  return starts[first] < starts[middle] && starts[middle] < starts[end] &&
         middle_of(starts[first], starts[end]) == starts[middle] &&
         is_tree_of_ranks(starts, first, middle) && is_tree_of_ranks(starts, middle, end);
}

// Part i of n begins at element places[i].
std::vector<std::size_t> even_places(std::size_t count, std::size_t parts) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i <= parts; ++i) {
    places.push_back(count / parts * i + std::min(i, count % parts));
  }
  return places;
}

std::vector<std::size_t> lengths_of(const std::vector<std::size_t>& places) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i + 1 < places.size(); ++i) {
    lengths.push_back(places[i + 1] - places[i]);
  }
  return lengths;
}

[[noreturn]] void refuse_leaves(const std::string& what, const std::string& hint) {
  throw Error(ErrorCode::usage, "TreeSum: " + what + "\n" + hint);
}

void add_to(Dtype dtype, std::size_t count, std::byte* lower, const std::byte* upper) {
  void* const target = lower;
  const void* const sources[] = {lower, upper};
  kernels::find_reduce(dtype, ReduceOp::sum)(&target, 1, sources, 2, count, kernels::Store::cached);
}

}  // namespace

TreeSum::TreeSum(const Shape& shape) : shape_(shape), next_(shape.first) {
  if (kernels::find_reduce(shape.dtype, ReduceOp::sum) == nullptr) {
    refuse_leaves("sum of " + std::string(to_string(shape.dtype)) + " is not defined",
                  "see `unisono list --dtypes` for the types that have sums");
  }
  if (shape.leaves == 0 || shape.first > shape.leaves) {
    refuse_leaves(
        "leaf " + std::to_string(shape.first) + " is not one of " + std::to_string(shape.leaves) +
            " leaves",
        "`leaves` counts those of all ranks, and `first` is the number of this rank's first one");
  }
}

void TreeSum::add(const void* leaf) {
  if (next_ == shape_.leaves) {
    refuse_leaves(
        "leaf " + std::to_string(next_) + " is not one of " + std::to_string(next_) + " leaves",
        "give `leaves` the number of leaves of all ranks");
  }
  const auto* const bytes = static_cast<const std::byte*>(leaf);
  nodes_.push_back({.first = next_,
                    .end = next_ + 1,
                    .sum = {bytes, bytes + shape_.count * size_of(shape_.dtype)}});
  ++next_;
  settle(nodes_, shape_.leaves, [this](Node& lower, const Node& upper) {
    add_to(shape_.dtype, shape_.count, lower.sum.data(), upper.sum.data());
  });
}

void TreeSum::sum(void* out) const {
  if (shape_.first != 0 || next_ != shape_.leaves) {
    refuse_leaves("has leaves " + std::to_string(shape_.first) + " to " + std::to_string(next_) +
                      " of " + std::to_string(shape_.leaves),
                  "add all leaves, or sum those of all ranks with all_reduce()");
  }
  if (const std::vector<std::byte>& sum = nodes_.front().sum; !sum.empty()) {
    std::memcpy(out, sum.data(), sum.size());
  }
}

// Returns the first leaf of each rank, and the number of all.
std::vector<std::size_t> TreeSum::starts_of(const Communicator& communicator,
                                            std::span<const std::size_t> leaves) const {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  if (leaves.size() != ranks) {
    refuse_leaves("got the leaves of " + std::to_string(leaves.size()) + " ranks, not of " +
                      std::to_string(ranks),
                  "list how many leaves each rank of the communicator has");
  }
  std::vector<std::size_t> starts = {0};
  for (const std::size_t count : leaves) {
    starts.push_back(starts.back() + count);
  }
  const auto rank = static_cast<std::size_t>(communicator.rank());
  if (starts.back() != shape_.leaves || starts[rank] != shape_.first || starts[rank + 1] != next_) {
    refuse_leaves("rank " + std::to_string(rank) + " has leaves " + std::to_string(shape_.first) +
                      " to " + std::to_string(next_) + " of " + std::to_string(shape_.leaves) +
                      ", and the list says " + std::to_string(starts[rank]) + " to " +
                      std::to_string(starts[rank + 1]) + " of " + std::to_string(starts.back()),
                  "ranks hold neighbouring leaves, in rank order");
  }
  return starts;
}

// Returns this rank's part of the sum. Every rank sends each other one that one's part of all its
// subtrees.
std::vector<std::byte> TreeSum::exchange(Communicator& communicator,
                                         const std::vector<std::size_t>& starts,
                                         const std::vector<std::size_t>& places) const {
  const std::size_t element = size_of(shape_.dtype);
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const std::size_t mine = places[rank + 1] - places[rank];

  std::vector<std::size_t> sent;
  std::vector<std::byte> in;
  for (std::size_t to = 0; to < ranks; ++to) {
    sent.push_back(nodes_.size() * (places[to + 1] - places[to]));
    for (const Node& node : nodes_) {
      in.insert(in.end(), node.sum.begin() + static_cast<std::ptrdiff_t>(places[to] * element),
                node.sum.begin() + static_cast<std::ptrdiff_t>(places[to + 1] * element));
    }
  }
  std::vector<std::size_t> received;
  std::vector<Range> subtrees;
  for (std::size_t from = 0; from < ranks; ++from) {
    const std::size_t before = subtrees.size();
    append_subtrees({0, shape_.leaves}, {starts[from], starts[from + 1]}, subtrees);
    received.push_back((subtrees.size() - before) * mine);
  }
  std::vector<std::byte> out(subtrees.size() * mine * element);
  communicator.run({.collective = Collective::all_to_all_v,
                    .in = in.data(),
                    .out = out.data(),
                    .dtype = shape_.dtype,
                    .counts = sent,
                    .recv_counts = received});

  struct Part {
    std::size_t first = 0;
    std::size_t end = 0;
    std::byte* sum = nullptr;
  };
  std::vector<Part> parts;
  std::byte* next = out.data();
  for (const Range& subtree : subtrees) {
    parts.push_back({.first = subtree.first, .end = subtree.end, .sum = next});
    next += mine * element;
    settle(parts, shape_.leaves, [&](const Part& lower, const Part& upper) {
      add_to(shape_.dtype, mine, lower.sum, upper.sum);
    });
  }
  out.resize(mine * element);
  return out;
}

void TreeSum::all_reduce(Communicator& communicator, std::span<const std::size_t> leaves,
                         void* out) const {
  const std::vector<std::size_t> starts = starts_of(communicator, leaves);
  if (is_tree_of_ranks(starts, 0, leaves.size())) {
    communicator.run({.collective = Collective::all_reduce,
                      .in = nodes_.front().sum.data(),
                      .out = out,
                      .count = shape_.count,
                      .dtype = shape_.dtype,
                      .algorithm = kTreeOrder});
    return;
  }
  const std::vector<std::size_t> places = even_places(shape_.count, leaves.size());
  const std::vector<std::byte> part = exchange(communicator, starts, places);
  const std::vector<std::size_t> lengths = lengths_of(places);
  communicator.run({.collective = Collective::all_gather_v,
                    .in = part.data(),
                    .out = out,
                    .dtype = shape_.dtype,
                    .counts = lengths});
}

void TreeSum::reduce_scatter(Communicator& communicator, std::span<const std::size_t> leaves,
                             void* out) const {
  const std::vector<std::size_t> starts = starts_of(communicator, leaves);
  if (shape_.count % leaves.size() != 0) {
    refuse_leaves(std::to_string(shape_.count) + " elements cannot be split between " +
                      std::to_string(leaves.size()) + " ranks",
                  "pad the leaves");
  }
  if (is_tree_of_ranks(starts, 0, leaves.size())) {
    communicator.run({.collective = Collective::reduce_scatter,
                      .in = nodes_.front().sum.data(),
                      .out = out,
                      .count = shape_.count / leaves.size(),
                      .dtype = shape_.dtype,
                      .algorithm = kTreeOrder});
    return;
  }
  const std::vector<std::byte> part =
      exchange(communicator, starts, even_places(shape_.count, leaves.size()));
  if (!part.empty()) {
    std::memcpy(out, part.data(), part.size());
  }
}

}  // namespace unisono
