// Invalid MSCCL++ plans are refused, with the position of the error.
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <set>

#include "damaged_text.h"
#include "mscclpp/check.h"
#include "mscclpp/json.h"
#include "plans.h"

namespace unisono::mscclpp {
namespace {

// Returns the text of a valid plan with one part replaced.
std::string changed(const std::string& what, const std::string& by) {
  std::string text = to_json(testing::putting_to_all(2));
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

struct RefusedPlan {
  std::string text;
  const char* message;
  const char* position;
};

TEST(MscclppJson, Refuses) {
  for (const RefusedPlan& one : {
           RefusedPlan{"{\"gpus\": [", "", "byte"},
           RefusedPlan{"{\"gpus\": []}", "key \"name\" is missing", ""},
           RefusedPlan{changed("Simple", "LL"), "not those that send packets", "/protocol"},
           RefusedPlan{changed("\"allgather\"", "\"sendrecv\""),
                       "not a collective that can be checked", "/collective"},
           RefusedPlan{changed("reuse_resources\":false", "reuse_resources\":true"),
                       "overlaps the scratch", "/reuse_resources"},
           RefusedPlan{changed("\"name\":\"", "\"name\":\"a\\u001bb"),
                       "a name with control characters", "/name"},
           RefusedPlan{changed("\"channel_ids\":[0]",
                               "\"channel_ids\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"),
                       "17 channels of a thread block; MSCCL++'s executor supports 16",
                       "/gpus/0/threadblocks/0/channels"},
           RefusedPlan{changed("\"remote_buffer_ids\":[0]",
                               "\"remote_buffer_ids\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"),
                       "17 remote buffers of a thread block; MSCCL++'s executor supports 16",
                       "/gpus/0/threadblocks/0/remote_buffer_refs"},
           RefusedPlan{changed("\"connected_to\":[1]", "\"connected_to\":[]"),
                       "GPU 0 has no channels, but thread block 0 names channel 0",
                       "/gpus/0/threadblocks/0/channels/0/channel_ids/0"},
           RefusedPlan{
               changed("{\"rank\":1,\"type\":\"o\",\"access_channel_types\":[\"memory\"]}", ""),
               "GPU 0 has no remote buffers, but thread block 0 names remote buffer 0",
               "/gpus/0/threadblocks/0/remote_buffer_refs/0/remote_buffer_ids/0"},
           RefusedPlan{changed("\"channel_ids\":[0]}],\"remote", "\"channel_ids\":[]}],\"remote"),
                       "thread block 0 of GPU 0 has no channels, but operation 0 names channel 0",
                       "/gpus/0/threadblocks/0/ops/0/channel_ids/0"},
           RefusedPlan{changed("\"remote_buffer_ids\":[0]", "\"remote_buffer_ids\":[]"),
                       "thread block 0 of GPU 0 has no remote buffers, but operation 4 names "
                       "remote buffer 0",
                       "/gpus/0/threadblocks/0/ops/4/dst_buff/0/buffer_id"},
           RefusedPlan{
               changed("{\"name\":\"copy\"",
                       "{\"name\":\"sem_acquire\",\"semaphore_ids\":[2]},{\"name\":\"copy\""),
               "GPU 0 has no semaphores, but operation 3 names semaphore 2",
               "/gpus/0/threadblocks/0/ops/3/semaphore_ids/0"},
           RefusedPlan{changed("\"input_chunks\":2", "\"input_chunks\":3"),
                       "3 input chunks, but the collective has 2", "/gpus/0"},
           RefusedPlan{changed("\"connected_to\":[1]", "\"connected_to\":[0]"),
                       "GPU 0 is connected to itself", "/gpus/0/channels/0/connected_to/0"},
           RefusedPlan{changed("\"memory\"", "\"port\""), "port channels are not supported",
                       "/gpus/0/channels/0/channel_type"},
           RefusedPlan{changed("\"name\":\"put\"", "\"name\":\"ppkt\""), "packets",
                       "/gpus/0/threadblocks/0/ops/4/name"},
           RefusedPlan{changed("\"name\":\"put\"", "\"name\":\"throw\""),
                       "unknown operation \"throw\"", "/gpus/0/threadblocks/0/ops/4/name"},
           RefusedPlan{changed("\"name\":\"put\"", "\"tbg_info\":{},\"name\":\"put\""),
                       "groups of thread blocks are not supported",
                       "/gpus/0/threadblocks/0/ops/4/tbg_info"},
           RefusedPlan{changed("\"index\":0,\"size\":1", "\"index\":2,\"size\":1"),
                       "index 2 and size 1 end after the buffer's 2 chunks",
                       "/gpus/0/threadblocks/0/ops/3/src_buff/0"},
           RefusedPlan{changed("\"buffer_id\":0", "\"buffer_id\":1"), "",
                       "/gpus/0/threadblocks/0/ops/4/dst_buff/0/buffer_id"},
           RefusedPlan{changed("\"barrier_id\":1", "\"barrier_id\":16"), "",
                       "/gpus/0/threadblocks/0/ops/2/barrier_id"},
       }) {
    const Parsed<ExecutionPlan> parsed = parse_plan(one.text);
    EXPECT_FALSE(parsed) << one.text;
    EXPECT_NE(parsed.message.find(one.message), std::string::npos) << parsed.message;
    EXPECT_TRUE(parsed.position.starts_with(one.position)) << parsed.position;
  }
}

// The keys of src/core/executor/execution_plan.cc at commit 00668b4a41ac of MSCCL++.
TEST(MscclppJson, WritesOnlyWhatTheExecutorReads) {
  const std::set<std::string> known = {"name",
                                       "collective",
                                       "protocol",
                                       "inplace",
                                       "reuse_resources",
                                       "use_double_scratch_buffer",
                                       "num_threads_per_block",
                                       "buffer_alignment",
                                       "min_message_size",
                                       "max_message_size",
                                       "gpus",
                                       "id",
                                       "input_chunks",
                                       "output_chunks",
                                       "scratch_chunks",
                                       "channels",
                                       "channel_type",
                                       "connected_to",
                                       "remote_buffers",
                                       "rank",
                                       "type",
                                       "access_channel_types",
                                       "semaphores",
                                       "init_value",
                                       "threadblocks",
                                       "channel_ids",
                                       "remote_buffer_refs",
                                       "access_channel_type",
                                       "remote_buffer_ids",
                                       "ops",
                                       "src_buff",
                                       "dst_buff",
                                       "buffer_id",
                                       "index",
                                       "size",
                                       "semaphore_ids",
                                       "barrier_id",
                                       "num_threadblocks"};
  ExecutionPlan with_semaphore = testing::putting_to_all(3);
  with_semaphore.gpus[0].semaphores = {0};
  with_semaphore.gpus[0].blocks[0].push_back({.type = OperationType::release, .semaphores = {0}});
  const std::string text = to_json(with_semaphore) + to_json(testing::reading_pair());
  const std::regex key("\"([a-z_]+)\":");
  std::set<std::string> written;
  for (std::sregex_iterator at(text.begin(), text.end(), key), end; at != end; ++at) {
    written.insert((*at)[1]);
  }
  EXPECT_EQ(written, known);
}

// A short file may require a proof with much memory.
TEST(MscclppJson, WhatAProofMultipliesIsBounded) {
  const auto refusal_of = [](const PlanGpu& gpu) {
    return parse_plan(to_json({.name = "large", .gpus = {gpu}})).message;
  };
  const PlanGpu small{.chunks = {1, 1, 1}, .blocks = {{PlanOperation{}}}};

  PlanGpu blocks = small;
  blocks.blocks.assign(6000, {PlanOperation{}});
  EXPECT_NE(refusal_of(blocks).find("6000 thread blocks and 0 signals"), std::string::npos)
      << refusal_of(blocks);

  constexpr int kChunks = 1 << 20;
  PlanGpu copies{.chunks = {kChunks, kChunks, kChunks}};
  copies.blocks.resize(1);
  for (int i = 0; i < 3; ++i) {
    copies.blocks[0].push_back({.type = OperationType::copy,
                                .sources = {{.chunks = kChunks}},
                                .targets = {{.buffer = Buffer::scratch, .chunks = kChunks}}});
  }
  EXPECT_NE(refusal_of(copies).find("name 6291456 chunks"), std::string::npos)
      << refusal_of(copies);

  ExecutionPlan channels{.name = "channels", .gpus = {small, small}};
  channels.gpus[0].channels.assign(20000, 1);
  EXPECT_NE(parse_plan(to_json(channels)).message.find("20000 channels; at most"),
            std::string::npos);

  // Sums hold a count for each GPU.
  ExecutionPlan sums{.name = "sums"};
  sums.gpus.assign(512, {.chunks = {256, 256, 1 << 18}, .blocks = {{PlanOperation{}}}});
  for (int i = 0; i < 600; ++i) {
    sums.gpus[0].blocks[0].push_back(
        {.type = OperationType::reduce,
         .sources = {{.chunks = 256}, {.chunks = 256}},
         .targets = {{.buffer = Buffer::scratch, .offset = 256 * i, .chunks = 256}}});
  }
  EXPECT_NE(parse_plan(to_json(sums)).message.find("sums of 153600 chunks of 512 GPUs"),
            std::string::npos)
      << parse_plan(to_json(sums)).message;
}

TEST(MscclppJson, TellsWhatItIs) {
  EXPECT_TRUE(is_plan(to_json(testing::reading_pair())));
  EXPECT_FALSE(is_plan("{\"format\": \"unisono.schedule/1\", \"algorithm\": \"gpus\"}"));
}

// The executor swaps the two indexes of a get.
TEST(MscclppJson, GetWithTwoIndexesIsRefused) {
  ExecutionPlan plan = testing::reading_pair();
  for (PlanOperation& operation : plan.gpus[0].blocks[0]) {
    if (operation.type == OperationType::get) {
      operation.targets[0].offset = 0;
    }
  }
  const Parsed<ExecutionPlan> parsed = parse_plan(to_json(plan));
  EXPECT_FALSE(parsed);
  EXPECT_NE(parsed.message.find("only equal indices are supported"), std::string::npos)
      << parsed.message;
}

TEST(MscclppJson, DamagedBytesNeverCrash) {
  const std::string whole = to_json(testing::reading_pair());
  std::mt19937 random(7);
  int read = 0;
  for (int i = 0; i < 4000; ++i) {
    if (const Parsed<ExecutionPlan> parsed =
            parse_plan(executors::testing::damaged(whole, random))) {
      check(*parsed.value);
      ++read;
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace unisono::mscclpp
