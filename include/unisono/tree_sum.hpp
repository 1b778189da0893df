// Sums over a fixed tree of leaves, with the same bits for any number of ranks.
//
// A leaf is the smallest summand that exists under every layout, such as the gradient of a
// microbatch or the product of a block of the inner dimension. Leaves are numbered 0, ..., L-1.
// Each rank holds consecutive leaves, in rank order. The sum is tree(0, L):
//
//   tree(a, b) = tree(a, m) + tree(m, b), where m - a is the largest power of two below b - a
//   tree(a, a+1) = leaf a
//
// Each addition rounds to the data type.
//
//   const std::vector<std::size_t> leaves = {4, 4, 4, 4};  // microbatches of each rank
//   unisono::TreeSum sum({.count = gradient.size(), .leaves = 16, .first = 4 * rank});
//   for (each microbatch of this rank) sum.add(gradient.data());
//   sum.all_reduce(communicator, leaves, gradient.data());
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/types.hpp"

namespace unisono {

// Consecutive leaves of one rank.
struct Leaves {
  std::size_t first = 0;
  std::size_t count = 0;
  bool operator==(const Leaves&) const = default;
};

// Local. Splits the leaves as evenly as possible. Returns the leaves of each rank: rank r has
// leaves [L * r / n, L * (r+1) / n).
UNISONO_EXPORT std::vector<Leaves> even_leaves(std::size_t leaves, int ranks);

// Local. Returns the largest nodes of tree(0, leaves) whose leaves are all among `mine`, from left
// to right. The sum of a node is tree(0, count) over the node's leaves, so no other leaves are
// needed to compute this sum.
UNISONO_EXPORT std::vector<Leaves> subtrees(std::size_t leaves, const Leaves& mine);

// The running sum of one rank's leaves. Two sums are added as soon as both exist. If the leaves are
// added in order, a TreeSum therefore holds at most 2 * log2(L) vectors.
// Threads: one at a time.
class UNISONO_EXPORT TreeSum {
 public:
  struct Shape {  // The leaves that a TreeSum adds.
    Dtype dtype = Dtype::f32;
    std::size_t count = 0;   // elements of a leaf
    std::size_t leaves = 1;  // L: the leaves of all ranks
    std::size_t first = 0;   // the number of the first leaf for add(leaf)
  };
  // Local.
  // Errors: usage.
  explicit TreeSum(const Shape& shape);

  const Shape& shape() const { return shape_; }  // Local.

  // Local. Adds leaf number next(), or leaf number `number`. Reads `leaf` only during the call.
  // Leaves may be added in any order.
  // Shapes: count elements.
  // Errors: usage for a leaf that does not exist or was added before.
  void add(const void* leaf) { add(next_, leaf); }
  void add(std::size_t number, const void* leaf);
  // Local. Adds the sum of a node of the tree, such as a node that subtrees() returns.
  // Errors: usage, for example if the leaves do not form a node of the tree.
  void add(const Leaves& node, const void* sum);
  // Local. Returns the number of the leaf that add(leaf) adds next: the leaf after the last added
  // leaf.
  std::size_t next() const { return next_; }

  // Local. Writes the sum of all L leaves, which must all have been added to this object.
  // Shapes: count elements.
  // Errors: usage.
  void sum(void* out) const;

  // Collective. Sums the leaves of all ranks. All ranks pass the same list `leaves`. In the first
  // form, the list has the number of leaves on each rank, and the leaves are in rank order. In the
  // second form, the list has each rank's first leaf and number of leaves, so the leaves need not
  // be in rank order. A rank may have no leaves. If the leaves of each rank form one whole subtree
  // and the subtrees are in rank order, all_reduce() runs one collective call with the algorithm
  // tree_order. For example, this holds if every rank has 4 leaves, or another power of two.
  // Otherwise each rank sends all its subtrees, which moves more bytes.
  // Shapes: out: count elements.
  // Errors: usage, and those of Communicator::run().
  void all_reduce(Communicator& communicator, std::span<const std::size_t> leaves, void* out) const;
  void all_reduce(Communicator& communicator, std::span<const Leaves> leaves, void* out) const;
  // Collective. Writes the sum of all ranks' leaves on the root; only the root uses `out`.
  // Errors: usage, and those of Communicator::run().
  void reduce(Communicator& communicator, std::span<const std::size_t> leaves, int root,
              void* out) const;
  // Collective. Writes a part of the sum on each rank. Rank r gets elements [count * r / n, count *
  // (r+1) / n).
  // Shapes: count is n times the length of out.
  // Errors: usage, and those of Communicator::run().
  void reduce_scatter(Communicator& communicator, std::span<const std::size_t> leaves,
                      void* out) const;

  // A sum that scatter_async() has started.
  class UNISONO_EXPORT Scattering {
   public:
    Scattering();
    Scattering(Scattering&&) noexcept;
    Scattering& operator=(Scattering&&) noexcept;
    ~Scattering();
    // Waits until the leaves of the communicator's ranks are summed. Returns this rank's part of
    // the sum.
    // Errors: those of Communicator::run().
    TreeSum finish();

   private:
    friend class TreeSum;
    struct State;
    std::unique_ptr<State> state_;
  };
  // Collective. Starts to sum the leaves of this communicator's ranks. The sum is divided among the
  // ranks: rank 0 gets the first parts[0] elements, rank 1 the next parts[1] elements, and so on.
  // If these ranks do not hold all leaves, the parts can be summed further over another
  // communicator.
  // Errors: usage, and those of Communicator::run().
  Scattering scatter_async(Communicator& communicator, std::span<const Leaves> leaves,
                           std::span<const std::size_t> parts) &&;

 private:
  // The sum of leaves [first, end): a node of the tree.
  struct Node {
    std::size_t first = 0;
    std::size_t end = 0;
    std::vector<std::byte> sum = {};
  };
  void check(const Communicator& communicator, std::span<const Leaves> leaves, bool are_all) const;
  Scattering exchange(Communicator& communicator, std::span<const Leaves> leaves,
                      std::span<const std::size_t> parts) const;

  Shape shape_;
  std::size_t next_;
  std::vector<Node> nodes_;  // from left to right; no two can be added
};

}  // namespace unisono
