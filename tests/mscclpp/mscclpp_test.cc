// Exports every schedule of the catalogue that MSCCL++ plans can express, proves it, runs it on
// numbers in random orders, and reads it back.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "base/testing_sanitizers.h"
#include "machine.h"
#include "mscclpp/blocks.h"
#include "mscclpp/check.h"
#include "mscclpp/export.h"
#include "mscclpp/json.h"
#include "mscclpp/limits.h"
#include "plans.h"
#include "schedule/verify.h"
#include "transfers.h"
#include "unisono/error.hpp"

namespace unisono::mscclpp {
namespace {

std::string first_flaw_of(const ExecutionPlan& plan) {
  const PlanProof proof = check(plan);
  return proof.flaws.empty() ? "" : to_text(proof.flaws.front());
}

void expect_round_trip(const ExecutionPlan& plan, const Schedule& schedule) {
  Parsed<ExecutionPlan> read = parse_plan(to_json(plan));
  ASSERT_TRUE(read) << read.message << read.position;
  EXPECT_EQ(to_json(*read.value), to_json(plan));
  const PlanProof proof = check(*read.value);
  EXPECT_TRUE(proof.flaws.empty()) << to_text(proof.flaws.front());
  EXPECT_LE(proof.longest_block, kMostOperationsOfBlock);
  read.value->root = proof.root;
  const Schedule again = to_schedule(*read.value);
  EXPECT_TRUE(verify(again).empty());
  EXPECT_EQ(executors::testing::transfers(again), executors::testing::transfers(schedule));
}

TEST(Mscclpp, TheWholeCatalogue) {
  int exported = 0;
  for (const Algorithm* algorithm : catalog()) {
    if (word_of(algorithm->collective).empty()) {
      continue;
    }
    for (int ranks = 1; ranks <= 8; ++ranks) {
      const Shape shape{.ranks = ranks, .root = ranks - 1};
      if (!can_serve(*algorithm, shape)) {
        continue;
      }
      const Schedule schedule = build_schedule(*algorithm, shape);
      for (const Aliasing aliasing : {Aliasing::none, Aliasing::in_place}) {
        if (aliasing == Aliasing::in_place && !verify_in_place(schedule).empty()) {
          EXPECT_THROW(to_plan(schedule, aliasing), Error);
          continue;
        }
        const ExecutionPlan plan = to_plan(schedule, aliasing);
        SCOPED_TRACE(plan.name + " " + std::to_string(ranks));
        expect_round_trip(plan, schedule);
        for (std::uint32_t seed = 0; seed < 2; ++seed) {
          EXPECT_TRUE(testing::runs_right(plan, seed)) << "seed " << seed;
        }
        ++exported;
      }
    }
  }
  EXPECT_GT(exported, 300);
}

TEST(Mscclpp, ManyOrders) {
  struct Case {
    Collective collective;
    const char* algorithm;
    int ranks;
  };
  for (const Case& one :
       {Case{Collective::all_reduce, "ring", 3},
        Case{Collective::all_reduce, "recursive_doubling", 4},
        Case{Collective::all_gather, "bruck", 3}, Case{Collective::all_to_all, "bruck", 3},
        Case{Collective::reduce_scatter, "recursive_halving", 4},
        Case{Collective::broadcast, "binomial", 5}}) {
    const Algorithm* const algorithm = find_algorithm(one.collective, one.algorithm);
    ASSERT_NE(algorithm, nullptr) << one.algorithm;
    const Schedule schedule = build_schedule(*algorithm, {.ranks = one.ranks});
    for (const Aliasing aliasing : {Aliasing::none, Aliasing::in_place}) {
      if (aliasing == Aliasing::in_place && !verify_in_place(schedule).empty()) {
        continue;
      }
      const ExecutionPlan plan = to_plan(schedule, aliasing);
      for (int seed = 0; seed < repetitions(1000); ++seed) {
        ASSERT_TRUE(testing::runs_right(plan, static_cast<std::uint32_t>(seed)))
            << plan.name << " seed " << seed;
      }
    }
  }
}

TEST(Mscclpp, WhatOthersWrite) {
  for (ExecutionPlan plan :
       {testing::reading_pair(), testing::putting_to_all(2), testing::putting_to_all(3),
        testing::putting_to_all(5), testing::adding_in_scratch(2), testing::adding_in_scratch(3),
        testing::adding_in_scratch(5)}) {
    SCOPED_TRACE(plan.name);
    const Parsed<ExecutionPlan> read = parse_plan(to_json(plan));
    ASSERT_TRUE(read) << read.message << read.position;
    EXPECT_EQ(first_flaw_of(*read.value), "");
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
      EXPECT_TRUE(testing::runs_right(*read.value, seed, 3)) << "seed " << seed;
    }
    EXPECT_TRUE(verify(to_schedule(*read.value)).empty());
  }
}

TEST(Mscclpp, SemaphoresMayCountFromTheBeginning) {
  ExecutionPlan plan = testing::reading_pair();
  for (PlanGpu& gpu : plan.gpus) {
    gpu.semaphores = {1};
    ThreadBlock& block = gpu.blocks.front();
    block.insert(block.begin(), {.type = OperationType::acquire, .semaphores = {0}});
    block.insert(block.begin() + 1, {.type = OperationType::nop});
    block.push_back({.type = OperationType::nop});
    block.push_back({.type = OperationType::release, .semaphores = {0}});
  }
  EXPECT_EQ(first_flaw_of(plan), "");
  EXPECT_TRUE(testing::runs_right(plan, 1, 3));
  plan.gpus[1].blocks.front().pop_back();
  EXPECT_NE(first_flaw_of(plan).find("semaphore 0 of GPU 1 ends at 0 instead of 1"),
            std::string::npos)
      << first_flaw_of(plan);
  EXPECT_FALSE(testing::runs_right(plan, 1, 3));
}

// The runs detect mistakes too: they are not right merely because no accesses conflict.
bool goes_wrong_somewhere(const ExecutionPlan& plan) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    if (!testing::runs_right(plan, seed)) {
      return true;
    }
  }
  return false;
}

