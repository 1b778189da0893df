#include "step/training_parts.h"

#include <utility>

namespace unisono::step {

namespace {

constexpr const char* kExpertHidden = "expert_hidden";

// Returns the weights of up, optionally gate, and down. Those of experts are also sharded over the
// ranks of ep.
std::vector<UnitWeight> inner_weights(bool is_gated, const std::string& prefix,
                                      const std::string& hidden) {
  std::vector<UnitWeight> all;
  const auto add = [&](const char* name, std::vector<std::string> dims) {
    const bool is_of_expert = hidden == kExpertHidden;
    if (is_of_expert) {
      dims.insert(dims.begin(), "experts");
    }
    all.push_back({.name = prefix + name,
                   .dims = std::move(dims),
                   .cut = hidden,
                   .is_of_expert = is_of_expert});
  };
  add("up", {hidden, "width"});
  if (is_gated) {
    add("gate", {hidden, "width"});
  }
  add("down", {"width", hidden});
  return all;
}

}  // namespace

TrainingParts::TrainingParts(const planner::ModelShape& model, const parallel::MeshShape& mesh,
                             const TrainingTask& wanted)
    : shape(model), task(wanted), build(model.name + ", a training step", mesh) {
  shares_keys = !model.latent.is_used() && build.size("tp") > model.kv_heads;
}

std::size_t TrainingParts::sequences() const {
  const auto& pipeline = build.step().pipeline;
  return !pipeline ? task.sequences
                   : task.sequences / static_cast<std::size_t>(task.microbatches) *
                         pipeline->chains.size();
}

std::vector<UnitWeight> TrainingParts::embedding() const {
  return {{.name = "embedding",
           .dims = {"vocabulary", "width"},
           .cut = task.vocabulary ? "vocabulary" : "",
           .is_summed = task.sequence && !task.vocabulary}};
}

std::vector<UnitWeight> TrainingParts::attention(const std::string& prefix) const {
  const auto matrix = [&](const char* name, std::vector<std::string> dims,
                          const char* cut) -> UnitWeight {
    return {.name = prefix + name, .dims = std::move(dims), .cut = cut};
  };
  UnitWeight key = matrix("key", {"kv_heads", "dim", "width"}, shares_keys ? "" : "kv_heads");
  key.is_summed = shares_keys;
  UnitWeight value = key;
  value.name = prefix + "value";
  return {matrix("query", {"heads", "dim", "width"}, "heads"), key, value};
}

// The compressing matrices are replicated over tp; the expanding ones are sharded by heads.
std::vector<UnitWeight> TrainingParts::latent_attention(const std::string& prefix) const {
  std::vector<UnitWeight> all;
  const auto down = [&](const char* name, const char* to) {
    all.push_back({.name = prefix + name, .dims = {to, "width"}, .is_summed = task.sequence});
  };
  const auto norm = [&](const char* name, const char* dim) {
    all.push_back(
        {.name = prefix + name, .dims = {dim}, .is_summed = task.sequence, .sharded = dim});
  };
  const auto up = [&](const char* name, const char* heads, const char* dim, const char* from) {
    all.push_back(
        {.name = prefix + name, .dims = {heads, dim, from}, .cut = heads, .sharded = from});
  };
  if (shape.latent.query_rank > 0) {
    down("query down", "query_latent");
    norm("query norm", "query_latent");
  }
  up("query", "heads", "dim", query_from());
  down("latent down", "latent");
  norm("latent norm", "latent");
  down("rotary down", "rotary");
  up("key up", "kv_heads", "plain", "latent");
  up("value up", "kv_heads", "value_dim", "latent");
  return all;
}

std::vector<UnitWeight> TrainingParts::layer(int number) const {
  const std::string prefix = "layer " + std::to_string(number) + " ";
  const auto norm = [&](const char* name) -> UnitWeight {
    return {.name = prefix + name, .dims = {"width"}, .is_summed = task.sequence};
  };
  std::vector<UnitWeight> all = {norm("attention norm")};
  for (UnitWeight& weight : shape.latent.is_used() ? latent_attention(prefix) : attention(prefix)) {
    all.push_back(std::move(weight));
  }
  all.push_back({.name = prefix + "attention output",
                 .dims = {"width", "heads", value_dim()},
                 .cut = "heads"});
  all.push_back(norm("inner norm"));
  const auto add = [&](const std::string& kind, const char* hidden) {
    for (UnitWeight& weight : inner_weights(shape.gated, prefix + kind, hidden)) {
      all.push_back(std::move(weight));
    }
  };
  if (!is_expert_layer(number)) {
    add("", "hidden");
    return all;
  }
  // Each rank of tp has a summand of the experts' results, and therefore of the gradient of their
  // scores.
  all.push_back({.name = prefix + "router", .dims = {"experts", "width"}, .is_summed = true});
  add("expert ", kExpertHidden);
  if (shape.shared_ffn > 0) {
    add("shared ", "shared_hidden");
  }
  return all;
}

std::vector<UnitWeight> TrainingParts::head() const {
  std::vector<UnitWeight> all = {{.name = "norm", .dims = {"width"}, .is_summed = task.sequence}};
  if (!shape.tied) {
    all.push_back(embedding().front());
    all.back().name = output();
  }
  return all;
}

std::string TrainingParts::moved(const std::string& name, const std::string& tensor,
                                 const std::string& to_name, const std::string& axis,
                                 Placement from, Placement to) {
  if (!build.is_wide(axis)) {
    return tensor;
  }
  if (build.step().find_tensor(to_name) == nullptr) {
    activation(to_name, build.step().find_tensor(tensor)->dims);
  }
  build.redistribute(name, {tensor}, {to_name}, axis, std::move(from), std::move(to));
  return to_name;
}

}  // namespace unisono::step
