// Two binary trees over the same ranks, for pipelines that use the whole bandwidth of every rank.
//
// The root stands apart. The others, positions 1 to q counted from it, form two trees: a position
// that passes data on in one is a leaf of the other. In the first tree odd positions are leaves,
// and the position of the subtree 1..2^h-1 is its middle. The second is the first seen in a mirror
// for even q, and moved by one place for odd q.
//
// Even chunks go down the first tree, odd ones down the second. Every edge has a colour, 0 or 1, so
// that the two edges into a position differ, and the edges out of one: a position sends and
// receives along an edge of colour c in the steps of that parity only, and so at most once in a
// step.
#pragma once

#include <array>
#include <vector>

#include "algorithms/shapes.h"

namespace unisono::algorithms {

class TwoTrees {
 public:
  explicit TwoTrees(int ranks);

  // 0 is the root. REQUIRES: tree 0 or 1, position 1 to ranks-1.
  static int parent(int ranks, int tree, int position);

  // The step in which the first chunk of a tree reaches a position; the next ones follow every
  // second step.
  int arrival(int tree, int position) const {
    return arrival_[static_cast<std::size_t>(tree)][static_cast<std::size_t>(position)];
  }

 private:
  void colour(int ranks);

  std::array<std::vector<int>, 2> arrival_;
};

int two_tree_segments(int ranks);  // the default

// A broadcast or a reduction takes s + 2*ceil(log2(n)) - 2 steps, or one less, for s segments.
int two_tree_steps(Shape shape);
// On a one-port network each step takes as long as a message. With three ranks, one less: the last
// segment is passed on without waiting for the step of its colour, in which no other is due.
int two_tree_messages(Shape shape);

// Broadcast from the root, in the steps that follow; or the same backwards, as a reduction.
void broadcast_two_trees(ScheduleBuilder& schedule, Shape shape,
                         std::source_location where = std::source_location::current());
void reduce_two_trees(ScheduleBuilder& schedule, Shape shape,
                      std::source_location where = std::source_location::current());

// Down one of the trees? And is it the one of the chunk?
bool is_two_tree_edge(Shape shape, int from, int to);
bool is_two_tree_route(Shape shape, int from, int to, int chunk);

// The most chunks that a rank passes down: a position with two children, or the root.
int two_tree_fan_out(Shape shape);

}  // namespace unisono::algorithms
