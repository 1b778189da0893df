// Damaged plans: what the proofs accept must run right in every order that was tried.
#include <gtest/gtest.h>

#include <random>

#include "algorithms/catalog.h"
#include "machine.h"
#include "mscclpp/check.h"
#include "mscclpp/export.h"
#include "mscclpp/json.h"
#include "plans.h"

namespace unisono::mscclpp {
namespace {

ExecutionPlan exported_plan(Collective collective, const char* name, int ranks, Aliasing aliasing) {
  return to_plan(build_schedule(*find_algorithm(collective, name), {.ranks = ranks}), aliasing);
}

std::vector<ExecutionPlan> plans() {
  return {testing::reading_pair(),
          testing::putting_to_all(3),
          exported_plan(Collective::all_reduce, "ring", 3, Aliasing::none),
          exported_plan(Collective::all_reduce, "ring", 3, Aliasing::in_place),
          exported_plan(Collective::all_reduce, "recursive_doubling", 4, Aliasing::in_place),
          exported_plan(Collective::all_to_all, "bruck", 3, Aliasing::none),
          exported_plan(Collective::reduce_scatter, "recursive_halving", 4, Aliasing::none)};
}

// One thing of one operation is changed.
void damage(ExecutionPlan& plan, std::mt19937& random) {
  PlanGpu& gpu = plan.gpus[random() % plan.gpus.size()];
  ThreadBlock& block = gpu.blocks[random() % gpu.blocks.size()];
  const std::size_t at = random() % block.size();
  PlanOperation& operation = block[at];
  const int by = 1 - 2 * static_cast<int>(random() % 2);
  switch (random() % 6) {
    case 0:
      block.erase(block.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      std::swap(operation, block[random() % block.size()]);
      break;
    case 2:
      std::swap(operation, block[(at + 1) % block.size()]);
      break;
    case 3:
      for (PlanPlace& source : operation.sources) {
        source.offset += by;
      }
      break;
    case 4:
      for (PlanPlace& target : operation.targets) {
        target.offset += by;
      }
      break;
    default:
      block.insert(block.begin() + static_cast<std::ptrdiff_t>(random() % block.size()),
                   PlanOperation(operation));
      break;
  }
}

TEST(MscclppMutants, NoneIsAcceptedThatRunsWrong) {
  const std::vector<ExecutionPlan> originals = plans();
  std::mt19937 random(20260701);
  int rejected = 0;
  int unread = 0;
  int harmless = 0;
  for (std::size_t i = 0; i < 1500; ++i) {
    ExecutionPlan plan = originals[i % originals.size()];
    damage(plan, random);
    const Parsed<ExecutionPlan> read = parse_plan(to_json(plan));
    if (!read) {
      ++unread;
      continue;
    }
    if (!check(*read.value).flaws.empty()) {
      ++rejected;
      continue;
    }
    ++harmless;
    for (std::uint32_t seed = 0; seed < 10; ++seed) {
      ASSERT_TRUE(testing::runs_right(*read.value, seed)) << "mutant " << i << "\n"
                                                          << to_json(*read.value);
    }
  }
  EXPECT_GT(rejected, 500);
  EXPECT_GT(harmless, 50);
  RecordProperty("rejected", rejected);
  RecordProperty("unread", unread);
  RecordProperty("harmless", harmless);
}

// Each in turn: what orders the GPUs and the blocks, and the nop that makes it hold.
TEST(MscclppMutants, NoSignalIsTooMany) {
  for (const ExecutionPlan& original : plans()) {
    for (std::size_t gpu = 0; gpu < original.gpus.size(); ++gpu) {
      for (std::size_t b = 0; b < original.gpus[gpu].blocks.size(); ++b) {
        for (std::size_t i = 0; i < original.gpus[gpu].blocks[b].size(); ++i) {
          const Effect effect = traits_of(original.gpus[gpu].blocks[b][i].type).effect;
          if (effect != Effect::raises && effect != Effect::lowers) {
            continue;
          }
          ExecutionPlan plan = original;
          ThreadBlock& block = plan.gpus[gpu].blocks[b];
          block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
          EXPECT_FALSE(check(plan).flaws.empty())
              << plan.name << ": GPU " << gpu << ", block " << b << ", operation " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace unisono::mscclpp
