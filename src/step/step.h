// A step of a model as data, `unisono.step/1`: on a mesh of ranks, the tensors and their
// placements, the computations, and the redistributions that move tensors. A step is one prefill,
// one decoded token or one training step. The collectives of each rank, its memory, and the
// simulation are derived from the step.
//
// Each rank executes the sections of its own stages, in order. With a pipeline, some sections are
// passes: the work of a stage for each of its microbatches, in the order of the pipeline. Results
// of a pass that other sections use are summed over the microbatches. Placements are PyTorch's
// (DTensor): along each axis of the mesh a tensor is Replicate, Shard of a dimension or Partial.
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

// The division of a dimension among the ranks of an axis:
// - even: by parallel::shard_range.
// - rows: the tokens of `batch` sequences. Data axes divide them by sequence, context axes by
//   position in the sequence, other axes in the order of the tokens.
// - heads, key_value_heads: by parallel::head_share, which gives several ranks a copy of a
//   key-value head if there are fewer heads than ranks.
enum class Cut : std::uint8_t { even, rows, heads, key_value_heads };

struct Dim {
  std::string name = {};
  std::size_t size = 0;
  Cut cut = Cut::even;
  std::size_t batch = 1;  // for rows: number of sequences
  std::string like = {};  // a dimension of which each rank has the same part as of this one
};

// The placement of a tensor along one axis.
struct Placement {
  enum class Kind : std::uint8_t { replicate, shard, partial };
  Kind kind = Kind::replicate;
  std::string dim = {};  // dimension of a shard
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
std::string to_text(const Placement& placement);  // such as "shard(heads)"

using Placements =
    std::map<std::string, Placement>;  // by axis; an axis without an entry is replicate

struct Tensor {
  enum class Kind : std::uint8_t { weight, cache, input, activation };
  std::string name = {};
  Kind kind = Kind::activation;
  std::vector<std::string> dims = {};
  double element_bytes = 4;
  bool is_layered = false;    // one tensor per layer
  Placements placement = {};  // the specified placement; those of later activations are derived
  bool operator==(const Tensor&) const = default;
};

struct Node {
  // compute      every rank computes on its own data
  // redistribute changes the placement along axes: a collective, or no communication. Inputs that
  //              the node does not write are needed during the move
  // dispatch     sends rows to the ranks of their experts; combine returns the results, summed.
  //              Further inputs define the destinations, or the weights
  // send         to the next stage, or in a pipeline's backward pass to the previous stage;
  //              between ranks that differ only in the stage
  // broadcast    from a stage to all other stages
  // sum_stages   each rank sums the tensor over its stages; missing tensors count as zero. The
  //              result is partial along the stage axis. Only in sections of all stages
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

  // For compute. A shard of a pointwise dimension is computed from the same shard of the inputs;
  // results of shards of a summed dimension add up to the whole. All other dimensions must be
  // whole.
  std::vector<std::string> pointwise = {};
  std::vector<std::string> summed = {};
  // The node's treatment of partial sums. none: inputs must be whole; each: linear in every single
  // input, like a product; together: linear in all inputs at once, like a sum.
  enum class Linear : std::uint8_t { none, each, together };
  Linear linear = Linear::none;
  std::map<std::string, std::string> renamed =
      {};            // by dimension of its inputs: its name in the outputs
  double flops = 0;  // per element of the product of all dimensions

  double share = 1;  // share of these elements and bytes that exist, if few tokens meet many
                     // experts

  // For all other kinds.
  std::string axes = {};  // such as "tp" or "dp,cp"
  Placement from = {};
  Placement to = {};
  // A method other than a collective:
  // - ring: shards are sent around the ring.
  // - ring_with: shards take turns on the ring with the sums of the following ring_home. These sums
  //   are sent on until they reach their owner.
  // - merge: partial attention results are merged by weight.
  // - first: one rank keeps the replicated data, and the others get zeros.
  std::string by = {};
  double rows_sent = 1;  // for dispatch and combine: experts per token

  bool operator==(const Node&) const = default;
};

// The work of a stage for one microbatch. A schedule without separate backward passes runs the two
// backward passes in sequence.
enum class StagePass : std::uint8_t { none, forward, backward_input, backward_weight };

inline constexpr int kAllStages = -1;  // each rank executes it once, independently of its stages

struct Section {
  std::string name = {};
  int stage = 0;
  StagePass pass = StagePass::none;
  int first_layer = -1;  // -1: the section belongs to no layer
  int repeat = 1;        // number of equal layers
  std::vector<Node> nodes = {};
};

struct Step {
  std::string name = {};
  std::string mesh = {};                            // in the syntax of MeshShape::parse()
  std::string stage_axis = {};                      // such as "pp"; empty: one stage
  std::optional<pipeline::Pipeline> pipeline = {};  // its ranks are those of the stage axis
  std::vector<std::string> data_axes = {};          // axes that cut rows by sequence
  std::vector<std::string> context_axes = {};       // axes that cut rows by position
  parallel::ContextOrder order = parallel::ContextOrder::zigzag;
  std::vector<Dim> dims = {};
  std::vector<Tensor> tensors = {};
  std::vector<Section> sections = {};
  struct Result {
    std::string tensor = {};
    Placements placement = {};
    bool is_everywhere = false;  // on all stages; otherwise only on those that have the tensor
  };
  std::vector<Result> results = {};  // required placements at the end
  double memory_bytes = 0;           // limit per rank; 0: not specified

  const Dim* find_dim(std::string_view dim) const;
  const Tensor* find_tensor(std::string_view tensor) const;
};

bool has_name(const std::vector<std::string>& names, const std::string& name);
// Returns the canonical name of a dimension: dimensions that are cut alike share one.
std::string canonical(const Step& step, const std::string& dim);
Placement placement_on(const Placements& placements, const std::string& axis);
// Splits a node's axes into single ones.
std::vector<std::string> axis_names(std::string_view axes);

}  // namespace unisono::step