// A GPU's next launch may begin while other GPUs are in the previous one.
TEST(Mscclpp, NobodyWritesToWhoHasNotBegun) {
  ExecutionPlan plan = testing::putting_to_all(2);
  for (PlanGpu& gpu : plan.gpus) {
    ThreadBlock& block = gpu.blocks.front();
    block.erase(block.begin(), block.begin() + 2);  // the relaxed signal, and its wait
  }
  EXPECT_NE(first_flaw_of(plan).find("without knowing that it has started"), std::string::npos)
      << first_flaw_of(plan);
  EXPECT_TRUE(goes_wrong_somewhere(plan));
}

TEST(Mscclpp, NobodyEndsBeforeAllHasCome) {
  ExecutionPlan plan = testing::putting_to_all(2);
  for (PlanGpu& gpu : plan.gpus) {
    ThreadBlock& block = gpu.blocks.front();
    block.erase(block.end() - 2, block.end());
  }
  EXPECT_NE(first_flaw_of(plan).find("may end earlier"), std::string::npos) << first_flaw_of(plan);
  EXPECT_TRUE(goes_wrong_somewhere(plan));
}

// GPU 1 waits for two signals, and the second one never arrives.
TEST(Mscclpp, TheSignalThatIsMissingIsNamed) {
  ExecutionPlan plan = testing::putting_to_all(3);
  plan.gpus[2].blocks.front().front().channels.pop_back();
  EXPECT_NE(first_flaw_of(plan).find("of GPU 1 waits for a signal of GPU 2 on channel 1"),
            std::string::npos)
      << first_flaw_of(plan);
}

