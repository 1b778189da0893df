#include "step/verify.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pipeline/verify.h"
#include "step/memory.h"
#include "step/walk.h"

namespace unisono::step {
namespace {

void check_results(const Step& step, const StepRanks& ranks, const std::vector<State>& states,
                   std::vector<Finding>& findings) {
  for (const Step::Result& result : step.results) {
    bool is_there = false;
    for (std::size_t stage = 0; stage < states.size(); ++stage) {
      const State& state = states[stage];
      const auto found = state.find(result.tensor);
      if (found == state.end()) {
        if (result.is_everywhere) {
          findings.push_back({.kind = Finding::Kind::no_result,
                              .tensor = result.tensor,
                              .stage = static_cast<int>(stage)});
        }
        continue;
      }
      is_there = true;
      for (const std::string& axis : ranks.wide_axes()) {
        const Placement has = placement_on(found->second, axis);
        const Placement wanted = placement_on(result.placement, axis);
        if (has != wanted) {
          findings.push_back({.kind = Finding::Kind::result,
                              .tensor = result.tensor,
                              .axis = axis,
                              .found = has,
                              .wanted = wanted});
        }
      }
    }
    if (!is_there) {
      findings.push_back({.kind = Finding::Kind::no_result, .tensor = result.tensor});
    }
  }
}

// Finds tensors that are written but never read: parts of the model that do not affect its results.
class Unread {
 public:
  Unread(const Step& step, const StepRanks& ranks) : step_(step), ranks_(ranks) {}

  void look(const Visit& visit) {
    const Node& node = visit.node;
    for (const std::string& read : node.reads) {
      waiting_.erase({visit.stage, read});
      waiting_.erase({kAllStages, read});
    }
    if (node.kind == Node::Kind::broadcast || node.kind == Node::Kind::sum_stages) {
      return;  // some stages may need it only at the end
    }
    for (const std::string& written : node.writes) {
      if (step_.find_tensor(written)->kind != Tensor::Kind::activation) {
        continue;
      }
      const bool is_sent = node.kind == Node::Kind::send;
      const bool is_of_all = visit.section.stage == kAllStages;  // one stage that reads it is
                                                                 // enough
      const std::pair place(is_sent     ? ranks_.sends_to(visit.section)
                            : is_of_all ? kAllStages
                                        : visit.stage,
                            written);
      if (const auto before = waiting_.find(place); before != waiting_.end()) {
        findings_.push_back(before->second);
      }
      waiting_[place] = {.kind = Finding::Kind::unread,
                         .section = visit.section.name,
                         .node = node.name,
                         .tensor = written};
    }
  }

  void finish(std::vector<Finding>& findings) {
    findings.insert(findings.end(), findings_.begin(), findings_.end());
    for (const auto& [place, finding] : waiting_) {
      if (std::none_of(step_.results.begin(), step_.results.end(),
                       [&](const Step::Result& one) { return one.tensor == finding.tensor; })) {
        findings.push_back(finding);
      }
    }
  }

 private:
  const Step& step_;
  const StepRanks& ranks_;
  std::map<std::pair<int, std::string>, Finding> waiting_;  // by stage and tensor
  std::vector<Finding> findings_;
};

// Checks that parts that leave with a ring_with take turns with the sums of the next ring_home in
// the section, which must be equally large.
class Rings {
 public:
  Rings(const Step& step, const StepRanks& ranks, std::vector<Finding>& findings)
      : step_(step), ranks_(ranks), findings_(findings) {}

  void check(const Section& section) {
    const Node* out = nullptr;
    for (const Node& node : section.nodes) {
      if (node.kind != Node::Kind::redistribute || ranks_.size(node.axes) == 1) {
        continue;
      }
      if (node.by == "ring_with") {
        add_if(out != nullptr, Finding::Kind::never_home, section, out);
        out = &node;
      } else if (node.by == "ring_home") {
        add_if(out == nullptr || !is_way_home(*out, node), Finding::Kind::never_out, section,
               &node);
        out = nullptr;
      }
    }
    add_if(out != nullptr, Finding::Kind::never_home, section, out);
  }

 private:
  void add_if(bool is_wrong, Finding::Kind kind, const Section& section, const Node* node) {
    if (is_wrong) {
      findings_.push_back(
          {.kind = kind, .section = section.name, .node = node->name, .axis = node->axes});
    }
  }
  bool is_way_home(const Node& out, const Node& home) const {
    return out.axes == home.axes && out.from == home.to && bytes_of(out) == bytes_of(home);
  }
  double bytes_of(const Node& node) const {
    double sum = 0;
    for (const std::string& name : node.reads) {
      const Tensor& tensor = *step_.find_tensor(name);
      double bytes = tensor.element_bytes;
      for (const std::string& dim : tensor.dims) {
        bytes *= static_cast<double>(step_.find_dim(dim)->size);
      }
      sum += bytes;
    }
    return sum;
  }

  const Step& step_;
  const StepRanks& ranks_;
  std::vector<Finding>& findings_;
};

// Reports the same error in several layers, or in several tensors of one node, only once.
void remove_repeats(std::vector<Finding>& findings) {
  std::set<std::string> seen;
  std::erase_if(findings,
                [&](const Finding& finding) { return !seen.insert(to_text(finding)).second; });
  findings.resize(std::min(findings.size(), kMostFindings));
}

// Adds the findings of the pipeline's verification.
void check_order(const Step& step, std::vector<Finding>& findings) {
  if (step.pipeline) {
    for (pipeline::Finding& finding : pipeline::verify(*step.pipeline).findings) {
      findings.push_back({.kind = Finding::Kind::order, .pipeline = std::move(finding)});
    }
  }
}

}  // namespace

std::vector<Finding> verify(const Step& step) {
  const StepRanks ranks(step);
  std::vector<Finding> findings;
  check_order(step, findings);
  // Placements between layers settle after two layers; a third one would reveal if they did not.
  constexpr int kLayers = 3;
  Unread unread(step, ranks);
  const std::vector<State> states =
      walk(step, ranks, kLayers, findings, [&](const Visit& visit) { unread.look(visit); });
  unread.finish(findings);
  Rings rings(step, ranks, findings);
  for (const Section& section : step.sections) {
    rings.check(section);
  }
  check_results(step, ranks, states, findings);
  remove_repeats(findings);
  if (!findings.empty() || step.memory_bytes == 0) {
    return findings;
  }
  const std::vector<Memory> memory = memory_of(step);
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    if (memory[rank].total() > step.memory_bytes) {
      findings.push_back({.kind = Finding::Kind::memory,
                          .rank = static_cast<int>(rank),
                          .bytes = memory[rank].total(),
                          .most_bytes = step.memory_bytes});
    }
  }
  remove_repeats(findings);
  return findings;
}

}  // namespace unisono::step
