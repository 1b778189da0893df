#include "weights/weights.h"

#include <algorithm>
#include <cmath>

#include "unisono/error.hpp"

namespace unisono::weights {
namespace {

using planner::ModelShape;

std::size_t size(double value) {
  return static_cast<std::size_t>(std::llround(value));
}

// Norms and biases that a shape counts as vectors, besides the two norms per layer and the final
// norm. They are identified by their number.
struct Vectors {
  bool head_norms = false;   // q_norm and k_norm
  bool router_bias = false;  // e_score_correction_bias
};

Vectors vectors_of(const ModelShape& shape) {
  double left = shape.vectors - (2.0 * shape.layers + 1) * shape.hidden;
  if (shape.latent.is_used()) {
    left -= shape.layers * (shape.latent.query_rank + shape.latent.value_rank);
  }
  return {.head_norms = left > 0 && left == 2.0 * shape.layers * shape.head_dim,
          .router_bias =
              left > 0 && left == static_cast<double>(shape.expert_layers()) * shape.experts};
}

class Lister {
 public:
  explicit Lister(const ModelShape& shape)
      : shape_(shape), vectors_(vectors_of(shape)), hidden_(size(shape.hidden)) {}

  std::vector<Weight> list() {
    add({.name = "model.embed_tokens.weight",
         .shape = {size(shape_.vocabulary), hidden_},
         .layer = kFirst,
         .dim = 0});
    for (layer_ = 0; layer_ < shape_.layers; ++layer_) {
      prefix_ = "model.layers." + std::to_string(layer_) + ".";
      vector("input_layernorm", shape_.hidden);
      shape_.latent.is_used() ? latent_attention() : attention();
      vector("post_attention_layernorm", shape_.hidden);
      shape_.kind(layer_).has_experts ? experts() : inner("mlp.", shape_.ffn, shape_.gated);
    }
    add({.name = "model.norm.weight", .shape = {hidden_}, .layer = kLast});
    if (!shape_.tied) {
      add({.name = "lm_head.weight",
           .shape = {size(shape_.vocabulary), hidden_},
           .layer = kLast,
           .dim = 0});
    }
    return std::move(all_);
  }

 private:
  void add(Weight weight) { all_.push_back(std::move(weight)); }
  void vector(const std::string& name, double length) {
    add({.name = prefix_ + name + ".weight", .shape = {size(length)}, .layer = layer_});
  }
  void matrix(const std::string& name, double rows, double columns, int dim,
              std::size_t heads = 0) {
    add({.name = prefix_ + name + ".weight",
         .shape = {size(rows), size(columns)},
         .layer = layer_,
         .expert = expert_,
         .dim = dim,
         .heads = heads});
  }

  void attention() {
    const auto heads = static_cast<std::size_t>(shape_.heads);
    const auto kv_heads = static_cast<std::size_t>(shape_.kv_heads);
    const double kv = shape_.kv_heads * shape_.head_dim;
    matrix("self_attn.q_proj", shape_.heads * shape_.head_dim, shape_.hidden, 0, heads);
    matrix("self_attn.k_proj", kv, shape_.hidden, 0, kv_heads);
    matrix("self_attn.v_proj", kv, shape_.hidden, 0, kv_heads);
    matrix("self_attn.o_proj", shape_.hidden, shape_.heads * shape_.head_dim, 1, heads);
    if (vectors_.head_norms) {
      vector("self_attn.q_norm", shape_.head_dim);
      vector("self_attn.k_norm", shape_.head_dim);
    }
  }

