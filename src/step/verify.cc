#include "step/verify.h"

#include <algorithm>
#include <set>

#include "step/walk.h"

namespace unisono::step {
namespace {

void check_results(const Step& step, const parallel::MeshShape& mesh,
                   const std::vector<State>& states, std::vector<Finding>& findings) {
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
      for (const std::string& axis : wide_axes(mesh)) {
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

// What is written for nobody: a part of the model that the results do not follow from.
class Unread {
 public:
  explicit Unread(const Step& step) : step_(step) {}

  void look(const Visit& visit) {
    const Node& node = visit.node;
    for (const std::string& read : node.reads) {
      waiting_.erase({visit.section.stage, read});
    }
    const bool is_sent = node.kind == Node::Kind::send;
    if (node.kind == Node::Kind::broadcast) {
      return;  // some stages may only want it in the end
    }
    for (const std::string& written : node.writes) {
      if (step_.find_tensor(written)->kind != Tensor::Kind::activation) {
        continue;
      }
      const std::pair place(visit.section.stage + (is_sent ? 1 : 0), written);
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
  std::map<std::pair<int, std::string>, Finding> waiting_;  // by stage and tensor
  std::vector<Finding> findings_;
};

// Parts that go out with a ring_with take turns with the sums of the ring_home that follows in its
// section, which are as large.
class Rings {
 public:
  Rings(const Step& step, const parallel::MeshShape& mesh, std::vector<Finding>& findings)
      : step_(step), mesh_(mesh), findings_(findings) {}

  void check(const Section& section) {
    const Node* out = nullptr;
    for (const Node& node : section.nodes) {
      if (node.kind != Node::Kind::redistribute || mesh_.size(node.axes) == 1) {
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
  const parallel::MeshShape& mesh_;
  std::vector<Finding>& findings_;
};

// The same mistake of several layers, or of several tensors that a node writes, is one.
void remove_repeats(std::vector<Finding>& findings) {
  std::set<std::string> seen;
  std::erase_if(findings,
                [&](const Finding& finding) { return !seen.insert(to_text(finding)).second; });
  findings.resize(std::min(findings.size(), kMostFindings));
}

// When an activation of a stage is there for the last time.
using Last = std::map<std::pair<int, std::string>, std::size_t>;

class Measure {
 public:
  Measure(const Step& step, const parallel::MeshShape& mesh)
      : step_(step), mesh_(mesh), memory_(static_cast<std::size_t>(mesh.ranks())) {
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      ranks_of_.resize(std::max(ranks_of_.size(), stage_of(rank) + 1));
      ranks_of_[stage_of(rank)].push_back(rank);
    }
    held_.resize(memory_.size());
  }

  std::vector<Memory> run() {
    std::vector<Finding> none;
    std::size_t at = 0;
    walk(step_, mesh_, 2, none, [&](const Visit& visit) { note(visit, at++); });
    at = 0;
    walk(step_, mesh_, 2, none, [&](const Visit& visit) { hold(visit, at++); });
    return std::move(memory_);
  }

 private:
  std::size_t stage_of(int rank) const {
    return step_.stage_axis.empty()
               ? 0
               : static_cast<std::size_t>(mesh_.coordinate(rank, step_.stage_axis));
  }
  const std::vector<int>& ranks_of(int stage) const {
    return ranks_of_[static_cast<std::size_t>(stage)];
  }

  // Weights and caches are held once for each layer of a section that uses them.
  void note(const Visit& visit, std::size_t at) {
    const int stage = visit.section.stage;
    for (const auto* names : {&visit.node.reads, &visit.node.writes}) {
      for (const std::string& name : *names) {
        const Tensor& tensor = *step_.find_tensor(name);
        if (tensor.kind == Tensor::Kind::activation || tensor.kind == Tensor::Kind::input) {
          last_[{stage, name}] = at;
          continue;
        }
        const int layer = tensor.is_layered ? visit.section.first_layer : -1;
        if (counted_.insert({stage, name, layer}).second) {
          const int copies = tensor.is_layered ? visit.section.repeat : 1;
          for (const int rank : ranks_of(stage)) {
            Memory& memory = memory_[static_cast<std::size_t>(rank)];
            double& sum = tensor.kind == Tensor::Kind::weight ? memory.weights : memory.cache;
            sum += copies * local_bytes(step_, mesh_, tensor, tensor.placement, rank);
          }
        }
      }
    }
  }

  void hold(const Visit& visit, std::size_t at) {
    const int stage = visit.section.stage;
    for (const int rank : ranks_of(stage)) {
      auto& held = held_[static_cast<std::size_t>(rank)];
      for (const std::string& name : visit.node.writes) {
        const Tensor& tensor = *step_.find_tensor(name);
        if (tensor.kind == Tensor::Kind::activation && visit.after.contains(name)) {
          held[name] = local_bytes(step_, mesh_, tensor, visit.after.at(name), rank);
        }
      }
      double sum = 0;
      for (const auto& [name, bytes] : held) {
        sum += bytes;
      }
      double& most = memory_[static_cast<std::size_t>(rank)].activations;
      most = std::max(most, sum);
      std::erase_if(held, [&](const auto& one) {
        const auto last = last_.find({stage, one.first});
        return last == last_.end() || last->second <= at;
      });
    }
  }

  const Step& step_;
  const parallel::MeshShape& mesh_;
  std::vector<Memory> memory_;
  std::vector<std::vector<int>> ranks_of_;  // by stage
  std::vector<std::map<std::string, double>> held_;
  std::set<std::tuple<int, std::string, int>> counted_;
  Last last_;
};

}  // namespace

std::vector<Memory> memory_of(const Step& step) {
  const auto mesh = parallel::MeshShape::parse(step.mesh);
  return Measure(step, mesh).run();
}

std::vector<Finding> verify(const Step& step) {
  const auto mesh = parallel::MeshShape::parse(step.mesh);
  std::vector<Finding> findings;
  // What a layer leaves to the next one has settled after two; the third would show it.
  constexpr int kLayers = 3;
  Unread unread(step);
  const std::vector<State> states =
      walk(step, mesh, kLayers, findings, [&](const Visit& visit) { unread.look(visit); });
  unread.finish(findings);
  Rings rings(step, mesh, findings);
  for (const Section& section : step.sections) {
    rings.check(section);
  }
  check_results(step, mesh, states, findings);
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
