// Checks derived backward passes node for node, in a part that has one node of each kind.
// training_test.cc and training_numbers_test.cc check whole layers.
#include "step/transpose.h"

#include <gtest/gtest.h>

#include <string>

namespace unisono::step {
namespace {

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

// Returns "name: reads -> writes", with how it moves or computes.
std::string text_of(const Node& node) {
  std::string text = node.name + ": " + list(node.reads) + " -> " + list(node.writes);
  if (node.kind == Node::Kind::dispatch || node.kind == Node::Kind::combine) {
    text += node.kind == Node::Kind::dispatch ? "; dispatch" : "; combine";
  }
  if (!node.axes.empty()) {
    text += "; " + node.axes + " " + to_text(node.from) + " to " + to_text(node.to);
  }
  text += node.by.empty() ? "" : " by " + node.by;
  text += node.summed.empty() ? "" : "; summed " + list(node.summed);
  text += node.renamed.empty()
              ? ""
              : "; " + node.renamed.begin()->first + " is " + node.renamed.begin()->second;
  return text + "\n";
}

class Transposed : public testing::Test {
 protected:
  Transposed() {
    for (const char* dim : {"sequences", "places", "seen", "width", "hidden", "experts", "slots"}) {
      parts.build.dim({.name = dim, .size = 8});
    }
    parts.build.element_bytes(4);
    parts.build.weight("w", {"hidden", "width"}, {}, false);
    parts.build.weight("gain", {"width"}, {}, false);
    parts.activation("x", rows("width"));
    parts.build.section("forward", 0);
  }

  static std::vector<std::string> rows(const std::string& last) {
    return {"sequences", "places", last};
  }

  // Returns the pass from the tensor's gradient to all other gradients.
  std::string backward(const std::string& from) {
    parts.build.section("backward", 0);
    parts.activation("d " + from, f.dims(from));
    Backward backward(f);
    backward.start(from, "d " + from);
    backward.inputs();
    backward.weights();
    std::string text;
    for (const Node& node : parts.build.step().sections.back().nodes) {
      text += text_of(node);
    }
    return text;
  }

  planner::ModelShape shape = {.name = "small", .kv_heads = 8};
  TrainingTask task = {.sequence = true};
  TrainingParts parts{shape, parallel::MeshShape::parse("ep=2,cp=2,uly=2,tp=2"), task};
  Forward f{parts, {}, {}};
};

TEST_F(Transposed, AProductBecomesTwo) {
  f.product("up", "x", "w", "y", rows("hidden"));
  EXPECT_EQ(backward("y"),
            "d x: d y, w -> d x; summed hidden\n"
            "gradient of w: x, d y -> d w; summed sequences, places\n");
}

TEST_F(Transposed, GradientsOfSeveralUsesAreAdded) {
  f.norm("norm", "x", "gain", "normal");
  f.product("up", "normal", "w", "y", rows("hidden"));
  f.pointwise("active", {"y"}, "z", rows("hidden"), rows("hidden"));
  f.sum("sum", {"z", "y"}, "s");
  EXPECT_EQ(backward("s"),
            "d active: y, d s -> d y by active\n"
            "added: d s, d y by active -> d y\n"
            "d normal: d y, w -> d normal; summed hidden\n"
            "d norm: x, gain, d normal -> d x\n"
            "gradient of gain: x, d normal -> d gain; summed sequences, places\n"
            "gradient of w: normal, d y -> d w; summed sequences, places\n");
}

TEST_F(Transposed, ARedistributionBecomesItsConjugate) {
  f.enter("x");
  const std::string heads = f.moved("to heads", "x", "h", "uly", shard("places"), shard("width"));
  f.redistribute("around", {heads}, "cp", shard("places"), replicate(), "ring");
  f.redistribute("whole", {heads}, "tp", partial(), replicate());
  f.leave("h");
  EXPECT_EQ(backward("h"),
            "d summed: d h -> d h; tp shard(places) to replicate\n"
            "d around: d h -> d h; cp partial to shard(places) by ring_home\n"
            "d to heads: d h -> d x; uly shard(width) to shard(places)\n"
            "d rows gathered: d x -> d x; tp partial to shard(places)\n");
}

TEST_F(Transposed, WhatIsWholeHasASummandOnEachRankThatUsesIt) {
  task.sequence = false;
  f.enter("x");
  f.product("up", "x", "w", "y", rows("hidden"));
  EXPECT_EQ(backward("y"),
            "d x: d y, w -> d x; summed hidden\n"
            "d rows gathered: d x -> d x; tp partial to replicate\n"
            "gradient of w: x, d y -> d w; summed sequences, places\n");
}

TEST_F(Transposed, RowsGoTheOtherWay) {
  parts.activation("scores", rows("experts"));
  f.make("routed", {"experts", "sequences", "slots", "width"});
  f.compute({.kind = Node::Kind::dispatch,
             .name = "dispatch",
             .reads = {"x", "scores"},
             .writes = {"routed"},
             .renamed = {{"places", "slots"}},
             .axes = "ep",
             .from = shard("sequences"),
             .to = shard("experts")});
  EXPECT_EQ(backward("routed"),
            "d dispatch: d routed, scores -> d x; combine; ep shard(experts) to "
            "shard(sequences); slots is places\n");
}

TEST_F(Transposed, EachFactorHasTheOthersAndItsSum) {
  f.pointwise("weight", {"x"}, "weights", {"sequences", "places"}, {"sequences", "places"});
  f.pointwise("weighted", {"x", "weights"}, "y", rows("width"), rows("width"), Node::Linear::each);
  EXPECT_EQ(backward("y"),
            "d x: d y, weights -> d x by weighted\n"
            "d weights: d y, x -> d weights; summed width\n"
            "d weight: x, d weights -> d x by weight\n"
            "added: d x by weighted, d x by weight -> d x\n");
}

}  // namespace
}  // namespace unisono::step
