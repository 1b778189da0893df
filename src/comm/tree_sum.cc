#include "unisono/tree_sum.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "base/leaf_tree.h"
#include "kernels/kernels.h"
#include "schedule/node_sum.h"
#include "schedule/tree_order.h"
#include "unisono/error.hpp"

namespace unisono {
namespace {

// Returns true if each of the ranks [first, end) has one subtree of the tree over their leaves, and
// if these subtrees are joined as in the tree over the ranks.
bool is_tree_of_ranks(std::span<const std::size_t> starts, std::size_t first, std::size_t end) {
  if (end - first == 1) {
    return starts[first] < starts[end];
  }
  const std::size_t middle = middle_of(first, end);
  return starts[first] < starts[middle] && starts[middle] < starts[end] &&
         middle_of(starts[first], starts[end]) == starts[middle] &&
         is_tree_of_ranks(starts, first, middle) && is_tree_of_ranks(starts, middle, end);
}

// As above, for leaves that are listed by rank and may be only some of all leaves.
bool is_tree_of_ranks(std::span<const Leaves> leaves, std::size_t all) {
  std::vector<std::size_t> starts = {leaves.front().first};
  for (const Leaves& one : leaves) {
    if (one.first != starts.back()) {
      return false;
    }
    starts.push_back(one.first + one.count);
  }
  return is_tree_of_ranks(starts, 0, leaves.size()) &&
         is_node({starts.front(), starts.back()}, all);
}

std::vector<Leaves> in_rank_order(std::span<const std::size_t> counts) {
  std::vector<Leaves> leaves;
  std::size_t next = 0;
  for (const std::size_t count : counts) {
    leaves.push_back({.first = next, .count = count});
    next += count;
  }
  return leaves;
}

std::vector<std::size_t> even_parts(std::size_t count, std::size_t parts) {
  std::vector<std::size_t> lengths(parts, count / parts);
  std::fill_n(lengths.begin(), count % parts, count / parts + 1);
  return lengths;
}

[[noreturn]] void refuse_leaves(const std::string& what, const std::string& hint) {
  throw Error(ErrorCode::usage, "TreeSum: " + what + "\n" + hint);
}

std::string range_text(std::size_t first, std::size_t end, std::size_t all) {
  return std::to_string(first) + " to " + std::to_string(end) + " of " + std::to_string(all);
}

void add_to(Dtype dtype, std::size_t count, std::byte* lower, const std::byte* upper) {
  void* const target = lower;
  const void* const sources[] = {lower, upper};
  kernels::find_reduce(dtype, ReduceOp::sum)(&target, 1, sources, 2, count, kernels::Store::cached);
}

}  // namespace

std::vector<Leaves> even_leaves(std::size_t leaves, int ranks) {
  std::vector<Leaves> all;
  const auto n = static_cast<std::size_t>(ranks);
  for (std::size_t rank = 0; rank < n; ++rank) {
    const std::size_t first = leaves * rank / n;
    all.push_back({.first = first, .count = leaves * (rank + 1) / n - first});
  }
  return all;
}

std::vector<Leaves> subtrees(std::size_t leaves, const Leaves& mine) {
  std::vector<Leaves> nodes;
  for (const LeafRange& node : subtrees_of(leaves, {mine.first, mine.first + mine.count})) {
    nodes.push_back({.first = node.first, .count = node.end - node.first});
  }
  return nodes;
}

// The memory of the call, and its results.
struct TreeSum::Scattering::State {
  Shape shape = {};                      // of the part
  std::vector<LeafRange> arriving = {};  // nodes, in the order of `out`
  std::vector<std::byte> in = {};
  std::vector<std::byte> out = {};
  std::vector<std::size_t> sent = {};
  std::vector<std::size_t> received = {};
  Request request = {};  // last: its destructor waits
};

TreeSum::Scattering::Scattering() = default;
TreeSum::Scattering::Scattering(Scattering&&) noexcept = default;
TreeSum::Scattering& TreeSum::Scattering::operator=(Scattering&&) noexcept = default;
TreeSum::Scattering::~Scattering() = default;

TreeSum TreeSum::Scattering::finish() {
  State& state = *state_;
  state.request.wait();
  TreeSum part(state.shape);
  const std::size_t bytes = state.shape.count * size_of(state.shape.dtype);
  const auto node_at = [&](std::size_t place) { return state.out.data() + place * bytes; };
  const NodeSum nodes = sum_of_nodes(state.shape.leaves, state.arriving);
  for (const Move& addition : nodes.schedule.moves) {
    add_to(state.shape.dtype, state.shape.count, node_at(static_cast<std::size_t>(addition.to)),
           node_at(static_cast<std::size_t>(addition.from)));
  }
  for (const NodeSum::Kept& node : nodes.kept) {
    const std::byte* const from = node_at(node.place);
    part.nodes_.push_back({.first = node.first, .end = node.end, .sum = {from, from + bytes}});
  }
  if (!part.nodes_.empty()) {
    part.shape_.first = part.nodes_.front().first;
    part.next_ = part.nodes_.back().end;
  }
  state_.reset();
  return part;
}

TreeSum::TreeSum(const Shape& shape) : shape_(shape), next_(shape.first) {
  if (kernels::find_reduce(shape.dtype, ReduceOp::sum) == nullptr) {
    refuse_leaves("sum of " + std::string(to_string(shape.dtype)) + " is not defined",
                  "see `unisono list --dtypes` for the types that have sums");
  }
  if (shape.leaves == 0 || shape.first > shape.leaves) {
    refuse_leaves(
        "leaf " + std::to_string(shape.first) + " is not one of " + std::to_string(shape.leaves) +
            " leaves",
        "`leaves` counts the leaves of all ranks, and `first` is the number of this rank's first "
        "leaf");
  }
}

void TreeSum::add(std::size_t number, const void* leaf) {
  add({.first = number, .count = 1}, leaf);
}

void TreeSum::add(const Leaves& node, const void* sum) {
  const std::size_t end = node.first + node.count;
  if (node.first >= shape_.leaves || end > shape_.leaves || end < node.first) {
    refuse_leaves("leaf " + std::to_string(std::max(node.first, shape_.leaves)) +
                      " is not one of " + std::to_string(shape_.leaves) + " leaves",
                  "give `leaves` the number of leaves of all ranks");
  }
  if (!is_node({node.first, end}, shape_.leaves)) {
    refuse_leaves(
        "leaves " + range_text(node.first, end, shape_.leaves) + " are no node of the tree",
        "add the nodes that subtrees() lists");
  }
  // The first node whose end lies behind the new first leaf.
  const auto after = std::ranges::upper_bound(nodes_, node.first, {}, &Node::end);
  if (after != nodes_.end() && after->first < end) {
    refuse_leaves("leaf " + std::to_string(std::max(node.first, after->first)) + " is added twice",
                  "add each leaf once");
  }
  const auto* const bytes = static_cast<const std::byte*>(sum);
  next_ = end;
  insert_node(nodes_,
              {.first = node.first,
               .end = end,
               .sum = {bytes, bytes + shape_.count * size_of(shape_.dtype)}},
              shape_.leaves, [this](Node& lower, const Node& upper) {
                add_to(shape_.dtype, shape_.count, lower.sum.data(), upper.sum.data());
              });
}

void TreeSum::sum(void* out) const {
  if (nodes_.size() != 1 || nodes_.front().first != 0 || nodes_.front().end != shape_.leaves) {
    refuse_leaves(nodes_.empty() ? "has no leaf"
                                 : "has leaves " + range_text(nodes_.front().first,
                                                              nodes_.back().end, shape_.leaves),
                  "add all leaves, or sum the leaves of all ranks with all_reduce()");
  }
  if (const std::vector<std::byte>& sum = nodes_.front().sum; !sum.empty()) {
    std::memcpy(out, sum.data(), sum.size());
  }
}

// Throws if the list contradicts this rank's leaves, names a leaf twice, or, with `are_all`, does
// not contain all leaves.
void TreeSum::check(const Communicator& communicator, std::span<const Leaves> leaves,
                    bool are_all) const {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  if (leaves.size() != ranks) {
    refuse_leaves("got the leaves of " + std::to_string(leaves.size()) + " ranks, not of " +
                      std::to_string(ranks),
                  "list how many leaves each rank of the communicator has");
  }
  const Leaves mine = leaves[static_cast<std::size_t>(communicator.rank())];
  std::size_t listed = 0;
  for (const Leaves& one : leaves) {
    listed += one.count;
  }
  const std::size_t all = are_all ? listed : shape_.leaves;
  std::size_t here = 0;
  for (const Node& node : nodes_) {
    here += node.end - node.first;
  }
  const std::size_t first = nodes_.empty() ? mine.first : nodes_.front().first;
  const std::size_t end = nodes_.empty() ? mine.first : nodes_.back().end;
  if (mine.first != first || mine.count != end - first || here != mine.count ||
      mine.first + mine.count > shape_.leaves || all != shape_.leaves) {
    refuse_leaves("rank " + std::to_string(communicator.rank()) + " has leaves " +
                      range_text(first, end, shape_.leaves) +
                      (here == end - first ? "" : ", but not all of them") +
                      ", and the list says " + range_text(mine.first, mine.first + mine.count, all),
                  "add the leaves that the list names for this rank");
  }
  std::vector<Leaves> sorted(leaves.begin(), leaves.end());
  std::erase_if(sorted, [](const Leaves& one) { return one.count == 0; });
  std::ranges::sort(sorted, {}, &Leaves::first);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1].first + sorted[i - 1].count > sorted[i].first) {
      refuse_leaves("the list gives leaf " + std::to_string(sorted[i].first) + " to two ranks",
                    "each leaf belongs to one rank");
    }
  }
}

