// Runs steps on numbers, every rank on its own data, and compares them with one process that has
// all data. A step that verify() accepts must give equal results, even if the step was damaged at
// random.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "base/testing_sanitizers.h"
#include "step/decoder.h"
#include "step/json.h"
#include "step/problem.h"
#include "step/testing_numbers.h"
#include "step/verify.h"

namespace unisono::step {
namespace {

planner::ModelShape tiny() {
  return {.name = "tiny",
          .layers = 2,
          .hidden = 4,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 2,
          .ffn = 4,
          .vocabulary = 4,
          .tied = true};
}

planner::ModelShape tiny_with_latents() {
  planner::ModelShape shape = tiny();
  shape.kv_heads = shape.heads;
  shape.latent = {
      .query_rank = 3, .value_rank = 2, .plain_dim = 2, .rotary_dim = 1, .value_dim = 2};
  return shape;
}

Step tiny_step(const std::string& mesh, bool is_prompt, const planner::ModelShape& shape = tiny()) {
  const int tp = mesh.find("tp=2") == std::string::npos ? 1 : 2;
  DecoderTask task{.candidates = static_cast<std::size_t>(4 / tp)};
  (is_prompt ? task.tokens : task.context) = is_prompt ? 4 : 3;
  Step step = make_decoder_step(shape, mesh, task);
  for (Dim& dim : step.dims) {
    dim.size = dim.name == "chosen" ? 4 : dim.size;
  }
  return step;
}

Held run_alone(const Step& step, const std::string& result) {
  const auto mesh = parallel::MeshShape::parse(step.mesh);
  const std::vector<Held> all = Interpreter(step, mesh).run();
  return {{result, all.front().at(result)}};
}

// Returns "" if every rank has the same results as one process.
std::string difference(const Step& step, const Values& wanted) {
  const auto mesh = parallel::MeshShape::parse(step.mesh);
  std::vector<Held> all;
  try {
    all = Interpreter(step, mesh).run();
  } catch (const std::out_of_range&) {
    return "something is read that is not there";
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto found = all[rank].find("best");
    if (found == all[rank].end() || found->second.size() != wanted.size()) {
      return "rank " + std::to_string(rank) + " has no result";
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!(std::abs(found->second[i] - wanted[i]) <= 1e-9 * std::abs(wanted[i]))) {
        return "rank " + std::to_string(rank) + " has another result";
      }
    }
  }
  return {};
}

const char* const kMeshes[] = {"tp=2", "pp=2", "cp=2", "cp=2,tp=2", "pp=2,cp=2,tp=2"};

TEST(StepNumbers, AllRanksHaveWhatOneProcessHas) {
  for (const bool is_prompt : {true, false}) {
    for (const auto& shape : {tiny(), tiny_with_latents()}) {
      const Values wanted = run_alone(tiny_step("tp=1", is_prompt, shape), "best").at("best");
      for (const char* mesh : kMeshes) {
        EXPECT_EQ(difference(tiny_step(mesh, is_prompt, shape), wanted), "") << mesh << is_prompt;
      }
    }
  }
}

// Makes one change to one node, tensor or section.
std::string damage(Step& step, std::mt19937_64& random) {
  const auto draw = [&](std::size_t most) { return static_cast<std::size_t>(random() % most); };
  std::vector<std::pair<std::size_t, std::size_t>> moves;
  for (std::size_t s = 0; s < step.sections.size(); ++s) {
    for (std::size_t i = 0; i < step.sections[s].nodes.size(); ++i) {
      if (step.sections[s].nodes[i].kind != Node::Kind::compute) {
        moves.emplace_back(s, i);
      }
    }
  }
  Section& section = step.sections[draw(step.sections.size())];
  const std::size_t at = draw(section.nodes.size());
  Node& node = section.nodes[at];
  const auto& [s, i] = moves[draw(moves.size())];
  std::vector<Node>& moving = step.sections[s].nodes;
  Node& move = moving[i];
  const Placement kPlacements[] = {replicate(), partial(), shard("rows"), shard("width"),
                                   shard("heads")};
  const char* const kAxes[] = {"pp", "cp", "tp"};
  switch (draw(11)) {
    case 0: {
      const std::string name = move.name;
      moving.erase(moving.begin() + static_cast<std::ptrdiff_t>(i));
      return "without " + name;
    }
    case 1:
      moving.insert(moving.begin() + static_cast<std::ptrdiff_t>(i), Node(move));
      return "twice " + moving[i].name;
    case 2:
      move.axes = kAxes[draw(3)];
      return "over " + move.axes + ": " + move.name;
    case 3:
      move.from = kPlacements[draw(5)];
      return "from " + to_text(move.from) + ": " + move.name;
    case 4:
      move.to = kPlacements[draw(5)];
      return "to " + to_text(move.to) + ": " + move.name;
    case 5: {
      const std::string name = node.name;
      section.nodes.erase(section.nodes.begin() + static_cast<std::ptrdiff_t>(at));
      return "without " + name;
    }
    case 6:
      std::swap(node, section.nodes[draw(section.nodes.size())]);
      return "another order in " + section.name;
    case 7:
      section.stage = static_cast<int>(draw(2));
      return section.name + " on stage " + std::to_string(section.stage);
    case 8: {
      Tensor& tensor = step.tensors[draw(step.tensors.size())];
      if (tensor.placement.empty()) {
        tensor.placement["tp"] = shard(tensor.dims[draw(tensor.dims.size())]);
      } else {
        tensor.placement.clear();
      }
      return tensor.name + " lies otherwise";
    }
    case 9:
      if (node.kind == Node::Kind::compute) {
        node.reads[draw(node.reads.size())] = step.tensors[draw(step.tensors.size())].name;
      }
      return "another input of " + node.name + ": " + node.reads.front() + ", " + node.reads.back();
    default:
      move.by = move.by.empty() ? "ring" : "";
      return "by " + move.by + ": " + move.name;
  }
}

// Returns the step on one rank. A damaged step that reads another tensor is a different step, so it
// is compared with itself on one rank.
Step alone(Step step) {
  step.mesh = "pp=1,cp=1,tp=1";
  step.stage_axis = "";
  for (Section& section : step.sections) {
    section.stage = 0;
    std::erase_if(section.nodes, [](const Node& node) {
      return node.kind == Node::Kind::send || node.kind == Node::Kind::broadcast;
    });
    for (Node& node : section.nodes) {
      if (node.kind == Node::Kind::redistribute) {  // another name for the same tensor
        node.kind = Node::Kind::redistribute;
        node.from = replicate();
        node.to = replicate();
      }
    }
  }
  return step;
}

TEST(StepNumbers, DamagedStepsAreRejectedOrHarmless) {
  constexpr int kMutants = repetitions(3000);
  int rejected = 0;
  int harmless = 0;
  int without_sense = 0;
  std::mt19937_64 random(7);
  for (int number = 0; number < kMutants; ++number) {
    const std::string mesh = kMeshes[random() % 5];
    Step step =
        tiny_step(mesh, random() % 2 == 0, random() % 2 == 0 ? tiny() : tiny_with_latents());
    const std::string what = damage(step, random);
    if (!problem_of(step).empty() || !verify(step).empty()) {
      ++rejected;
      continue;
    }
    ++harmless;
    SCOPED_TRACE("mutant " + std::to_string(number) + " of " + mesh + ": " + what);
    const Step one = alone(step);
    try {
      EXPECT_EQ(difference(step, run_alone(one, "best").at("best")), "");
    } catch (const std::out_of_range&) {
      ++without_sense;  // a computation of heads that does not read heads
    }
  }
  EXPECT_GE(rejected, kMutants / 2);
  EXPECT_GE(harmless, kMutants / 10);
  EXPECT_LE(without_sense, 1 + kMutants / 500);
}

}  // namespace
}  // namespace unisono::step
