// A step of a model as data, `unisono.step/1`: on a mesh of ranks, which tensors there are and how
// they lie, what is computed from what, and which redistribution over which axis moves them. One
// prefill, one decoded token or one training step; from it follow the collectives of each rank,
// the memory that a rank needs, and what the simulator plays.
//
// All ranks go through the sections in their order, each through those of its own stage. With a
// pipeline, some of them are passes: what a stage does for each of its microbatches, in the order
// that the pipeline says. What a pass leaves to the sections that are none is added up over the
// microbatches. The placements are PyTorch's (DTensor): a tensor is Replicate, Shard of a dimension
// or Partial along each axis of the mesh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/pipeline.h"
#include "unisono/parallel/context_parallel.hpp"
#include "unisono/parallel/mesh.hpp"

namespace unisono::step {

// The division of a dimension among the ranks of an axis. even: by parallel::shard_range. rows: the
// tokens of `batch` sequences, by sequence along data axes, by position in the sequence along
// context axes, otherwise in their order. heads, key_value_heads: by parallel::head_share, which
// gives several ranks a copy of a key-value head if there are fewer heads than ranks.
enum class Cut : std::uint8_t { even, rows, heads, key_value_heads };

struct Dim {
  std::string name = {};
  std::size_t size = 0;
  Cut cut = Cut::even;
  std::size_t batch = 1;  // of rows
  std::string like = {};  // ranks that have a part of that dimension have the same part of this
};

// The placement of a tensor along one axis.
struct Placement {
  enum class Kind : std::uint8_t { replicate, shard, partial };
  Kind kind = Kind::replicate;
  std::string dim = {};  // of a shard
  bool operator==(const Placement&) const = default;
};
inline Placement replicate() {
  return {};
}
inline Placement shard(std::string dim) {
  return {.kind = Placement::Kind::shard, .dim = std::move(dim)};
}
inline Placement partial() {
  return {.kind = Placement::Kind::partial};
}
std::string to_text(const Placement& placement);  // "shard(heads)"

using Placements = std::map<std::string, Placement>;  // by axis; replicate where an axis has none

struct Tensor {
  enum class Kind : std::uint8_t { weight, cache, input, activation };
  std::string name = {};
  Kind kind = Kind::activation;
  std::vector<std::string> dims = {};
  double element_bytes = 4;
  bool is_layered = false;    // one for each layer
  Placements placement = {};  // as it is given; of an activation: what follows is proved
  bool operator==(const Tensor&) const = default;
};

struct Node {
  // compute     every rank, on what it has
  // redistribute  changes how tensors lie along axes: a collective, or nothing that moves. What it
  //               reads beyond what it writes is needed on the way
  // dispatch    rows go to the ranks that have their experts; combine brings results back, summed.
  //             What it reads behind that says where to, or how much of it
  // send        from a stage to the next one, in the backward pass of a pipeline to the one
  //             before; between ranks that differ in the stage alone
  // broadcast   from a stage to all others
  // sum_stages  each rank adds up what its stages have; one that has nothing adds nothing. What
  //             follows is a summand along the stage axis. In a section of all stages
  enum class Kind : std::uint8_t {
    compute,
    redistribute,
    dispatch,
    combine,
    send,
    broadcast,
    sum_stages
  };
  Kind kind = Kind::compute;
  std::string name = {};
  std::vector<std::string> reads = {};
  std::vector<std::string> writes = {};

  // For compute. Parts of a pointwise dimension are computed each from its own part; results of
  // parts of a summed dimension add up to the whole. All other dimensions it needs whole.
  std::vector<std::string> pointwise = {};
  std::vector<std::string> summed = {};
  // The treatment of partial sums. none: inputs must be whole; each: linear in every single input,
  // like a product; together: linear in all inputs at once, like a sum.
  enum class Linear : std::uint8_t { none, each, together };
  Linear linear = Linear::none;
  std::map<std::string, std::string> renamed =
      {};            // dimensions of what it reads, as it writes them
  double flops = 0;  // for each element of the product of all its dimensions

  double share = 1;  // of those elements that there are, and of the bytes: few tokens, many experts

  // For the others.
  std::string axes = {};  // "tp", or several: "dp,cp"
  Placement from = {};
  Placement to = {};
  // Another way than a collective. ring: parts go around. ring_with: they do, in turns with the
  // sums of the ring_home that follows, which go around until they are where they belong. merge:
  // summands of attention, weighted. first: one rank keeps what all have whole, others have zeros.
  std::string by = {};
  double rows_sent = 1;  // of dispatch and combine: experts of a token

  bool operator==(const Node&) const = default;
};

// The work of a stage for one microbatch. A schedule without separate backward passes runs the two
// in turn.
enum class StagePass : std::uint8_t { none, forward, backward_input, backward_weight };

inline constexpr int kAllStages = -1;  // each rank does it once, whatever stages it has

struct Section {
  std::string name = {};
  int stage = 0;
  StagePass pass = StagePass::none;
  int first_layer = -1;  // -1: of no layer
  int repeat = 1;        // layers that are alike
  std::vector<Node> nodes = {};
};

struct Step {
  std::string name = {};
  std::string mesh = {};                            // as MeshShape::parse() takes it
  std::string stage_axis = {};                      // "pp"; empty: one stage
  std::optional<pipeline::Pipeline> pipeline = {};  // whose ranks are those of the stage axis
  std::vector<std::string> data_axes = {};          // that cut rows by sequence
  std::vector<std::string> context_axes = {};       // that cut rows by place
  parallel::ContextOrder order = parallel::ContextOrder::zigzag;
  std::vector<Dim> dims = {};
  std::vector<Tensor> tensors = {};
  std::vector<Section> sections = {};
  struct Result {
    std::string tensor = {};
    Placements placement = {};
    bool is_everywhere = false;  // on all stages, else on those that have it
  };
  std::vector<Result> results = {};  // how tensors must lie in the end
  double memory_bytes = 0;           // that a rank may need; 0: not said

  const Dim* find_dim(std::string_view dim) const;
  const Tensor* find_tensor(std::string_view tensor) const;
};

bool has_name(const std::vector<std::string>& names, const std::string& name);
// Names that are cut alike have one canonical name.
std::string canonical(const Step& step, const std::string& dim);
Placement placement_on(const Placements& placements, const std::string& axis);
// The axes of a node, each alone.
std::vector<std::string> axis_names(std::string_view axes);

}  // namespace unisono::step
