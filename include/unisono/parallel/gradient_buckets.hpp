// GradientBuckets: sums gradients over the ranks of an axis while the backward pass continues.
//
// Gradients are stored in buckets: flat f32 vectors that this class owns. For any dtype of the
// model, sums are formed in f32, and 4 bytes per gradient element are sent. The all_reduce of a
// bucket begins when all gradients of this bucket and of all earlier buckets are ready. The first
// bucket is small, so that the network starts early (1 MiB, then 25 MiB: Li et al., VLDB 2020). The
// last buckets are small as well, so that little remains to be sent when the backward pass ends.
// After the first step that reduces, gradients are assigned to buckets again: all ranks use the
// order in which the gradients became ready on rank 0.
//
// Threads: one thread at a time. ready() may be called while other operations of the communicator
// are in progress. All ranks must start these operations and call ready() in the same order.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/parallel/any_span.hpp"
#include "unisono/tree_sum.hpp"

namespace unisono::parallel {

// Options of GradientBuckets. All ranks pass the same options.
struct BucketOptions {
  std::size_t first_bytes = std::size_t{1} << 20;
  std::size_t bytes = std::size_t{25} << 20;
  ReduceOp op = ReduceOp::avg;  // avg or sum
  bool allow_unused = false;    // gradients that never become ready count as zero
  bool learn_order = true;
  // true: all gradients are set to zero when a step begins, so that the backward pass can add to
  // them. false: gradients keep their old values, for a backward pass that overwrites each
  // gradient. add_to() is then an error.
  bool zeroed = true;
  // The longest time between two calls of ready(); 0: no limit. The limit applies in steps that
  // reduce, because other ranks then wait. If it is shorter than the communicator's timeout, the
  // error on the other ranks names the late gradient.
  int timeout_ms = 20'000;
  // The leaves of each rank (unisono/tree_sum.hpp). Each step from begin() to finish() computes the
  // next leaf of this rank. The step that reduces must compute the last leaf of this rank. Sums
  // then have the same bits for any number of ranks with the same leaves, and `avg` divides by the
  // number of leaves. Empty: the algorithm determines the order of the sums.
  std::vector<Leaves> leaves = {};
};

class UNISONO_EXPORT GradientBuckets {
 public:
  // Local. `axis` must outlive the buckets.
  explicit GradientBuckets(Communicator& axis, const BucketOptions& options = {});
  GradientBuckets(GradientBuckets&&) noexcept;
  GradientBuckets& operator=(GradientBuckets&&) noexcept;
  ~GradientBuckets();

  // Local. Registers a gradient of `count` elements and returns its index. Call add() before the
  // first step. Add the gradients in the order in which a backward pass makes them ready. All ranks
  // add the same gradients in the same order.
  std::size_t add(std::string name, std::size_t count);

  // Local. Returns the memory of a gradient, to write or add to. A step begins with zeros in this
  // memory, unless BucketOptions::zeroed is false. After finish() the memory holds the combined
  // gradient. The memory is valid until the next begin().
  // Errors: usage.
  std::span<float> gradient(std::size_t index);
  // Local. Adds `values` to a gradient, in f32. `values` is the whole gradient in f32, bf16, f16 or
  // f8.
  // Errors: usage.
  void add_to(std::size_t index, ConstAnySpan values);

  // Begins a step, in which no gradient is ready yet. If `reduce` is false, the step only
  // accumulates: nothing is sent, and the next step adds to the same gradients. Local, except the
  // first begin() after a step that reduced: with learn_order it is collective.
  void begin(bool reduce = true);
  // Collective. Marks a gradient as complete. If the next gradient does not become ready within
  // timeout_ms, the world is aborted with the name of that gradient, even while this rank computes.
  // Errors: `usage`, naming the gradient, if ready() was already called for it in this step;
  // `aborted` on the other ranks.
  void ready(std::size_t index);
  // Collective. Waits until all gradients are combined.
  // Errors: `usage` if gradients never became ready or leaves are missing; the text names them.
  // `aborted` on the other ranks, because they would wait forever.
  void finish();

  std::size_t buckets() const;  // Local. Returns the number of buckets.
  // Local. Returns how long finish() has waited in this step. This is the communication time that
  // the backward pass did not hide.
  // Units: microseconds.
  double exposed_us() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace unisono::parallel
