// ShardedState: parameters, gradients and AdamW states, sharded over the ranks of an axis.
//
// The stages are those of ZeRO (Rajbhandari et al., SC 2020). The table gives the bytes per
// parameter on each of N ranks. bf16 and f16 use mixed precision with f32 master parameters. With
// f32, the parameters are the masters.
//
//   stage  sharded over the axis                     16 bits      f32
//   0      nothing                                   16           16
//   1      optimiser states                          4 + 12/N     8 + 8/N
//   2      optimiser states, gradients               2 + 14/N     4 + 12/N
//   3      optimiser states, gradients, parameters   16/N         16/N
//
// Parameters are grouped into units, such as layers. Each unit is gathered and reduced as a whole.
// A unit is one flat vector, padded to a multiple of N. Hybrid sharding (HSDP) shards over one axis
// and replicates over another axis. Gradients are then reduced over both axes.
//
// Gradients are held and sent in the dtype. With 16 bits, each rank sends 2 * (N-1)/N bytes per
// parameter. Each sum over an axis is formed in f32 and rounded once, as redistribute() describes.
// f16 cannot hold gradients below 2^-25, so scale the loss up. AdamW cancels the scale, except in
// `epsilon`. Scale max_norm by the same factor. f8 is refused, because a gradient sum in f8 keeps
// only 3 or 4 binary digits.
//
// With ShardedOptions::leaves, gradients are summed over a fixed tree of microbatches
// (unisono/tree_sum.hpp). If the microbatches are the same, the sums have the same bits for any
// number of ranks, any number of replicas and any stage. The tree is summed in f32 and rounded to
// the dtype once. Until the gradients of a unit are reduced, each rank keeps at most 2 log2(L) f32
// copies of them. The norm of all gradients is an exact sum and has the same bits under every
// layout, with or without leaves.
//
// A training step: call parameters() before each use of a unit and release() after it, in the
// forward and in the backward pass. In the backward pass, also add to gradients(), and call
// gradients_ready() as soon as the unit's gradients are complete. Then call step(). All ranks make
// these calls for the same units in the same order.
//
// Threads: one thread at a time, with no other call on the communicators at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/tree_sum.hpp"

namespace unisono::parallel {

// A parameter of a unit.
struct Parameter {
  std::string name;
  std::size_t count = 0;
  bool decays = true;  // AdamW::decay applies to this parameter
  // true: the norm of all gradients includes this rank's gradient of the parameter. If several
  // tensor-parallel ranks hold copies of a parameter, set this on only one of these ranks.
  bool counted = true;
};

// The settings of AdamW (Loshchilov and Hutter, 2019).
struct AdamW {
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double decay = 0.0;
};

// Options of a ShardedState. All ranks pass the same options.
struct ShardedOptions {
  int stage = 1;
  Dtype dtype = Dtype::f32;     // type of parameters and gradients: f32, bf16 or f16
  ReduceOp op = ReduceOp::avg;  // combines the gradients of the ranks: avg or sum
  AdamW optimizer = {};
  double max_norm = 0;               // gradients are clipped to this norm; 0: no clipping
  Communicator* replicas = nullptr;  // HSDP: the axis of replicas
  // The ranks that hold the model's other parameters (tensor and pipeline axes). The norm then
  // includes these parameters. nullptr: there are no other parameters.
  Communicator* model = nullptr;
  // The leaves (microbatches) of each rank in a step, ordered by replica, then by rank of the axis.
  // `avg` divides by the number of leaves. Empty: the algorithm determines the order of the sums.
  std::vector<Leaves> leaves = {};
};

class UNISONO_EXPORT ShardedState {
 public:
  // Local. The communicators must outlive the ShardedState.
  // Errors: usage for a stage or dtype that does not exist.
  ShardedState(Communicator& axis, std::vector<std::vector<Parameter>> units,
               const ShardedOptions& options);
  ShardedState(ShardedState&&) noexcept;
  ShardedState& operator=(ShardedState&&) noexcept;
  ~ShardedState();

  std::size_t units() const;                  // number of units
  std::size_t count(std::size_t unit) const;  // elements, without padding

  // Collective. Sets the whole unit; all ranks pass the same values.
  void set(std::size_t unit, std::span<const float> values);
  // Collective. Returns the whole unit from the masters, on all ranks.
  std::vector<float> whole(std::size_t unit);

  // Collective in stage 3, otherwise local. Returns the unit's parameters in the dtype, one after
  // the other. In stage 3, gathers them if they are not present. They are valid until release() or
  // step().
  std::span<const std::byte> parameters(std::size_t unit);
  std::span<const float> parameters_f32(std::size_t unit);  // for dtype f32
  void prefetch(std::size_t unit);                          // starts gathering without a wait
  void release(std::size_t unit);

  // Local. Returns the memory in which the unit's gradients are accumulated; it is zero at first.
  // In stages 2 and 3 this memory exists from the first call until the gradients are reduced.
  std::span<std::byte> gradients(std::size_t unit);
  std::span<float> gradients_f32(std::size_t unit);
  // Local. Adds the contents of gradients() to the tree, as the gradient of leaf `leaf`, and clears
  // gradients() for the next leaf. Leaves may be added in any order.
  // Errors: usage without ShardedOptions::leaves, or for a leaf that was already added.
  void leaf_ready(std::size_t unit, std::size_t leaf);
  // Local. Adds the contents of gradients() to the tree, as the sum of several leaves, and clears
  // gradients(). These leaves must form a node of the tree; subtrees() lists the nodes.
  void leaf_ready(std::size_t unit, const Leaves& node);
  // Local. Replaces the leaves of one unit. All ranks must pass the same list. This is for
  // pipelines in which a rank computes different microbatches for different units (DualPipe). Call
  // set_leaves() before the unit's first leaf.
  // Errors: usage.
  void set_leaves(std::size_t unit, std::vector<Leaves> leaves);
  // Collective. Marks the unit's gradients as complete and starts to reduce them. The reduction
  // progresses while other gradients are computed.
  // Errors: usage if the unit was already ready, or if one of its leaves is missing.
  void gradients_ready(std::size_t unit);

  // Collective. Waits for the reductions in progress. step() does this as well.
  void wait_gradients();

  // Collective. Waits for the reductions, clips the gradients, updates the parameters, and
  // distributes them. Returns the norm of all gradients before clipping.
  // Errors: `usage` on a rank where the gradients of some units were never ready; the text names
  // the parameters of these units. `aborted` on the other ranks, because they would wait forever.
  double step();

  // Bytes by purpose.
  struct Bytes {
    std::size_t parameters = 0;
    std::size_t gradients = 0;
    std::size_t optimizer = 0;
    std::size_t all() const { return parameters + gradients + optimizer; }  // the sum
  };
  // Local. Returns the bytes that this rank holds now, padding included. Between wait_gradients()
  // and step() these are the bytes in the table at the top of this header.
  Bytes bytes_held() const;
  // Local. Returns how long calls have waited for transfers since the last step() began.
  // Units: microseconds.
  double exposed_us() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace unisono::parallel