// Sends each other rank that rank's part of all subtrees of this rank.
TreeSum::Scattering TreeSum::exchange(Communicator& communicator, std::span<const Leaves> leaves,
                                      std::span<const std::size_t> parts) const {
  const std::size_t element = size_of(shape_.dtype);
  const std::size_t mine = parts[static_cast<std::size_t>(communicator.rank())];
  Scattering scattering;
  scattering.state_ = std::make_unique<Scattering::State>();
  Scattering::State* const state = scattering.state_.get();
  state->shape = {.dtype = shape_.dtype, .count = mine, .leaves = shape_.leaves, .first = 0};
  std::size_t place = 0;
  for (const std::size_t part : parts) {
    state->sent.push_back(nodes_.size() * part);
    for (const Node& node : nodes_) {
      const std::byte* const from = node.sum.data() + place * element;
      state->in.insert(state->in.end(), from, from + part * element);
    }
    place += part;
  }
  for (const Leaves& one : leaves) {
    const std::vector<LeafRange> nodes =
        subtrees_of(shape_.leaves, {one.first, one.first + one.count});
    state->arriving.insert(state->arriving.end(), nodes.begin(), nodes.end());
    state->received.push_back(nodes.size() * mine);
  }
  state->out.resize(state->arriving.size() * mine * element);
  state->request = communicator.run_async({.collective = Collective::all_to_all_v,
                                           .in = state->in.data(),
                                           .out = state->out.data(),
                                           .dtype = shape_.dtype,
                                           .counts = state->sent,
                                           .recv_counts = state->received});
  return scattering;
}

