// The planner's figures equal the sums over the nodes of a step: FLOPs, bytes by axis and weights
// of one layer of each kind that a known model has, under every layout that both describe.
//
// Nothing is compared if they describe different layouts: with both tp and ep, a rank of the
// planner has whole experts and sends its part of the rows, while a rank of a step has a part of
// each expert and sends all rows.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/testing_sanitizers.h"
#include "planner/layer_work.h"
#include "planner/memory.h"
#include "step/calls.h"
#include "step/extent.h"
#include "step/training.h"

namespace unisono::step {
namespace {

constexpr double kTokens = 12288;   // divides evenly among the experts of every model
constexpr double kLeast = 1e-9;     // relative: figures may be rounded differently
constexpr double kOfScores = 1e-3;  // relative: one more number for each row and expert

struct Sums {
  double forward_flops = 0;
  double backward_flops = 0;
  std::map<std::string, double> forward_bytes = {};  // sent by rank 0, by axis
  std::map<std::string, double> backward_bytes = {};
  double head_flops = 0;
  double weights = 0;
  double expert_weights = 0;
};

double sent_bytes(const Call& call) {
  const auto ranks = static_cast<double>(call.group.size());
  if (call.what == "send") {
    return call.bytes;
  }
  if (call.what == "receive") {
    return 0;
  }
  return call.bytes * (call.what == "all_reduce" ? 2 : 1) *
         (call.what == "dispatch" || call.what == "combine" ? 1 : (ranks - 1) / ranks);
}

Sums sums_of(const Step& step) {
  Sums sums;
  const StepRanks ranks(step);
  const auto calls = calls_of(step);
  for (const Call& call : calls.front()) {
    const bool is_forward = call.section == "forward";
    sums.head_flops += call.section == "head" ? call.flops : 0;
    if (!is_forward && call.section != "backward") {
      continue;
    }
    (is_forward ? sums.forward_flops : sums.backward_flops) += call.flops;
    const bool is_of_weights = call.node.find("gradient") != std::string::npos;
    for (const char* axis : {"tp", "cp", "uly", "ep"}) {
      if (call.what != "computing" && !is_of_weights && call.group == ranks.group(0, axis)) {
        (is_forward ? sums.forward_bytes : sums.backward_bytes)[axis] += sent_bytes(call);
      }
    }
  }
  for (const Tensor& tensor : step.tensors) {
    const bool is_matrix = tensor.kind == Tensor::Kind::weight && tensor.dims.size() > 1;
    if (is_matrix && tensor.name.find(" of ") == std::string::npos) {  // not of the optimiser
      const bool is_of_expert = has_name(tensor.dims, "experts") && tensor.dims.size() > 2;
      (is_of_expert ? sums.expert_weights : sums.weights) +=
          local_bytes(step, ranks, tensor, tensor.placement, 0) / tensor.element_bytes;
    }
  }
  return sums;
}

double flops_of(const std::vector<planner::MatrixProduct>& products) {
  double flops = 0;
  for (const planner::MatrixProduct& product : products) {
    flops += product.flops();
  }
  return flops;
}

void expect_near(double planned, double summed, const std::string& what, double least = kLeast) {
  EXPECT_NEAR(planned, summed, least * summed) << what;
}

void compare(const planner::ModelShape& shape, const planner::Layout& layout) {
  const std::string where =
      shape.name + (shape.kind(0).has_experts ? ", experts, " : ", ") + text_of(layout);
  const planner::TrainingTask asked{.batch = static_cast<double>(layout.dp), .sequence = kTokens};
  if (!problem_of(shape, layout, asked).empty()) {
    return;
  }
  TrainingTask task{.sequences = static_cast<std::size_t>(layout.micro_batch * layout.ep),
                    .length = static_cast<std::size_t>(kTokens),
                    .sequence = layout.sequence_parallel,
                    .vocabulary = true,
                    .element_bytes = 2};
  const auto axis = [](const char* name, int size) {
    return name + std::string("=") + std::to_string(size);
  };
  const std::string mesh = axis("ep", layout.ep) + "," + axis("cp", layout.cp) + "," +
                           axis("uly", layout.uly) + "," + axis("tp", layout.tp);
  Sums sums = sums_of(make_training_step(shape, mesh, task));

  const planner::LayerWork work = layer_work(shape, layout, asked, shape.kind(0).has_experts);
  expect_near(flops_of(work.products) + flops_of(work.attention), sums.forward_flops,
              where + ": FLOPs forward");
  expect_near(2 * flops_of(work.products) + work.attention_backward * flops_of(work.attention),
              sums.backward_flops, where + ": FLOPs backward");
  expect_near(2 * work.tensor_bytes, sums.forward_bytes["tp"] + sums.backward_bytes["tp"],
              where + ": bytes over tp");
  expect_near(work.context_bytes, sums.forward_bytes["cp"], where + ": bytes over cp");
  expect_near(work.backward_context_bytes, sums.backward_bytes["cp"],
              where + ": bytes over cp, backward");
  expect_near(work.heads_bytes, sums.forward_bytes["uly"], where + ": bytes over uly");
  expect_near(work.backward_heads_bytes, sums.backward_bytes["uly"],
              where + ": bytes over uly, backward");
  const double row = shape.hidden * 2;
  for (const auto* bytes : {&sums.forward_bytes, &sums.backward_bytes}) {
    const auto found = bytes->find("ep");
    expect_near(layout.ep == 1 ? 0 : 2 * work.expert_tokens * shape.experts_per_token * row,
                found == bytes->end() ? 0 : found->second, where + ": bytes over ep", kOfScores);
  }
  const planner::LayerWork head = head_work(shape, layout, asked);
  expect_near(3 * flops_of(head.products), sums.head_flops, where + ": FLOPs of the head");
  const planner::LocalWeights weights = local_weights(shape, layout);
  expect_near(weights.dense, sums.weights, where + ": weights");
  if (layout.tp == 1) {
    expect_near(weights.experts, sums.expert_weights, where + ": weights of experts");
  }
}

// Returns one layer of each kind.
std::vector<planner::ModelShape> layers_of(const planner::ModelShape& shape) {
  std::vector<planner::ModelShape> all;
  for (int layer = 0; layer < shape.layers; ++layer) {
    const planner::LayerKind kind = shape.kind(layer);
    const bool is_known = std::any_of(all.begin(), all.end(), [&](const planner::ModelShape& one) {
      return one.kind(0) == kind;
    });
    if (!is_known) {
      all.push_back(shape);
      all.back().layers = 1;
      all.back().kinds = {kind};
    }
  }
  return all;
}

std::vector<planner::ModelShape> known_layers() {
  std::vector<planner::ModelShape> all;
  for (const std::string_view name : planner::known_models()) {
    for (planner::ModelShape& one : layers_of(planner::find_model(name).value())) {
      all.push_back(std::move(one));
    }
  }
  // A variant like DeepSeek-V2-Lite, which does not compress queries.
  all.push_back(planner::find_model("deepseek-v3").value());
  all.back().name = "deepseek-lite";
  all.back().layers = 1;
  all.back().kinds.resize(1);
  all.back().latent.query_rank = 0;
  return all;
}

TEST(Sums, OfDenseAxesAreWhatThePlannerCounts) {
  for (const planner::ModelShape& shape : known_layers()) {
    for (const bool sequence : {false, true}) {
      for (const planner::Layout& layout :
           {planner::Layout{}, planner::Layout{.tp = 2}, planner::Layout{.tp = 8},
            planner::Layout{.cp = 2}, planner::Layout{.cp = 4, .micro_batch = 2},
            planner::Layout{.uly = 2}, planner::Layout{.uly = 8},
            planner::Layout{.cp = 2, .uly = 2}, planner::Layout{.tp = 2, .cp = 2},
            planner::Layout{.tp = 2, .cp = 2, .uly = 4},
            planner::Layout{.tp = 4, .uly = 2, .micro_batch = 2}, planner::Layout{.tp = 16}}) {
        if (kSanitized && (layout.tp > 2 || layout.cp > 2 || layout.uly > 2)) {
          continue;
        }
        planner::Layout asked = layout;
        asked.sequence_parallel = sequence;
        compare(shape, asked);
      }
    }
  }
}

TEST(Sums, OfExpertsAreWhatThePlannerCounts) {
  for (const planner::ModelShape& shape : known_layers()) {
    for (const int ep : {2, 8}) {
      if (shape.kind(0).has_experts) {
        compare(shape, {.ep = ep, .dp = ep});
        compare(shape, {.uly = 2, .ep = ep, .dp = ep});
      }
    }
  }
}

}  // namespace
}  // namespace unisono::step
