// Describes a training step and its layout over devices.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "planner/device.h"
#include "planner/shape.h"

namespace unisono::planner {

// The activations kept for the backward pass (Korthikanti et al., 2022). none: all are kept.
// selective: not the outputs of norms, activation functions and scores, which are cheap. full: only
// a layer's input is kept.
enum class Recompute { none, selective, full };
std::string_view to_string(Recompute recompute);

// The data that is offloaded to host memory.
struct Offload {
  bool activations = false;
  bool optimiser = false;

  bool operator==(const Offload&) const = default;
};
std::string_view to_string(Offload offload);  // "none", "activations", "optimiser", "both"

// The type of gradients and of Adam's moments.
enum class State { bf16, f32 };
std::string_view to_string(State state);
inline double weight_bytes_of(State state) {
  return state == State::f32 ? 4 : 2;
}

struct Layout {
  int tp = 1;
  int pp = 1;
  int vp = 1;   // parts of the model per stage
  int cp = 1;   // shards positions of the sequence; keys and values travel around
  int uly = 1;  // shards positions too, and heads inside attention (Jacobs et al., 2023)
  int ep = 1;   // over the ranks of a stage
  int dp = 1;
  int micro_batch = 1;
  int zero = 1;  // shards over data-parallel ranks: 0 nothing, 1 optimiser, 2 gradients, 3 weights
  bool sequence_parallel = true;
  Recompute recompute = Recompute::none;
  Offload offload = {};

  int copies() const { return cp * uly * dp; }  // copies of the weights that tp and pp shard
  int stage_ranks() const { return tp * copies(); }
  int devices() const { return pp * stage_ranks(); }
};

// Returns "tp=4,pp=8,vp=2,dp=2,mb=1", without axes of one rank.
std::string text_of(const Layout& layout);

// Parses "tp=4,pp=8,mb=1,zero=1,recompute=none,offload=both"; if dp is missing, it follows from the
// devices. Errors: Error(usage) for an unknown axis, a wrong value, or axes that do not use all
// devices.
Layout parse_layout(std::string_view text, int devices);

// An axis of a layout, and where to write its size.
struct AxisSize {
  std::string_view name;
  int* size;
  int least = 1;
  int most = 1'000'000;
};
// Parses "tp=4,pp=8". `take` receives the words that are not axes, and returns true if it knows
// them. Errors: Error(usage) for any other word or size; the error lists what is `allowed`.
void read_axes(
    std::string_view text, std::span<const AxisSize> axes, const std::string& allowed,
    const std::function<bool(std::string_view name, std::string_view value)>& take =
        [](auto, auto) { return false; });

struct TrainingTask {
  double batch = 1;     // sequences per step
  double sequence = 1;  // tokens per sequence
  Precision precision = Precision::bf16;
  bool materialised_attention = false;  // scores go through memory, as before FlashAttention
  State gradients = State::bf16;
  State moments = State::f32;
};

// Returns why the layout is impossible, as a sentence; empty if it is possible.
std::string problem_of(const ModelShape& shape, const Layout& layout, const TrainingTask& task);

inline double microbatches(const Layout& layout, const TrainingTask& task) {
  return task.batch / (static_cast<double>(layout.micro_batch) * layout.dp);
}

// Returns the tokens of a microbatch on one rank.
inline double local_tokens(const Layout& layout, const TrainingTask& task) {
  return layout.micro_batch * task.sequence / (layout.cp * layout.uly);
}

}  // namespace unisono::planner
