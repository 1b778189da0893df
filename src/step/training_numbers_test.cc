// Runs training steps on numbers, like numbers_test.cc: each weight must end with the value that
// one process computes.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/testing_sanitizers.h"
#include "step/testing_numbers.h"
#include "step/training.h"
#include "step/verify.h"

namespace unisono::step {
namespace {

planner::ModelShape tiny_shape(bool has_experts, bool is_tied) {
  planner::ModelShape shape{.name = "tiny",
                            .layers = 1,
                            .hidden = 4,
                            .heads = 2,
                            .kv_heads = 2,
                            .head_dim = 2,
                            .ffn = 4,
                            .vocabulary = 4,
                            .tied = is_tied};
  if (has_experts) {
    shape.experts = 2;
    shape.experts_per_token = 2;
    shape.expert_ffn = 4;
    shape.shared_ffn = 2;
  }
  return shape;
}

planner::ModelShape tiny_with_latents(double query_rank) {
  planner::ModelShape shape = tiny_shape(false, false);
  shape.latent = {
      .query_rank = query_rank, .value_rank = 2, .plain_dim = 2, .rotary_dim = 1, .value_dim = 2};
  return shape;
}

Step tiny_training(const planner::ModelShape& shape, const char* mesh, const char* words) {
  TrainingTask task = parse_training(words);
  task.sequences = 4;
  task.length = 4;
  return make_training_step(shape, mesh, task);
}

// Returns "" if all ranks have one process's values of every weight and of the loss.
std::string difference_of(const Step& step, const Held& wanted) {
  const auto mesh = parallel::MeshShape::parse(step.mesh);
  const std::vector<Held> all = Interpreter(step, mesh).run();
  for (const Step::Result& result : step.results) {
    const Values& right = wanted.at(result.tensor);
    for (std::size_t i = 0; i < right.size(); ++i) {
      bool is_anywhere = false;
      for (const Held& held : all) {
        const double found = held.at(result.tensor)[i];
        is_anywhere = is_anywhere || !std::isnan(found);
        if (std::abs(found - right[i]) > 1e-9 * std::abs(right[i])) {
          return result.tensor + " is another one";
        }
      }
      if (!is_anywhere) {
        return result.tensor + " is not there";
      }
    }
  }
  return {};
}

struct Laid {
  const char* mesh;
  const char* words;
};

constexpr Laid kLayouts[] = {{"dp=2", ""},          {"dp=2", "zero=1"},  {"rep=2,tp=2", "zero=2"},
                             {"tp=2", ""},          {"tp=2", "sp"},      {"tp=2", "sp vocab"},
                             {"cp=2", ""},          {"uly=2", "zero=1"}, {"dp=2,tp=2", "vocab"},
                             {"cp=2", "all_gather"}};
constexpr Laid kExpertLayouts[] = {{"ep=2", ""},
                                   {"ep=2,tp=2", "zero=1"},
                                   {"ep=2,tp=2", ""},
                                   {"ep=2,tp=2", "sp vocab"},
                                   {"ep=2", "zero=1"}};

constexpr std::size_t kStride = kSanitized ? 3 : 1;

TEST(TrainingNumbers, AllRanksLeaveWhatOneProcessLeaves) {
  for (const planner::ModelShape& shape :
       {tiny_shape(false, false), tiny_shape(true, false), tiny_shape(false, true),
        tiny_with_latents(4), tiny_with_latents(0)}) {
    const Step one = tiny_training(shape, "tp=1", "");
    const Held wanted = Interpreter(one, parallel::MeshShape::parse("tp=1")).run().front();
    for (std::size_t i = 0; i < std::size(kLayouts); i += kStride) {
      const auto& [mesh, words] = kLayouts[i];
      EXPECT_EQ(difference_of(tiny_training(shape, mesh, words), wanted), "")
          << mesh << " " << words;
    }
    for (std::size_t i = 0; shape.has_experts() && i < std::size(kExpertLayouts); i += kStride) {
      const auto& [mesh, words] = kExpertLayouts[i];
      EXPECT_EQ(difference_of(tiny_training(shape, mesh, words), wanted), "")
          << mesh << " " << words;
    }
  }
}

}  // namespace
}  // namespace unisono::step