// The first and the second thread of the block would count on the same channel at the same time.
TEST(Mscclpp, TwoThreadsCountAtOnce) {
  ExecutionPlan plan = testing::adding_in_scratch(3);
  for (PlanGpu& gpu : plan.gpus) {
    ThreadBlock& block = gpu.blocks.front();
    PlanOperation signal = block[0];
    PlanOperation wait = block[1];
    std::swap(signal.channels[0], signal.channels[1]);
    std::swap(wait.channels[0], wait.channels[1]);
    block.insert(block.begin() + 1, signal);
    block.insert(block.begin() + 3, wait);
  }
  EXPECT_NE(first_flaw_of(plan).find("uses the same channel as step 0, at another place"),
            std::string::npos)
      << first_flaw_of(plan);
  EXPECT_TRUE(goes_wrong_somewhere(plan));
  for (PlanGpu& gpu : plan.gpus) {
    ThreadBlock& block = gpu.blocks.front();
    block.insert(block.begin() + 3, PlanOperation{});
    block.insert(block.begin() + 1, PlanOperation{});
  }
  EXPECT_EQ(first_flaw_of(plan), "");
  EXPECT_FALSE(goes_wrong_somewhere(plan));
}

TEST(Mscclpp, TheWriterKeepsACounterOnItsThread) {
  ThreadBlockWriter writer;
  writer.acquire(5);
  writer.wait(0);
  writer.acquire(3);
  writer.acquire(5);  // not as the second one of an operation
  writer.acquire(4);
  writer.wait(0);
  writer.acquire(4);  // first in this operation, although it was second before
  std::vector<int> semaphores;
  const std::vector<ThreadBlock> pieces = std::move(writer).finish(semaphores);
  ASSERT_EQ(pieces.size(), 1U);
  std::string words;
  for (const PlanOperation& operation : pieces.front()) {
    words += traits_of(operation.type).word;
    for (const int semaphore : operation.semaphores) {
      words += " " + std::to_string(semaphore);
    }
    words += "; ";
  }
  EXPECT_EQ(words,
            "sem_acquire 5; wait; sem_acquire 3; sem_acquire 5 4; wait; nop; sem_acquire 4; ");
}

// But for the one before the signal that grants a place: what was read there has gone once around
// the ring when the next put comes, so that their order follows without it.
TEST(Mscclpp, ANopLessIsFound) {
  const Algorithm* const algorithm = find_algorithm(Collective::all_reduce, "ring");
  ASSERT_NE(algorithm, nullptr);
  const ExecutionPlan original = to_plan(build_schedule(*algorithm, {.ranks = 3}), Aliasing::none);
  int nops = 0;
  int granting = 0;
  int wrong = 0;
  for (std::size_t b = 0; b < original.gpus[0].blocks.size(); ++b) {
    const ThreadBlock& block = original.gpus[0].blocks[b];
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (block[i].type != OperationType::nop) {
        continue;
      }
      ExecutionPlan plan = original;
      plan.gpus[0].blocks[b].erase(plan.gpus[0].blocks[b].begin() + static_cast<std::ptrdiff_t>(i));
      const bool grants = block.at(i - 1).type == OperationType::acquire &&
                          block.at(i + 1).type == OperationType::signal;
      const bool is_wrong = goes_wrong_somewhere(plan);
      EXPECT_EQ(first_flaw_of(plan).empty(), grants) << "block " << b << ", operation " << i;
      EXPECT_FALSE(grants && is_wrong) << "block " << b << ", operation " << i;
      ++nops;
      granting += grants ? 1 : 0;
      wrong += is_wrong ? 1 : 0;
    }
  }
  EXPECT_GT(nops, 10);
  EXPECT_EQ(granting, 1);
  EXPECT_GT(wrong, nops / 2);
}

bool is_told(const ExecutionPlan& plan, std::string_view text) {
  const std::vector<executors::Flaw> flaws = check(plan).flaws;
  return std::any_of(flaws.begin(), flaws.end(),
                     [&](const executors::Flaw& flaw) { return flaw.text == text; });
}

