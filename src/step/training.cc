#include "step/training.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "base/as_size.h"
#include "pipeline/catalog.h"
#include "step/training_layer.h"
#include "step/training_pipeline.h"
#include "step/training_units.h"
#include "unisono/error.hpp"
#include "unisono/parallel/tensor_parallel.hpp"

namespace unisono::step {
namespace {

constexpr const char* kDataAxes = "rep,copy,dp,ep,cp,uly";  // the axes that cut rows
constexpr int kMostNumber = 65536;

// Returns the rows of a sequence per expert, for an even choice.
double rows_of_expert(const TrainingParts& p) {
  return static_cast<double>(p.task.length) * p.shape.experts_per_token / p.shape.experts;
}

void add_expert_dims(TrainingParts& p) {
  const planner::ModelShape& shape = p.shape;
  p.build.dim({.name = "experts", .size = static_cast<std::size_t>(shape.experts)});
  p.build.dim({.name = "slots", .size = as_size(std::ceil(rows_of_expert(p)))});
  p.build.dim({.name = "chosen", .size = static_cast<std::size_t>(shape.experts_per_token)});
  p.build.dim({.name = "expert_hidden", .size = as_size(shape.expert_ffn)});
  if (shape.shared_ffn > 0) {
    p.build.dim({.name = "shared_hidden", .size = as_size(shape.shared_ffn)});
  }
}

// The number of slots is rounded up, so set the share of them that is filled.
void set_shares(TrainingParts& p) {
  Step& step = p.build.step();
  const double share = rows_of_expert(p) / std::ceil(rows_of_expert(p));
  const auto is_routed = [&](const std::string& tensor) {
    return has_name(step.find_tensor(tensor)->dims, "slots");
  };
  for (Section& section : step.sections) {
    for (Node& node : section.nodes) {
      if (node.kind == Node::Kind::compute && is_routed(node.reads.front())) {
        node.share = share;
      }
    }
  }
}

// Latent attention expands keys and values to all heads.
int key_value_heads(const planner::ModelShape& shape) {
  return shape.latent.is_used() ? shape.heads : shape.kv_heads;
}

void add_head_dims(TrainingParts& p) {
  const planner::LatentAttention& latent = p.shape.latent;
  if (!latent.is_used()) {
    p.build.dim({.name = "dim", .size = as_size(p.shape.head_dim)});
    return;
  }
  p.build.dim({.name = "dim", .size = as_size(latent.plain_dim + latent.rotary_dim)});
  p.build.dim({.name = "value_dim", .size = as_size(latent.value_dim)});
  p.build.dim({.name = "plain", .size = as_size(latent.plain_dim)});
  p.build.dim({.name = "rotary", .size = as_size(latent.rotary_dim)});
  p.build.dim({.name = "latent", .size = as_size(latent.value_rank)});
  if (latent.query_rank > 0) {
    p.build.dim({.name = "query_latent", .size = as_size(latent.query_rank)});
  }
}

void add_dims(TrainingParts& p) {
  const planner::ModelShape& shape = p.shape;
  p.build.dim({.name = "sequences", .size = p.sequences()});
  p.build.dim({.name = "places", .size = p.task.length, .cut = Cut::rows});
  p.build.dim({.name = "seen", .size = p.task.length, .cut = Cut::rows});
  p.build.dim({.name = "width", .size = as_size(shape.hidden)});
  p.build.dim({.name = "heads", .size = static_cast<std::size_t>(shape.heads), .cut = Cut::heads});
  p.build.dim({.name = "kv_heads",
               .size = static_cast<std::size_t>(key_value_heads(shape)),
               .cut = Cut::key_value_heads,
               .like = "heads"});
  add_head_dims(p);
  if (shape.expert_layers() < shape.layers) {
    p.build.dim({.name = "hidden", .size = as_size(shape.ffn)});
  }
  if (shape.has_experts()) {
    add_expert_dims(p);
  }
  p.build.dim({.name = "vocabulary", .size = as_size(shape.vocabulary)});
  p.build.dim({.name = "two", .size = 2});
  p.build.dim({.name = "one", .size = 1});
}

void add_inputs(TrainingParts& p) {
  p.build.element_bytes(4);
  Placements rows;
  for (const char* axis : {"rep", "copy", "dp", "ep"}) {
    rows[axis] = shard("sequences");
  }
  for (const char* axis : {"cp", "uly"}) {
    rows[axis] = shard("places");
  }
  for (const char* tokens : {"tokens", "targets"}) {
    p.build.tensor(Tensor::Kind::input, tokens, p.rows, rows);
  }
  p.build.element_bytes(p.task.element_bytes);
}

// Puts all layers on every rank. With ZeRO 3 the weights of the next unit are gathered one unit
// ahead.
void make_whole(TrainingParts& p, Units& units) {
  const auto layers = static_cast<std::size_t>(p.shape.layers);
  p.build.section("embed", 0);
  units.gather(0);
  units.gather(1);
  const Forward embedding = embed(p);
  std::vector<Forward> passes;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    p.build.section("forward", 0, static_cast<int>(layer));
    units.gather(layer + 2);
    if (p.shape.tied && layer + 1 == layers) {
      units.gather(0);  // for the head
    }
    passes.push_back(forward_layer(p, static_cast<int>(layer)));
  }
  p.build.section("head", 0);
  units.gather(layers);
  run_head(p);
  units.reduce(units.last());
  for (std::size_t layer = layers; layer-- > 0;) {
    p.build.section("backward", 0, static_cast<int>(layer));
    if (layer > 0) {
      units.gather(layer);
    }
    Backward backward = backward_of(passes[layer]);
    backward.inputs();
    backward.weights();
    units.reduce(layer + 1);
  }
  p.build.section("embed backward", 0);
  backward_of(embedding).inputs();
  units.reduce(0);
  units.add_squares(0, units.last() + 1, 0, kNorm);
  units.sum_norm("norm summed", "tp");
  units.update(0, units.last() + 1, 0);
  p.build.section("loss", 0);
  p.build.redistribute("loss of all", "loss", kDataAxes, partial(), replicate());
}

Step make(TrainingParts& p) {
  Step& step = p.build.step();
  step.data_axes = {"rep", "dp"};
  if (p.build.is_wide("ep")) {
    step.data_axes.emplace_back("ep");
  }
  step.context_axes = {"cp", "uly"};
  step.order = p.task.order;
  add_dims(p);
  add_inputs(p);
  Units units(p);
  if (step.pipeline) {
    make_passes(p, units);
  } else {
    make_whole(p, units);
  }
  std::erase_if(step.sections, [](const Section& one) { return one.nodes.empty(); });
  if (p.shape.has_experts()) {
    set_shares(p);
  }
  step.results.push_back({.tensor = step.pipeline ? kLossOfAll : "loss",
                          .placement = {},
                          .is_everywhere = step.pipeline.has_value()});
  return p.build.take();
}

// Reads "m=8".
bool read_number(std::string_view word, std::string_view key, int& number) {
  if (!word.starts_with(key)) {
    return false;
  }
  const auto [end, error] =
      std::from_chars(word.data() + key.size(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() && number >= 1 &&
         number <= kMostNumber;
}

bool read_word(std::string_view word, TrainingTask& task) {
  if (word.size() == 6 && word.starts_with("zero=") && word[5] >= '0' && word[5] <= '3') {
    task.zero = word[5] - '0';
  } else if (word == "sp") {
    task.sequence = true;
  } else if (word == "vocab") {
    task.vocabulary = true;
  } else if (word == "all_gather") {
    task.gathers_keys = true;
  } else if (word == "contiguous" || word == "striped") {
    task.order =
        word == "striped" ? parallel::ContextOrder::striped : parallel::ContextOrder::contiguous;
  } else if (pipeline::find_entry(word) != nullptr) {
    if (!task.schedule.empty()) {
      throw Error(ErrorCode::usage, task.schedule + " and " + std::string(word) +
                                        " are two schedules\ngive one schedule");
    }
    task.schedule = word;
  } else {
    return read_number(word, "m=", task.microbatches) || read_number(word, "v=", task.chunks);
  }
  return true;
}

int product_of(const parallel::MeshShape& mesh, std::initializer_list<std::string_view> names) {
  int product = 1;
  for (const parallel::Axis& axis : mesh.axes()) {
    product *= std::find(names.begin(), names.end(), axis.name) != names.end() ? axis.size : 1;
  }
  return product;
}

void check_axes(const planner::ModelShape& shape, const parallel::MeshShape& mesh,
                const TrainingTask& task) {
  constexpr std::array<std::string_view, 7> kAxes = {"pp", "rep", "dp", "ep", "cp", "uly", "tp"};
  for (const parallel::Axis& axis : mesh.axes()) {
    if (std::find(kAxes.begin(), kAxes.end(), axis.name) == kAxes.end()) {
      throw Error(ErrorCode::config, "a training step has no axis " + axis.name +
                                         "\nits axes are pp, rep, dp, ep, cp, uly and tp");
    }
  }
  check_experts(shape.name, shape.experts, product_of(mesh, {"ep"}));
  const int replicas = product_of(mesh, {"rep", "dp", "ep"});
  if (static_cast<std::size_t>(replicas) > task.sequences) {
    throw Error(ErrorCode::usage,
                std::to_string(task.sequences) + " sequences are fewer than the " +
                    std::to_string(replicas) +
                    " parts of rep, dp and ep\ngive more with --train, or use smaller axes");
  }
  parallel::head_share(static_cast<std::size_t>(shape.heads),
                       static_cast<std::size_t>(key_value_heads(shape)),
                       product_of(mesh, {"tp", "uly"}), 0);
}

void check(const planner::ModelShape& shape, const parallel::MeshShape& mesh,
           const TrainingTask& task) {
  const auto& axes = mesh.axes();
  check_axes(shape, mesh, task);
  const bool has_stages = std::any_of(axes.begin(), axes.end(),
                                      [](const parallel::Axis& axis) { return axis.name == "pp"; });
  if (has_stages && shape.tied) {
    throw Error(ErrorCode::usage, shape.name +
                                      " shares one matrix between embedding and head, which "
                                      "different stages need\nremove pp");
  }
  if (has_stages == task.schedule.empty()) {
    throw Error(ErrorCode::usage, has_stages
                                      ? "pp has no schedule\ngive one, such as 1f1b m=8"
                                      : task.schedule +
                                            " is a pipeline schedule, but the layout has no axis "
                                            "pp\nadd pp to the layout, or remove the schedule");
  }
}

}  // namespace

TrainingTask parse_training(std::string_view words) {
  TrainingTask task;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (!word.empty() && !read_word(word, task)) {
      throw Error(
          ErrorCode::usage,
          "a training step does not support \"" + std::string(word) +
              "\"\nit supports zero=0 to zero=3, sp, vocab, all_gather, contiguous and striped, "
              "and for a pipeline a schedule such as 1f1b, m=MICROBATCHES and v=STAGES per rank");
    }
  }
  return task;
}

Step make_training_step(const planner::ModelShape& shape, std::string_view mesh,
                        const TrainingTask& task) {
  const auto axes = parallel::MeshShape::parse(mesh);
  check(shape, axes, task);
  TrainingParts parts(shape, axes, task);
  if (!task.schedule.empty()) {
    add_pipeline(parts);
  }
  return make(parts);
}

}  // namespace unisono::step
