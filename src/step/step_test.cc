// Tests steps of decoders: that they are right, which errors are reported otherwise, and the calls
// and the memory of ranks.
#include <gtest/gtest.h>

#include "step/calls.h"
#include "step/decoder.h"
#include "step/json.h"
#include "step/memory.h"
#include "step/problem.h"
#include "step/verify.h"
#include "unisono/error.hpp"

namespace unisono::step {
namespace {

planner::ModelShape small() {
  return {.name = "small",
          .layers = 3,
          .hidden = 72,
          .heads = 9,
          .kv_heads = 3,
          .head_dim = 8,
          .ffn = 160,
          .vocabulary = 256,
          .tied = true};
}

// Like the latent attention of DeepSeek-V2, or of DeepSeek-V2-Lite, which does not compress
// queries.
planner::ModelShape with_latents(double query_rank) {
  planner::ModelShape shape = small();
  shape.kv_heads = shape.heads;
  shape.latent = {
      .query_rank = query_rank, .value_rank = 16, .plain_dim = 8, .rotary_dim = 4, .value_dim = 12};
  return shape;
}

planner::ModelShape upcyclable() {
  planner::ModelShape shape = small();
  shape.experts = 8;
  shape.experts_per_token = 2;
  shape.expert_ffn = 32;
  shape.shared_ffn = 16;
  shape.kinds.resize(1);
  return shape;
}

constexpr const char* kStepMeshes[] = {
    "tp=1",      "tp=2",      "tp=3",      "tp=4",      "tp=5",          "tp=9",
    "pp=2",      "pp=3",      "cp=2",      "cp=3",      "cp=4",          "pp=2,tp=2",
    "pp=3,tp=2", "cp=2,tp=2", "cp=2,tp=3", "pp=2,cp=2", "pp=2,cp=2,tp=2"};

std::string findings_of(const std::vector<Finding>& findings) {
  std::string all;
  for (const Finding& finding : findings) {
    all += to_text(finding) + "\n";
  }
  return all;
}

TEST(Decoder, IsRightUnderAllLayouts) {
  for (const char* mesh : kStepMeshes) {
    for (const DecoderTask& task : {DecoderTask{.tokens = 17}, DecoderTask{.context = 9}}) {
      for (const auto& shape : {small(), with_latents(24), with_latents(0)}) {
        const Step step = make_decoder_step(shape, mesh, task);
        EXPECT_EQ(problem_of(step), "") << mesh;
        EXPECT_EQ(findings_of(verify(step)), "") << mesh;
      }
    }
  }
}

TEST(Decoder, IsRightWithExperts) {
  for (const char* mesh : {"tp=2", "ep=2", "ep=4,tp=2", "cp=2,ep=2", "pp=2,cp=2,ep=2,tp=3"}) {
    for (const bool is_upcycled : {false, true}) {
      const Step prompt =
          make_decoder_step(upcyclable(), mesh, {.tokens = 17, .is_upcycled = is_upcycled});
      EXPECT_EQ(problem_of(prompt), "") << mesh;
      EXPECT_EQ(findings_of(verify(prompt)), "") << mesh;
      const Step token = make_decoder_step(upcyclable(), mesh, {.context = 9});
      EXPECT_EQ(findings_of(verify(token)), "") << mesh;
    }
  }
}

std::string refusal(const planner::ModelShape& shape, const char* mesh, const DecoderTask& task) {
  try {
    make_decoder_step(shape, mesh, task);
    return "none";
  } catch (const Error& error) {
    return std::string(error.summary());
  }
}

TEST(Decoder, SaysWhatCannotBe) {
  EXPECT_EQ(refusal(small(), "dp=2", {}), "an inference step has no axis dp");
  EXPECT_EQ(refusal(small(), "pp=4", {}), "4 stages are more than the 3 layers");
  EXPECT_EQ(refusal(small(), "ep=2", {}), "small has no experts");
  EXPECT_EQ(refusal(small(), "tp=1", {.tokens = 2, .context = 1}),
            "an inference step processes a whole prompt, or one token after it");
  EXPECT_NE(refusal(small(), "tp=10", {}), "none") << "more ranks than heads";
}

Node& node_of(Step& step, const std::string& name) {
  for (Section& section : step.sections) {
    for (Node& node : section.nodes) {
      if (node.name == name) {
        return node;
      }
    }
  }
  throw std::out_of_range(name);
}

void remove(Step& step, const std::string& name) {
  for (Section& section : step.sections) {
    std::erase_if(section.nodes, [&](const Node& node) { return node.name == name; });
  }
}

std::string first(const Step& step) {
  const std::vector<Finding> findings = verify(step);
  return findings.empty() ? "right" : to_text(findings.front());
}

TEST(StepVerify, SaysWhatIsWrong) {
  const Step good = make_decoder_step(small(), "pp=2,cp=2,tp=2", {.tokens = 8});
  Step step = good;
  remove(step, "attention summed");
  EXPECT_EQ(first(step),
            "layers, attention added: x is replicate over tp, but is added to summands of y: it "
            "would count once for each rank");
  step = good;
  remove(step, "embedding summed");
  EXPECT_EQ(first(step),
            "layers, attention norm: x is partial over tp, but is read as if it were "
            "whole");
  step = good;
  remove(step, "ring");
  EXPECT_EQ(first(step), "layers, attention: all_keys does not exist yet");
  step = good;
  node_of(step, "inner summed").axes = "cp";
  EXPECT_EQ(first(step), "layers, inner summed: y is shard(rows) over cp, not partial");
  step = good;
  remove(step, "x");
  EXPECT_EQ(first(step), "layers, attention norm: x does not exist yet");
  step = good;
  remove(step, "best");
  EXPECT_EQ(first(step), "in the end stage 0 has no best");
  step = good;
  node_of(step, "candidates gathered").to = shard("vocabulary");
  EXPECT_NE(problem_of(step) + first(step), "right");
  step = good;
  step.memory_bytes = 1000;
  EXPECT_EQ(first(step).substr(0, 12), "rank 0 needs");
}

TEST(StepVerify, MemoryIsThatOfThePlainSum) {
  // Computed by hand: the weights of a layer, the ends, and keys and values of 16 tokens.
  const double layer = 72 + 72 + 72 * 72 * 2 + 2 * 24 * 72 + 3 * 72 * 160;
  const std::vector<Memory> alone = memory_of(make_decoder_step(small(), "tp=1", {.tokens = 16}));
  EXPECT_EQ(alone.front().weights, 2 * (3 * layer + 256 * 72 + 72));
  EXPECT_EQ(alone.front().cache, 2 * (3 * 2 * 16 * 24));
  const std::vector<Memory> cut = memory_of(make_decoder_step(small(), "tp=3", {.tokens = 15}));
  const double share = 2 * 72 + (72 * 72 * 2 + 2 * 24 * 72 + 3 * 72 * 160) / 3.0;
  EXPECT_NEAR(cut[1].weights, 2 * (3 * share + 256 * 72 / 3.0 + 72), 4 * 1300);
  EXPECT_EQ(cut[1].cache, 2 * (3 * 2 * 15 * 8));
}

TEST(StepVerify, MemoryOfLatentsIsThatOfTheirPaper) {
  for (const double query_rank : {24.0, 0.0}) {
    const planner::ModelShape shape = with_latents(query_rank);
    const double norms = 72 + 72 + query_rank + 16;
    const double layer = norms + planner::mixer_weights(shape, {}) + 3 * 72 * 160;
    for (const DecoderTask& task : {DecoderTask{.tokens = 16}, DecoderTask{.context = 15}}) {
      const Memory alone = memory_of(make_decoder_step(shape, "tp=1", task)).front();
      EXPECT_EQ(alone.weights, 2 * (3 * layer + 256 * 72 + 72));
      EXPECT_EQ(alone.cache, 2 * (3 * 16 * planner::cache_elements(shape, {})));
      const Memory cut = memory_of(make_decoder_step(shape, "tp=3", task)).front();
      EXPECT_EQ(cut.cache, alone.cache) << "one row for all heads";
    }
  }
}

double flops_of(const Step& step, std::string_view node) {
  const auto calls = calls_of(step);
  double sum = 0;
  for (const Call& call : calls.front()) {
    sum += call.node == node ? call.flops : 0;
  }
  return sum;
}

TEST(StepCalls, OfLatentsTakeWhatTheirProductsTake) {
  constexpr double kHeads = 3 * 9;  // over three layers
  const planner::ModelShape shape = with_latents(24);
  const Step token = make_decoder_step(shape, "tp=1", {.context = 15});
  EXPECT_DOUBLE_EQ(flops_of(token, "query for latents"), 2 * kHeads * 8 * 16);
  EXPECT_DOUBLE_EQ(flops_of(token, "attention"), 2 * kHeads * 16 * (16 + 4 + 16));
  EXPECT_DOUBLE_EQ(flops_of(token, "values of heads"), 2 * kHeads * 12 * 16);
  const Step prompt = make_decoder_step(shape, "tp=1", {.tokens = 16});
  EXPECT_DOUBLE_EQ(flops_of(prompt, "keys made"), 2 * kHeads * 16 * 8 * 16);
  EXPECT_DOUBLE_EQ(flops_of(prompt, "attention"), kHeads * 16 * 16 * (12 + 12)) << "half of it";
  EXPECT_DOUBLE_EQ(flops_of(make_decoder_step(shape, "tp=3", {.tokens = 16}), "attention"),
                   kHeads / 3 * 16 * 16 * (12 + 12));
}

TEST(StepCalls, AreTwoAllReducesALayerForHeads) {
  const auto calls = calls_of(make_decoder_step(small(), "tp=2", {.context = 9}));
  std::string said;
  for (const Call& call : calls[1]) {
    if (call.what != "computing") {
      said += call.what + " " + std::to_string(static_cast<int>(call.bytes)) + "; ";
    }
  }
  EXPECT_EQ(said,
            "all_reduce 144; all_reduce 144; all_reduce 144; all_reduce 144; all_reduce 144; "
            "all_reduce 144; all_reduce 144; all_gather 32; ");
}

TEST(StepCalls, OfExpertsMoveARowOncePerExpert) {
  const auto calls = calls_of(make_decoder_step(upcyclable(), "ep=4", {.tokens = 16}));
  double bytes = 0;
  for (const Call& call : calls[0]) {
    bytes += call.what == "dispatch" ? call.bytes : 0;
  }
  EXPECT_EQ(bytes, 2 * 4 * 72 * 2 * 2) << "two layers, four tokens here, two experts each";
}

TEST(StepJson, ReadsWhatItWrites) {
  for (const char* mesh : kStepMeshes) {
    const Step step = make_decoder_step(small(), mesh, {.tokens = 6});
    const Parsed<Step> read = parse_step_json(to_json(step));
    ASSERT_TRUE(read) << read.message << " at " << read.position;
    EXPECT_EQ(to_json(*read.value), to_json(step));
    EXPECT_TRUE(verify(*read.value).empty());
  }
  const Step experts = make_decoder_step(upcyclable(), "ep=2,tp=2", {.context = 3});
  const Parsed<Step> read = parse_step_json(to_json(experts));
  ASSERT_TRUE(read) << read.message;
  EXPECT_EQ(to_json(*read.value), to_json(experts));
}

std::string problem_in(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  const Parsed<Step> read = parse_step_json(text.replace(at, from.size(), to));
  return read ? "none" : read.position + " " + read.message;
}

TEST(StepJson, SaysWhereItIsWrong) {
  const std::string text = to_json(make_decoder_step(small(), "cp=2,tp=2", {.tokens = 6}));
  EXPECT_EQ(problem_in(text, "step/1", "step/2"), "/format is not \"unisono.step/1\"");
  EXPECT_EQ(problem_in(text, "\"shard(vocabulary)\"", "\"cut\""),
            "/tensors/0/placement/tp \"cut\" is not a placement: replicate, partial, or "
            "shard(DIMENSION)");
  EXPECT_EQ(problem_in(text, "\"compute\": \"embedding\"", "\"do\": \"embedding\"").substr(0, 19),
            "/sections/0/nodes/0");
  EXPECT_EQ(problem_in(text, "cp=2,tp=2", "cp=0"),
            "/mesh mesh: the size \"0\" of axis \"cp\" is not a product of positive numbers and of "
            "axes before it");
  EXPECT_EQ(problem_in(text, "\"reads\": [\"tokens\"", "\"reads\": [\"token\""),
            "/ section embed, embedding: there is no tensor token");
}

}  // namespace
}  // namespace unisono::step