TreeSum::Scattering TreeSum::scatter_async(Communicator& communicator,
                                           std::span<const Leaves> leaves,
                                           std::span<const std::size_t> parts) && {
  check(communicator, leaves, false);
  if (parts.size() != leaves.size() ||
      std::accumulate(parts.begin(), parts.end(), std::size_t{0}) != shape_.count) {
    refuse_leaves("the parts of " + std::to_string(parts.size()) + " ranks are not " +
                      std::to_string(shape_.count) + " elements together",
                  "give each rank of the communicator its part of a leaf");
  }
  const std::size_t mine = parts[static_cast<std::size_t>(communicator.rank())];
  Scattering scattering;
  if (is_tree_of_ranks(leaves, shape_.leaves)) {
    scattering.state_ = std::make_unique<Scattering::State>();
    Scattering::State& state = *scattering.state_;
    state.shape = {.dtype = shape_.dtype, .count = mine, .leaves = shape_.leaves, .first = 0};
    std::size_t all = 0;
    for (const Leaves& one : leaves) {
      all += one.count;
    }
    state.arriving = {{.first = leaves.front().first, .end = leaves.front().first + all}};
    state.in = std::move(nodes_.front().sum);
    state.out.resize(mine * size_of(shape_.dtype));
    state.sent.assign(parts.begin(), parts.end());
    state.request = communicator.run_async({.collective = Collective::reduce_scatter_v,
                                            .in = state.in.data(),
                                            .out = state.out.data(),
                                            .dtype = shape_.dtype,
                                            .counts = state.sent,
                                            .algorithm = kTreeOrder});
  } else {
    scattering = exchange(communicator, leaves, parts);
  }
  nodes_.clear();
  return scattering;
}

