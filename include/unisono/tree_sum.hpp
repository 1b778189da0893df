// Sums over a fixed tree of leaves: the same bits for any number of ranks.
//
// A leaf is the smallest unit that exists under every layout, such as the gradient of a microbatch
// or the product of a block of the inner dimension. Leaves are numbered 0, ..., L-1. Each rank
// holds consecutive leaves, in rank order. The sum is tree(0, L), with
// tree(a, b) = tree(a, m) + tree(m, b) and m - a the largest power of two below b - a; each
// addition rounds to the data type.
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

// Neighbouring leaves of one rank.
struct Leaves {
  std::size_t first = 0;
  std::size_t count = 0;
  bool operator==(const Leaves&) const = default;
};

// Local. Returns the leaves of each rank if they are split as evenly as possible: rank r has leaves
// [L * r / n, L * (r+1) / n).
UNISONO_EXPORT std::vector<Leaves> even_leaves(std::size_t leaves, int ranks);

// Local. Returns the largest nodes of tree(0, leaves) whose leaves are all among `mine`, in their
// order. The sum of each node is tree(0, count) over the node's own leaves, so the caller can
// compute it without the other leaves.
UNISONO_EXPORT std::vector<Leaves> subtrees(std::size_t leaves, const Leaves& mine);

// The running sum of one rank's leaves. If the leaves are added in order, it holds at most 2
// log2(L) vectors, because each sum is formed as soon as both of its terms are there. Threads: one
// at a time.
class UNISONO_EXPORT TreeSum {
 public:
  struct Shape {  // The leaves that a TreeSum adds.
    Dtype dtype = Dtype::f32;
    std::size_t count = 0;   // elements of a leaf
    std::size_t leaves = 1;  // L: the leaves of all ranks
    std::size_t first = 0;   // the number of the first leaf that is added here
  };
  // Local.
  // Errors: usage.
  explicit TreeSum(const Shape& shape);

  const Shape& shape() const { return shape_; }  // Local.

  // Local. Adds the next leaf, or leaf `number`. Reads the leaf only during the call. Leaves may be
  // added in any order.
  // Shapes: count elements.
  // Errors: usage for a leaf that does not exist or was added before.
  void add(const void* leaf) { add(next_, leaf); }
  void add(std::size_t number, const void* leaf);
  // Local. Adds the sum of a node of the tree, as subtrees() lists them.
  // Errors: usage, for example if the leaves do not form a node of the tree.
  void add(const Leaves& node, const void* sum);
  // Local. Returns the number of the leaf that add(leaf) adds next: the leaf after the last added
  // leaf.
  std::size_t next() const { return next_; }

  // Local. Writes the sum of all L leaves, if this object has all of them.
  // Shapes: count elements.
  // Errors: usage.
  void sum(void* out) const;

  // Collective. Sums the leaves of all ranks. All ranks pass the same list `leaves`. In the first
  // form, the list has the number of leaves on each rank, and the leaves are in rank order. In the
  // second form, the list has the leaves of each rank, and the leaves need not be in rank order. A
  // rank may have no leaves. If every rank has one whole subtree, in rank order, all_reduce() runs
  // one collective call with the algorithm tree_order. For example, this is so if all ranks have
  // the same number of leaves and this number is a power of two. Otherwise each rank sends all its
  // subtrees, and more bytes are moved.
  // Shapes: out: count elements.
  // Errors: usage, and those of Communicator::run().
  void all_reduce(Communicator& communicator, std::span<const std::size_t> leaves, void* out) const;
  void all_reduce(Communicator& communicator, std::span<const Leaves> leaves, void* out) const;
  // Collective. Writes the sum of all ranks' leaves on the root; only the root uses `out`.
  // Errors: usage, and those of Communicator::run().
  void reduce(Communicator& communicator, std::span<const std::size_t> leaves, int root,
              void* out) const;
  // Collective. Writes a part of the sum on each rank: rank r gets elements [r, r+1) * count / n.
  // Shapes: count is n times the length of out.
  // Errors: usage, and those of Communicator::run().
  void reduce_scatter(Communicator& communicator, std::span<const std::size_t> leaves,
                      void* out) const;

  // A sum over ranks that is in progress.
  class UNISONO_EXPORT Scattering {
   public:
    Scattering();
    Scattering(Scattering&&) noexcept;
    Scattering& operator=(Scattering&&) noexcept;
    ~Scattering();
    // Waits for the sum over the leaves of all ranks of the communicator, and returns this rank's
    // part of it.
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
  std::vector<Node> nodes_;  // from left to right; no two of them are the terms of an addition
};

}  // namespace unisono
