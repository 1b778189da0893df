// ShardedState: parameters, gradients and the states of AdamW, sharded over the ranks of an axis.
//
// Stages as of ZeRO (Rajbhandari et al., SC 2020). What a rank holds, in bytes a parameter, with
// N ranks; bf16 and f16: mixed precision, with f32 masters; f32: the parameters are the masters.
//
//   stage  sharded over the axis               16 bits      f32
//   0      nothing                             16           16
//   1      states of the optimiser             4 + 12/N     8 + 8/N
//   2      and gradients                       2 + 14/N     4 + 12/N
//   3      and parameters                      16/N         16/N
//
// Parameters are grouped in units, such as a layer: what is gathered and reduced at once. A unit is
// one flat vector, padded to a multiple of N. Hybrid sharding (HSDP) shards over one axis and
// replicates over another: gradients are reduced over both.
//
// Gradients travel and are held in the dtype: (N-1)/N of 2 bytes per parameter and rank for 16
// bits. Each sum over an axis is formed in f32 and rounded once, as redistribute() says. f16 holds
// no gradient below 2^-25, so scale the loss up; AdamW takes that back but for `epsilon`, and
// max_norm has to be scaled alike. f8 is refused: a sum of gradients in it keeps 3 or 4 binary
// digits.
//
// A step of training: for each unit parameters() before it is used and release() after, forward and
// backward; add to gradients(), and gradients_ready() as soon as they are complete; then step().
// All ranks call these for the same units in the same order.
//
// Thread rule: one thread at a time, which no other call on the communicators overlaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"

namespace unisono::parallel {

struct Parameter {
  std::string name;
  std::size_t count = 0;
  bool decays = true;  // whether weight decay applies
  // Whether this rank counts it in the norm of all gradients: of copies that several tensor
  // parallel ranks hold, one counts.
  bool counted = true;
};

// Loshchilov and Hutter, 2019.
struct AdamW {
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double decay = 0.0;
};

struct ShardedOptions {
  int stage = 1;
  Dtype dtype = Dtype::f32;     // of parameters and gradients: f32, bf16 or f16
  ReduceOp op = ReduceOp::avg;  // of the gradients over the ranks: avg or sum
  AdamW optimizer = {};
  double max_norm = 0;               // gradients are scaled down to this norm; 0: as they are
  Communicator* replicas = nullptr;  // of HSDP: the axis that is not sharded over
  // The axes that other parameters of the model are on (tensor, pipeline): the norm is over them
  // too. nullptr: none.
  Communicator* model = nullptr;
};

class UNISONO_EXPORT ShardedState {
 public:
  // The communicators must outlive it. Errors: usage, for a stage or dtype that does not exist.
  ShardedState(Communicator& axis, std::vector<std::vector<Parameter>> units,
               const ShardedOptions& options);
  ShardedState(ShardedState&&) noexcept;
  ShardedState& operator=(ShardedState&&) noexcept;
  ~ShardedState();

  std::size_t units() const;
  std::size_t count(std::size_t unit) const;  // elements, without padding

  // Sets the whole unit; all ranks give the same values.
  void set(std::size_t unit, std::span<const float> values);
  // The whole unit from the masters, on all ranks.
  std::vector<float> whole(std::size_t unit);

  // The parameters of a unit, of the dtype, one after the other. Stage 3: gathers them, unless they
  // are there, and holds them until release(). Valid until then, or until step().
  std::span<const std::byte> parameters(std::size_t unit);
  std::span<const float> parameters_f32(std::size_t unit);  // where the dtype is f32
  void prefetch(std::size_t unit);  // starts what parameters() would wait for
  void release(std::size_t unit);

  // Where the gradients of a unit are added up; zeros at first. Stages 2 and 3: this memory is
  // there from the first call until the gradients are reduced.
  std::span<std::byte> gradients(std::size_t unit);
  std::span<float> gradients_f32(std::size_t unit);
  // They are complete: their reduction begins, and goes on while others are computed. Errors:
  // usage, for one that is ready twice.
  void gradients_ready(std::size_t unit);

  // Waits for the reductions that have begun, as step() does first.
  void wait_gradients();

  // Waits for the reductions, clips, updates, and makes new parameters known. Returns the norm of
  // all gradients before clipping. Errors: usage, with the parameters of units that were never
  // ready; the others are told by an abort, as they would wait for ever.
  double step();

  struct Bytes {
    std::size_t parameters = 0;
    std::size_t gradients = 0;
    std::size_t optimizer = 0;
    std::size_t all() const { return parameters + gradients + optimizer; }
  };
  // What this rank holds now, padding included; the table is about the time between
  // wait_gradients() and step().
  Bytes bytes_held() const;
  // How long calls have waited for transfers since the last step() began.
  double exposed_us() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace unisono::parallel