void TreeSum::all_reduce(Communicator& communicator, std::span<const std::size_t> leaves,
                         void* out) const {
  all_reduce(communicator, in_rank_order(leaves), out);
}

void TreeSum::all_reduce(Communicator& communicator, std::span<const Leaves> leaves,
                         void* out) const {
  check(communicator, leaves, true);
  if (is_tree_of_ranks(leaves, shape_.leaves)) {
    communicator.run({.collective = Collective::all_reduce,
                      .in = nodes_.front().sum.data(),
                      .out = out,
                      .count = shape_.count,
                      .dtype = shape_.dtype,
                      .algorithm = kTreeOrder});
    return;
  }
  const std::vector<std::size_t> parts = even_parts(shape_.count, leaves.size());
  Scattering scattering = exchange(communicator, leaves, parts);
  std::vector<std::byte> part(scattering.state_->shape.count * size_of(shape_.dtype));
  scattering.finish().sum(part.data());
  communicator.run({.collective = Collective::all_gather_v,
                    .in = part.data(),
                    .out = out,
                    .dtype = shape_.dtype,
                    .counts = parts});
}

void TreeSum::reduce(Communicator& communicator, std::span<const std::size_t> leaves, int root,
                     void* out) const {
  const std::vector<Leaves> all = in_rank_order(leaves);
  check(communicator, all, true);
  if (root < 0 || root >= communicator.size()) {
    refuse_leaves("rank " + std::to_string(root) + " is not one of " +
                      std::to_string(communicator.size()) + " ranks",
                  "give `root` a rank of the communicator");
  }
  if (is_tree_of_ranks(all, shape_.leaves)) {
    communicator.run({.collective = Collective::reduce,
                      .in = nodes_.front().sum.data(),
                      .out = out,
                      .count = shape_.count,
                      .dtype = shape_.dtype,
                      .root = root,
                      .algorithm = kTreeOrder});
    return;
  }
  std::vector<std::size_t> parts(all.size());
  parts[static_cast<std::size_t>(root)] = shape_.count;
  const TreeSum part = exchange(communicator, all, parts).finish();
  if (communicator.rank() == root) {
    part.sum(out);
  }
}

void TreeSum::reduce_scatter(Communicator& communicator, std::span<const std::size_t> leaves,
                             void* out) const {
  const std::vector<Leaves> all = in_rank_order(leaves);
  check(communicator, all, true);
  if (shape_.count % leaves.size() != 0) {
    refuse_leaves(std::to_string(shape_.count) + " elements cannot be split between " +
                      std::to_string(leaves.size()) + " ranks",
                  "pad the leaves");
  }
  if (is_tree_of_ranks(all, shape_.leaves)) {
    communicator.run({.collective = Collective::reduce_scatter,
                      .in = nodes_.front().sum.data(),
                      .out = out,
                      .count = shape_.count / leaves.size(),
                      .dtype = shape_.dtype,
                      .algorithm = kTreeOrder});
    return;
  }
  exchange(communicator, all, even_parts(shape_.count, leaves.size())).finish().sum(out);
}

}  // namespace unisono
