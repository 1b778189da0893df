// Two binary trees over the same ranks, for pipelines that use the whole bandwidth of every rank.
//
// The root is in neither tree. The other ranks, at positions 1 to q counted from the root, form two
// trees: a position that forwards data in one tree is a leaf of the other. In the first tree, odd
// positions are leaves, and the root of the subtree of positions 1..2^h-1 is the middle position.
// The second tree is the first tree mirrored for even q, and shifted by one place for odd q.
//
// Even chunks go down the first tree, odd chunks down the second. Every edge has a colour, 0 or 1.
// The two edges into a position have different colours, and so have the edges out of a position. A
// position uses its edges of colour 0 only in even steps and those of colour 1 only in odd steps,
// so it sends at most once and receives at most once per step.
#pragma once

#include <array>
#include <vector>

#include "algorithms/shapes.h"

namespace unisono::algorithms {

class TwoTrees {
 public:
  explicit TwoTrees(int ranks);

  // Returns the parent; 0 is the root. REQUIRES: tree is 0 or 1, position is 1 to ranks-1.
  static int parent(int ranks, int tree, int position);

  // Returns the step in which the first chunk of a tree reaches a position; further chunks follow
  // every second step.
  int arrival(int tree, int position) const {
    return arrival_[static_cast<std::size_t>(tree)][static_cast<std::size_t>(position)];
  }

 private:
  void colour(int ranks);

  std::array<std::vector<int>, 2> arrival_;
};

int two_tree_segments(int ranks);  // the default

// Returns the steps of a broadcast or a reduction: s + 2*ceil(log2(n)) - 2, or one less, for s
// segments.
int two_tree_steps(Shape shape);
// Returns the duration in messages. On a one-port network each step takes as long as one message.
// With three ranks it is one less: the last segment is forwarded without waiting for the step of
// its colour, because no other segment is due until then.
int two_tree_messages(Shape shape);

// Adds a broadcast from the root to the schedule, in the steps that follow; or the same in reverse,
// as a reduction.
void broadcast_two_trees(ScheduleBuilder& schedule, Shape shape,
                         std::source_location where = std::source_location::current());
void reduce_two_trees(ScheduleBuilder& schedule, Shape shape,
                      std::source_location where = std::source_location::current());

// Returns true if the edge leads down one of the trees (and, below, down the tree of the chunk).
bool is_two_tree_edge(Shape shape, int from, int to);
bool is_two_tree_route(Shape shape, int from, int to, int chunk);

// Returns the most chunks that a rank sends down: a position with two children, or the root.
int two_tree_fan_out(Shape shape);

}  // namespace unisono::algorithms