// Threads process the chunks of an operation in any order.
TEST(Mscclpp, AnOperationDoesNotMeetItself) {
  const auto shifted_by = [](int chunks) {
    const PlanPlace input{.buffer = Buffer::input, .chunks = 2};
    const PlanPlace output{.buffer = Buffer::output, .chunks = 2};
    const PlanPlace first{.buffer = Buffer::scratch, .chunks = 2};
    const PlanPlace second{.buffer = Buffer::scratch, .offset = chunks, .chunks = 2};
    const auto copy = [](const PlanPlace& from, const PlanPlace& to) {
      return PlanOperation{.type = OperationType::copy, .sources = {from}, .targets = {to}};
    };
    return ExecutionPlan{
        .name = "shifted",
        .gpus = {{.chunks = {2, 2, 4},
                  .blocks = {{copy(input, first), PlanOperation{}, copy(first, second),
                              PlanOperation{}, copy(second, output)}}}}};
  };
  EXPECT_EQ(first_flaw_of(shifted_by(2)), "");
  EXPECT_FALSE(goes_wrong_somewhere(shifted_by(2)));
  EXPECT_TRUE(is_told(shifted_by(1), "writes to chunks that it reads as others"));
  EXPECT_TRUE(goes_wrong_somewhere(shifted_by(1)));

  ExecutionPlan twice = testing::putting_to_all(3);
  for (PlanOperation& operation : twice.gpus[0].blocks[0]) {
    if (operation.type == OperationType::put) {
      operation.targets[1] = operation.targets[0];
    }
  }
  EXPECT_TRUE(is_told(twice, "writes a chunk twice"));
}

// Included 2^32 times and once more: in 32 bits, this looks like once.
TEST(Mscclpp, HowOftenARankIsInDoesNotWrap) {
  const PlanPlace input{.buffer = Buffer::input};
  const PlanPlace scratch{.buffer = Buffer::scratch};
  const PlanOperation nop{};
  ThreadBlock block = {{.type = OperationType::copy, .sources = {input}, .targets = {scratch}},
                       nop};
  for (int i = 0; i < 32; ++i) {
    block.push_back(
        {.type = OperationType::reduce, .sources = {scratch, scratch}, .targets = {scratch}});
    block.push_back(nop);
  }
  block.push_back({.type = OperationType::reduce,
                   .sources = {scratch, input},
                   .targets = {{.buffer = Buffer::output}}});
  const ExecutionPlan plan{.name = "wraps", .gpus = {{.chunks = {1, 1, 1}, .blocks = {block}}}};
  EXPECT_NE(first_flaw_of(plan).find("rank 0 (more than once)"), std::string::npos)
      << first_flaw_of(plan);
}

TEST(Mscclpp, WhatIsBeyondTheExecutorIsTold) {
  ExecutionPlan plan = testing::adding_in_scratch(3);  // scratch, its largest buffer, has 2 chunks
  plan.most_bytes = 2147483632;
  EXPECT_TRUE(beyond_executor(plan, kMostOperationsOfBlock).empty());
  const std::vector<std::string> long_block = beyond_executor(plan, kMostOperationsOfBlock + 1);
  ASSERT_EQ(long_block.size(), 1U);
  EXPECT_EQ(long_block[0], "a thread block has 65 operations; MSCCL++'s executor supports 64");
  ++plan.most_bytes;
  const std::vector<std::string> large = beyond_executor(plan, 1);
  ASSERT_EQ(large.size(), 1U);
  EXPECT_NE(large[0].find("messages of more than 2147483632 bytes"), std::string::npos) << large[0];
}

TEST(Mscclpp, TheRootIsFound) {
  const Algorithm* const algorithm = find_algorithm(Collective::reduce, "binomial");
  ASSERT_NE(algorithm, nullptr);
  const ExecutionPlan plan =
      to_plan(build_schedule(*algorithm, {.ranks = 4, .root = 2}), Aliasing::none);
  EXPECT_EQ(check(*parse_plan(to_json(plan)).value).root, 2);
}

TEST(Mscclpp, ScatterHasNoWord) {
  const Algorithm* const algorithm = find_algorithm(Collective::scatter, "flat");
  ASSERT_NE(algorithm, nullptr);
  EXPECT_THROW(to_plan(build_schedule(*algorithm, {.ranks = 2}), Aliasing::none), Error);
}

}  // namespace
}  // namespace unisono::mscclpp
