// Damaged plans: a plan that the proofs accept must run correctly in every tried order.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "base/testing_sanitizers.h"
#include "machine.h"
#include "mscclpp/check.h"
#include "mscclpp/export.h"
#include "mscclpp/json.h"
#include "plans.h"
#include "schedule/verify.h"

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

// Removes or repeats one entry of a list, or swaps two.
template <typename Entry>
void damage_list(std::vector<Entry>& list, std::mt19937& random) {
  if (list.empty()) {
    return;
  }
  const std::size_t at = random() % list.size();
  switch (random() % 3) {
    case 0:
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(random() % list.size()),
                  Entry(list[at]));
      break;
    default:
      std::swap(list[at], list[random() % list.size()]);
      break;
  }
}

void damage_place(PlanPlace& place, std::mt19937& random) {
  const int by = 1 - 2 * static_cast<int>(random() % 2);
  switch (random() % 4) {
    case 0:
      place.offset += by;
      break;
    case 1:
      place.chunks += by;
      break;
    case 2:
      place.buffer = static_cast<Buffer>(random() % 3);
      break;
    default:
      place.gpu = std::max(place.gpu + by, 0);
      break;
  }
}

// Damages an operation's operands: its places, its channels and its semaphores.
void damage_operands(PlanOperation& operation, std::mt19937& random) {
  std::vector<PlanPlace>& places = random() % 2 == 0 ? operation.sources : operation.targets;
  std::vector<int>& counters =
      operation.channels.empty() ? operation.semaphores : operation.channels;
  switch (random() % 4) {
    case 0:
      damage_list(places, random);
      damage_list(counters, random);
      break;
    case 1:  // removes a pair of places, so that the other pairs still match
      if (operation.sources.size() > 1 && operation.sources.size() == operation.targets.size()) {
        const auto at = static_cast<std::ptrdiff_t>(random() % operation.sources.size());
        operation.sources.erase(operation.sources.begin() + at);
        operation.targets.erase(operation.targets.begin() + at);
      }
      break;
    case 2:
      if (!places.empty()) {
        damage_place(places[random() % places.size()], random);
      }
      break;
    default:
      if (!counters.empty()) {
        counters[random() % counters.size()] += 1 - 2 * static_cast<int>(random() % 2);
      }
      break;
  }
}

// Changes one field of one operation.
void damage(ExecutionPlan& plan, std::mt19937& random) {
  PlanGpu& gpu = plan.gpus[random() % plan.gpus.size()];
  ThreadBlock& block = gpu.blocks[random() % gpu.blocks.size()];
  const std::size_t at = random() % block.size();
  switch (random() % 6) {
    case 0:
      block.erase(block.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      std::swap(block[at], block[random() % block.size()]);
      break;
    case 2:
      std::swap(block[at], block[(at + 1) % block.size()]);
      break;
    case 3:
      block.insert(block.begin() + static_cast<std::ptrdiff_t>(random() % block.size()),
                   PlanOperation(block[at]));
      break;
    default:
      damage_operands(block[at], random);
      break;
  }
}

TEST(MscclppMutants, NoneIsAcceptedThatRunsWrong) {
  const std::vector<ExecutionPlan> originals = plans();
  std::mt19937 random(20260701);
  int rejected = 0;
  int unread = 0;
  int harmless = 0;
  for (int i = 0; i < repetitions(2000); ++i) {
    const ExecutionPlan& original = originals[static_cast<std::size_t>(i) % originals.size()];
    ExecutionPlan plan = original;
    damage(plan, random);
    if (to_json(plan) == to_json(original)) {
      continue;
    }
    Parsed<ExecutionPlan> read = parse_plan(to_json(plan));
    if (!read) {
      ++unread;
      continue;
    }
    const PlanProof proof = check(*read.value);
    if (!proof.flaws.empty()) {
      ++rejected;
      continue;
    }
    ++harmless;
    read.value->root = proof.root;
    EXPECT_TRUE(verify(to_schedule(*read.value)).empty()) << "mutant " << i << "\n"
                                                          << to_json(*read.value);
    for (std::uint32_t seed = 0; seed < 10; ++seed) {
      ASSERT_TRUE(testing::runs_right(*read.value, seed)) << "mutant " << i << "\n"
                                                          << to_json(*read.value);
    }
  }
  EXPECT_GT(rejected, repetitions(500));
  EXPECT_GT(harmless, repetitions(50));
  RecordProperty("rejected", rejected);
  RecordProperty("unread", unread);
  RecordProperty("harmless", harmless);
}

// Removes each in turn: the operations that order the GPUs and the blocks, and the nop that makes
// the order hold.
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