  void latent_attention() {
    const planner::LatentAttention& latent = shape_.latent;
    const auto heads = static_cast<std::size_t>(shape_.heads);
    const double query = shape_.heads * (latent.plain_dim + latent.rotary_dim);
    if (latent.query_rank > 0) {
      matrix("self_attn.q_a_proj", latent.query_rank, shape_.hidden, -1);
      vector("self_attn.q_a_layernorm", latent.query_rank);
      matrix("self_attn.q_b_proj", query, latent.query_rank, 0, heads);
    } else {
      matrix("self_attn.q_proj", query, shape_.hidden, 0, heads);
    }
    matrix("self_attn.kv_a_proj_with_mqa", latent.value_rank + latent.rotary_dim, shape_.hidden,
           -1);
    vector("self_attn.kv_a_layernorm", latent.value_rank);
    matrix("self_attn.kv_b_proj", shape_.heads * (latent.plain_dim + latent.value_dim),
           latent.value_rank, 0, heads);
    matrix("self_attn.o_proj", shape_.hidden, shape_.heads * latent.value_dim, 1, heads);
  }

  void inner(const std::string& at, double width, bool gated) {
    if (gated) {
      matrix(at + "gate_proj", width, shape_.hidden, 0);
    }
    matrix(at + "up_proj", width, shape_.hidden, 0);
    matrix(at + "down_proj", shape_.hidden, width, 1);
  }

  void experts() {
    matrix("mlp.gate", shape_.experts, shape_.hidden, -1);
    if (vectors_.router_bias) {
      add({.name = prefix_ + "mlp.gate.e_score_correction_bias",
           .shape = {static_cast<std::size_t>(shape_.experts)},
           .layer = layer_});
    }
    for (expert_ = 0; expert_ < shape_.experts; ++expert_) {
      inner("mlp.experts." + std::to_string(expert_) + ".", shape_.expert_ffn, true);
    }
    expert_ = -1;
    if (shape_.shared_ffn > 0) {
      inner("mlp.shared_experts.", shape_.shared_ffn, true);
    }
  }

