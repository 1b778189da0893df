// GradientBuckets: gradients summed over the ranks of an axis while the backward pass goes on.
//
// Gradients lie in buckets, flat vectors of f32 that this class owns: whatever the type of the
// model, sums are in f32 and 4 bytes per gradient travel. As soon as all gradients of a bucket are
// ready, and those of the buckets before, its all_reduce begins. The first bucket is small, so that
// the network has work early (1 MiB, then 25 MiB: Li et al., VLDB 2020), and so are the last ones,
// so that little is left when the backward pass ends. After the first step the buckets are filled
// anew in the order in which rank 0's gradients became ready.
//
// Thread rule: one thread at a time. ready() may be called while other operations of the
// communicator are under way, in the same order on all ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/parallel/any_span.hpp"

namespace unisono::parallel {

struct BucketOptions {
  std::size_t first_bytes = std::size_t{1} << 20;
  std::size_t bytes = std::size_t{25} << 20;
  ReduceOp op = ReduceOp::avg;  // avg or sum
  bool allow_unused = false;    // gradients that are never ready count as zero
  bool learn_order = true;
  // Gradients are zero when a step begins, so that they can be added to. Otherwise they are left as
  // they were, for a backward pass that writes each of them whole; add_to() then is an error.
  bool zeroed = true;
  // How long after one gradient the next may take to become ready in a step that reduces, where
  // other ranks wait for it; 0: for ever. Less than the communicator's timeout, so that those are
  // told which one it was before they give up.
  int timeout_ms = 20'000;
};

class UNISONO_EXPORT GradientBuckets {
 public:
  explicit GradientBuckets(Communicator& axis, const BucketOptions& options = {});
  GradientBuckets(GradientBuckets&&) noexcept;
  GradientBuckets& operator=(GradientBuckets&&) noexcept;
  ~GradientBuckets();

  // In the order in which a backward pass makes them ready, the same on all ranks; before the first
  // step. Returns the number of the gradient.
  std::size_t add(std::string name, std::size_t count);

  // Where to write a gradient, or add to it: zeros when a step begins, unless the options say
  // otherwise; after finish() the
  // combined one. Valid until the next begin(). Errors: usage.
  std::span<float> gradient(std::size_t index);
  // Local. Adds to a gradient, in f32. `values`: the whole gradient, in f32, bf16, f16 or f8.
  // Errors: usage.
  void add_to(std::size_t index, ConstAnySpan values);

  // Begins a step: no gradient is ready. `reduce` false: a step that only
  // accumulates; the gradients are kept for the next one, and nothing is sent until then.
  void begin(bool reduce = true);
  // The gradient is complete. Errors: usage, for one that is ready twice, named; the other ranks
  // are told by an abort. Where the next one takes longer than the options say, the world is
  // aborted with its name, also while this rank computes.
  void ready(std::size_t index);
  // Waits until all are combined. Errors: usage, with the names of those that never became ready;
  // the other ranks are told by an abort, as they would wait for ever.
  void finish();

  std::size_t buckets() const;
  // How long finish() has waited in this step: what the backward pass did not hide.
  double exposed_us() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace unisono::parallel
