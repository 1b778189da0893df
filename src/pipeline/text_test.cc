#include "pipeline/text.h"

#include <gtest/gtest.h>

#include "pipeline/catalog.h"
#include "pipeline/json.h"

namespace unisono::pipeline {
namespace {

TEST(PipelineText, EveryEntryIsTheSameWhenReadBack) {
  for (const Entry* entry : catalog()) {
    SCOPED_TRACE(entry->name);
    const int chunks = entry->chunks == 0 ? 2 : entry->chunks;
    // Lines with more bytes than a JSON string may have.
    Pipeline pipeline = build(*entry, {.ranks = 4, .chunks = chunks, .microbatches = 256});
    const Parsed<Pipeline> from_json = parse_pipeline_json(to_json(pipeline));
    ASSERT_TRUE(from_json) << from_json.position << ": " << from_json.message;
    EXPECT_EQ(*from_json.value, pipeline);
    if (pipeline.chains.size() > 1) {
      continue;
    }
    const Parsed<Pipeline> from_csv = parse_csv(to_csv(pipeline));
    ASSERT_TRUE(from_csv) << from_csv.position << ": " << from_csv.message;
    EXPECT_EQ(from_csv.value->actions, pipeline.actions);
    EXPECT_EQ(from_csv.value->stage_rank, pipeline.stage_rank);
    EXPECT_EQ(from_csv.value->chains, pipeline.chains);
  }
}

TEST(PipelineText, EveryActionOfTorchIsRead) {
  const std::string row =
      "0UNSHARD,0F0,0SEND_F0,0RECV_B0,(0F1;0B0)OVERLAP_F_B,0SEND_F1,0RECV_B1,0I1,0W1,0REDUCE_GRAD,"
      "0RESHARD";
  const Parsed<std::vector<Action>> actions = parse_actions(row);
  ASSERT_TRUE(actions) << actions.message;
  EXPECT_EQ(actions_text(*actions.value), row);
  EXPECT_EQ(actions.value->size(), 13U);
}

TEST(PipelineText, ARankWithoutStagesIsALineWithoutActions) {
  for (const char* text : {"0F0,0B0\n\n", "\n0F0,0B0\n", "0F0,0B0\r\n\r\n"}) {
    const Parsed<Pipeline> parsed = parse_csv(text);
    ASSERT_TRUE(parsed) << parsed.message;
    EXPECT_EQ(parsed.value->ranks, 2);
    EXPECT_EQ(parse_csv(to_csv(*parsed.value)).value->actions, parsed.value->actions);
  }
  EXPECT_EQ(parse_csv("0F0,0B0\n").value->ranks, 1);
}

TEST(PipelineText, MistakesHaveAPlace) {
  EXPECT_EQ(parse_csv("0F0,0B0\n1F0,1X0").position, "line 2");
  EXPECT_EQ(parse_csv("0F0,0B0\n1F0,1X0").message,
            "cell 2: \"1X0\" is not an action such as 2F0, 1SEND_F3 or (1F4;2B0)OVERLAP_F_B");
  EXPECT_EQ(parse_csv("0F0,0B0\n2F0,2B0").message, "no rank computes stage 1");
  for (const char* text :
       {"", ",", "F0", "0F", "0F-1", "0F0x", "0UNSHARD1", "(0F0;0B0", "(;)OVERLAP_F_B",
        "(0F0;0SEND_F0)OVERLAP_F_B", "99999999999F0", "0F70000"}) {
    EXPECT_FALSE(parse_csv(text)) << text;
  }
  EXPECT_EQ(parse_csv(std::string((std::size_t{64} << 20U) + 1, ',')).message, "more than 64 MiB");
  const std::string head = R"({"format": "unisono.pipeline/1", "microbatches": 1, )";
  EXPECT_EQ(parse_pipeline_json(head + R"("stages": [0], "actions": [["0F0", "0?"]]})").position,
            "/actions/0");
  EXPECT_EQ(parse_pipeline_json(head + R"("stages": [1], "actions": [["0F0", "0B0"]]})").message,
            "a stage is on a rank that the pipeline does not have");
}

}  // namespace
}  // namespace unisono::pipeline