  const ModelShape& shape_;
  const Vectors vectors_;
  const std::size_t hidden_;
  int layer_ = 0;
  int expert_ = -1;
  std::string prefix_;
  std::vector<Weight> all_;
};

// Returns the part that contains item `index` when `count` items are split into `parts`.
int part_with(int count, int parts, int index) {
  int part = 0;
  for (parallel::Range range = parallel::shard_range(static_cast<std::size_t>(count), parts, part);
       static_cast<std::size_t>(index) >= range.first + range.count;
       range = parallel::shard_range(static_cast<std::size_t>(count), parts, part)) {
    ++part;
  }
  return part;
}

struct Axis {
  std::string name;
  int size;
};

std::string mesh_of(const std::vector<Axis>& axes) {
  std::string text;
  for (const Axis& axis : axes) {
    if (axis.size > 1) {
      text += (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
    }
  }
  return text.empty() ? "rank=1" : text;
}

parallel::MeshLayout expert_layout(const ModelShape& shape, const Weight& weight,
                                   const ModelLayout& layout, const std::vector<int>& stage) {
  const int owner = part_with(shape.experts, layout.ep, weight.expert);
  const int copies = layout.stage_ranks() / (layout.ep * layout.etp);
  parallel::MeshLayout made{
      .mesh = parallel::MeshShape::parse(mesh_of({{"edp", copies}, {"etp", layout.etp}}))};
  for (int copy = 0; copy < copies; ++copy) {
    for (int part = 0; part < layout.etp; ++part) {
      const int at = (copy * layout.ep + owner) * layout.etp + part;
      made.ranks.push_back(stage[static_cast<std::size_t>(at)]);
    }
  }
  if (layout.etp > 1) {
    made.placements = {
        {.axis = "etp", .placement = parallel::Shard(static_cast<std::size_t>(weight.dim))}};
  }
  return made;
}

parallel::MeshLayout layout_of(const ModelShape& shape, const Weight& weight,
                               const ModelLayout& layout) {
  const int stage_index = weight.layer == kFirst ? 0
                          : weight.layer == kLast
                              ? layout.pp - 1
                              : part_with(shape.layers, layout.pp, weight.layer);
  const std::vector<int> stage = layout.stage(stage_index);
  if (weight.expert >= 0) {
    return expert_layout(shape, weight, layout, stage);
  }
  // If there are more ranks than heads, several ranks hold the same head.
  const auto tp = static_cast<std::size_t>(layout.tp);
  const int copies =
      weight.heads > 0 && weight.heads < tp ? static_cast<int>(tp / weight.heads) : 1;
  parallel::MeshLayout made{.mesh = parallel::MeshShape::parse(mesh_of({{"dp", layout.dp},
                                                                        {"fsdp", layout.fsdp},
                                                                        {"cp", layout.cp},
                                                                        {"tp", layout.tp / copies},
                                                                        {"same", copies}})),
                            .ranks = stage};
  if (weight.dim >= 0 && layout.tp > copies) {
    made.placements.push_back(
        {.axis = "tp", .placement = parallel::Shard(static_cast<std::size_t>(weight.dim))});
  }
  if (layout.fsdp > 1) {
    made.placements.push_back({.axis = "fsdp", .placement = parallel::Shard(0)});
  }
  return made;
}

void check_fit(const ModelShape& shape, const Weights& weights, const ModelLayout& layout,
               std::vector<std::string>& problems) {
  const auto wrong = [&](const std::string& what) {
    problems.push_back(layout.text() + ": " + what);
  };
  if (layout.pp > shape.layers) {
    wrong("pp has more stages than the model's " + std::to_string(shape.layers) + " layers");
  }
  if (!shape.has_experts() && (layout.ep > 1 || layout.etp > 1)) {
    wrong("ep and etp need a model with experts");
  } else if (layout.ep > std::max(shape.experts, 1)) {
    wrong("ep is more than the model's " + std::to_string(shape.experts) + " experts");
  }
  const auto tp = static_cast<std::size_t>(layout.tp);
  std::vector<std::size_t> named;
  for (const Weight& weight : weights.all) {
    if (weight.heads > 0 && weight.heads % tp != 0 && tp % weight.heads != 0 &&
        std::find(named.begin(), named.end(), weight.heads) == named.end()) {
      named.push_back(weight.heads);
      wrong("tp=" + std::to_string(tp) + " neither divides the " + std::to_string(weight.heads) +
            " heads of " + weight.name + " nor is a multiple of them");
    }
  }
}

}  // namespace

Weights weights_of(const planner::ModelShape& shape) {
  Weights weights{.all = Lister(shape).list()};
  double named = 0;
  for (const Weight& weight : weights.all) {
    double count = 1;
    for (const std::size_t length : weight.shape) {
      count *= static_cast<double>(length);
    }
    named += count;
  }
  const double all = planner::total_weights(shape);
  constexpr double kMostUnnamed = 0.01;
  if (std::abs(named - all) > kMostUnnamed * all) {
    throw Error(ErrorCode::usage,
                shape.name + " has parts that are not those of Llama, Qwen3-MoE and DeepSeek-V3: " +
                    std::to_string(std::llround(named / all * 100)) +
                    " % of its weights can be named\nmake the tensors in C++ or Python");
  }
  weights.left_out = std::max(0.0, all - named);
  return weights;
}

std::vector<parallel::ReshardTensor> reshard_tensors(const planner::ModelShape& shape,
                                                     const Weights& weights, Dtype dtype,
                                                     const ModelLayout& from,
                                                     const ModelLayout& to) {
  std::vector<std::string> problems;
  check_fit(shape, weights, from, problems);
  check_fit(shape, weights, to, problems);
  if (!problems.empty()) {
    std::string text = "the layouts do not fit " + shape.name;
    for (const std::string& problem : problems) {
      text += "\n" + problem;
    }
    throw Error(ErrorCode::usage, text);
  }
  std::vector<parallel::ReshardTensor> tensors;
  for (const Weight& weight : weights.all) {
    tensors.push_back({.name = weight.name,
                       .dtype = dtype,
                       .shape = weight.shape,
                       .from = layout_of(shape, weight, from),
                       .to = layout_of(shape, weight, to)});
  }
  return tensors;
}

}  // namespace unisono::weights
