// Checks that every node that moves data is necessary as it is. For tests of training steps.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/testing_sanitizers.h"
#include "step/verify.h"

namespace unisono::step {

inline std::string text(const std::vector<Finding>& findings) {
  std::string all;
  for (const Finding& finding : findings) {
    all += to_text(finding) + "\n";
  }
  return all;
}

// With stage 3 a layer's weights are gathered again for its backward pass. Without the second
// gather they would still exist, and only occupy memory for longer.
inline bool is_needed(const Section& section, const Node& node) {
  return !node.name.ends_with("weights gathered") || section.name == "embed" ||
         section.name == "forward" || section.name == "weights" ||
         section.name.starts_with("optimiser");
}

// Removes each node, and changes the placements of its outputs. Returns the number of steps tried.
inline int check_mutants(const Step& right, const std::string& what) {
  int mutants = 0;
  for (std::size_t s = 0; s < right.sections.size(); ++s) {
    for (std::size_t n = 0; n < right.sections[s].nodes.size(); ++n) {
      const Node& node = right.sections[s].nodes[n];
      if (node.kind == Node::Kind::compute || !is_needed(right.sections[s], node) ||
          (kSanitized && n % 5 != 0)) {
        continue;
      }
      Step wrong = right;
      std::vector<Node>& nodes = wrong.sections[s].nodes;
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(n));
      EXPECT_FALSE(verify(wrong).empty()) << what << ": without " << node.name;
      ++mutants;
      if (node.kind != Node::Kind::redistribute) {
        continue;
      }
      wrong = right;
      Node& moved = wrong.sections[s].nodes[n];
      moved.by = "";
      moved.to = moved.to.kind == Placement::Kind::shard ? replicate() : partial();
      moved.from = moved.from == moved.to ? replicate() : moved.from;
      EXPECT_FALSE(verify(wrong).empty()) << what << ": another " << node.name;
      ++mutants;
    }
  }
  return mutants;
}

}  // namespace unisono::step
