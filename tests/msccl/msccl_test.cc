// Exports every schedule of the catalogue that MSCCL's files can express, proves it, runs it on
// numbers in random orders, and reads it back.
#include <gtest/gtest.h>

#include "algorithms/catalog.h"
#include "execute.h"
#include "msccl/check.h"
#include "msccl/export.h"
#include "msccl/xml.h"
#include "programs.h"
#include "schedule/verify.h"
#include "transfers.h"
#include "unisono/error.hpp"

namespace unisono::msccl {
namespace {

std::string first_flaw(const MscclProgram& program) {
  const Proof proof = check(program);
  return proof.flaws.empty() ? "" : to_text(proof.flaws.front());
}

void expect_runs_right(const MscclProgram& program) {
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    if (program.out_of_place) {
      EXPECT_TRUE(testing::runs_right(program, seed, false)) << program.name << " seed " << seed;
    }
    if (program.in_place) {
      EXPECT_TRUE(testing::runs_right(program, seed, true)) << program.name << " seed " << seed;
    }
  }
}

TEST(Msccl, TheWholeCatalogue) {
  int exported = 0;
  for (const Algorithm* algorithm : catalog()) {
    if (word_of(algorithm->collective).empty()) {
      continue;
    }
    for (const int ranks : {1, 2, 3, 4, 5, 8}) {
      const Shape shape{.ranks = ranks, .root = ranks - 1};
      if (!can_serve(*algorithm, shape)) {
        continue;
      }
      const Schedule schedule = build_schedule(*algorithm, shape);
      const MscclProgram program = to_program(schedule);
      SCOPED_TRACE(program.name + " " + std::to_string(ranks));
      EXPECT_EQ(first_flaw(program), "");
      expect_runs_right(program);
      const Parsed<MscclProgram> read = parse_xml(to_xml(program));
      ASSERT_TRUE(read) << read.message << read.position;
      EXPECT_EQ(to_xml(*read.value), to_xml(program));
      const Schedule again = to_schedule(*read.value);
      EXPECT_TRUE(verify(again).empty());
      EXPECT_EQ(executors::testing::transfers(again), executors::testing::transfers(schedule));
      ++exported;
    }
  }
  EXPECT_GT(exported, 150);
}

TEST(Msccl, WhatOthersWrite) {
  for (const int gpus : {2, 3, 5, 8}) {
    for (const MscclProgram& program : {testing::all_pairs(gpus), testing::fused_ring(gpus),
                                        testing::forwarding_all_gather(gpus)}) {
      SCOPED_TRACE(program.name + " " + std::to_string(gpus));
      const Parsed<MscclProgram> read = parse_xml(to_xml(program));
      ASSERT_TRUE(read) << read.message << read.position;
      EXPECT_EQ(first_flaw(*read.value), "");
      expect_runs_right(*read.value);
      EXPECT_TRUE(verify(to_schedule(*read.value)).empty());
    }
  }
}

TEST(Msccl, ScatterHasNoWord) {
  const Algorithm* const algorithm = find_algorithm(Collective::scatter, "flat");
  ASSERT_NE(algorithm, nullptr);
  EXPECT_THROW(to_program(build_schedule(*algorithm, {.ranks = 2})), Error);
}

TEST(Msccl, NothingForgetsWhoWaits) {
  MscclProgram program = testing::fused_ring(3);
  // The first send of rank 1 is removed: its neighbours wait for it, and therefore for each other.
  program.gpus[1].blocks[0].steps.erase(program.gpus[1].blocks[0].steps.begin());
  EXPECT_NE(first_flaw(program).find("deadlock"), std::string::npos) << first_flaw(program);
}

// Included 2^32 times and once more: in 32 bits, this looks like once.
TEST(Msccl, HowOftenARankIsInDoesNotWrap) {
  const BufferPlace scratch{Buffer::scratch, 0};
  const BufferPlace other{Buffer::scratch, 1};
  ThreadBlock block;
  block.steps.push_back({.type = StepType::copy, .target = scratch});
  for (int i = 0; i < 32; ++i) {
    block.steps.push_back({.type = StepType::copy, .source = scratch, .target = other});
    block.steps.push_back({.type = StepType::reduce, .source = other, .target = scratch});
  }
  block.steps.push_back({.type = StepType::reduce, .target = scratch});
  block.steps.push_back({.type = StepType::copy, .source = scratch, .target = {Buffer::output, 0}});
  const MscclProgram program{.name = "wraps",
                             .collective = Collective::all_reduce,
                             .gpus = {{.chunks = {1, 1, 2}, .blocks = {block}}}};
  EXPECT_NE(first_flaw(program).find("(more than once)"), std::string::npos) << first_flaw(program);
}

TEST(Msccl, LeastRoom) {
  // Both GPUs send twice before they receive.
  MscclProgram program{.name = "two", .collective = Collective::all_gather, .chunks_per_loop = 4};
  for (int gpu = 0; gpu < 2; ++gpu) {
    ThreadBlock block{.send = 1 - gpu, .receive = 1 - gpu};
    for (int i = 0; i < 2; ++i) {
      block.steps.push_back({.type = StepType::send, .source = {Buffer::input, i}});
    }
    for (int i = 0; i < 2; ++i) {
      block.steps.push_back(
          {.type = StepType::receive, .target = {Buffer::output, 2 * (1 - gpu) + i}});
    }
    block.steps.push_back(
        {.type = StepType::copy, .target = {Buffer::output, 2 * gpu}, .chunks = 2});
    program.gpus.push_back({.chunks = {2, 4, 0}, .blocks = {block}});
  }
  EXPECT_EQ(first_flaw(program), "");
  EXPECT_EQ(check(program).room, 2U);
  EXPECT_FALSE(testing::runs_right(program, 1, false, 1));
  EXPECT_TRUE(testing::runs_right(program, 1, false, 2));
}

}  // namespace
}  // namespace unisono::msccl
