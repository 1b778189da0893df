// Damaged programs: a program that the proofs accept must run correctly in every tried order.
#include <gtest/gtest.h>

#include <random>

#include "algorithms/catalog.h"
#include "base/testing_sanitizers.h"
#include "execute.h"
#include "msccl/check.h"
#include "msccl/export.h"
#include "msccl/xml.h"
#include "programs.h"
#include "schedule/verify.h"

namespace unisono::msccl {
namespace {

MscclProgram exported(Collective collective, const char* name, int ranks) {
  return to_program(build_schedule(*find_algorithm(collective, name), {.ranks = ranks}));
}

// Changes one field of one step.
void damage(MscclProgram& program, std::mt19937& random) {
  Gpu& gpu = program.gpus[random() % program.gpus.size()];
  ThreadBlock& block = gpu.blocks[random() % gpu.blocks.size()];
  const std::size_t at = random() % block.steps.size();
  Step& step = block.steps[at];
  switch (random() % 7) {
    case 0:
      block.steps.erase(block.steps.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      std::swap(step, block.steps[random() % block.steps.size()]);
      break;
    case 2:
      step.depends_on_block = step.depends_on_step = -1;
      break;
    case 3:
      step.source.offset += 1 - 2 * static_cast<int>(random() % 2);
      break;
    case 4:
      step.target.offset += 1 - 2 * static_cast<int>(random() % 2);
      break;
    case 5:
      step.tells = false;
      break;
    default:
      step.target.buffer = static_cast<Buffer>(random() % 3);
      break;
  }
}

TEST(MscclMutants, NoneIsAcceptedThatRunsWrong) {
  const std::vector<MscclProgram> programs = {
      testing::all_pairs(4),
      testing::fused_ring(4),
      testing::forwarding_all_gather(3),
      exported(Collective::all_reduce, "ring", 4),
      exported(Collective::all_reduce, "recursive_doubling", 4),
      exported(Collective::all_to_all, "bruck", 4),
      exported(Collective::reduce_scatter, "recursive_halving", 4)};
  std::mt19937 random(20260701);
  int rejected = 0;
  int unread = 0;
  int harmless = 0;
  for (int i = 0; i < repetitions(3000); ++i) {
    MscclProgram program = programs[static_cast<std::size_t>(i) % programs.size()];
    damage(program, random);
    const Parsed<MscclProgram> read = parse_xml(to_xml(program));
    if (!read) {
      ++unread;
      continue;
    }
    if (!check(*read.value).flaws.empty()) {
      ++rejected;
      continue;
    }
    ++harmless;
    EXPECT_TRUE(verify(to_schedule(*read.value)).empty()) << "mutant " << i << "\n"
                                                          << to_xml(*read.value);
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      for (const bool is_in_place : {false, true}) {
        if (is_in_place ? read.value->in_place : read.value->out_of_place) {
          ASSERT_TRUE(testing::runs_right(*read.value, seed, is_in_place)) << "mutant " << i << "\n"
                                                                           << to_xml(*read.value);
        }
      }
    }
  }
  EXPECT_GT(rejected, repetitions(1000));
  EXPECT_GT(harmless, repetitions(50));
  RecordProperty("rejected", rejected);
  RecordProperty("unread", unread);
  RecordProperty("harmless", harmless);
}

}  // namespace
}  // namespace unisono::msccl
