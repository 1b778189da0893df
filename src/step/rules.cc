#include "step/rules.h"

#include <algorithm>

namespace unisono::step {
namespace {

using Kind = Placement::Kind;

// Applies one node along one axis.
class Rule {
 public:
  Rule(const Step& step, const Node& node, const std::string& axis, const State& state,
       std::vector<Finding>& findings)
      : step_(step), node_(node), axis_(axis), state_(state), findings_(findings) {}

  // Returns the placement of a tensor that a computation writes.
  Placement computed(const Tensor& written) {
    const std::string* summand = nullptr;
    const std::string* part = nullptr;
    for (const std::string& read : node_.reads) {
      const Placement& found = of(read);
      summand = found.kind == Kind::partial && summand == nullptr ? &read : summand;
      part = found.kind == Kind::shard && part == nullptr ? &read : part;
    }
    if (summand != nullptr) {
      return of_summands(*summand);
    }
    return part != nullptr ? of_parts(*part, written) : replicate();
  }

  // Returns the placement of a tensor that keeps its placement along this axis.
  Placement carried(const std::string& read, const Tensor& written) {
    Placement placement = of(read);
    if (placement.kind == Kind::shard) {
      const Placement before = placement;
      placement.dim = renamed(placement.dim);
      if (!has_name(written.dims, placement.dim)) {
        add({.kind = Finding::Kind::lost_dimension,
             .tensor = read,
             .other = written.name,
             .found = before});
        return replicate();
      }
    }
    return placement;
  }

  Placement moved(const std::string& read) {
    const Placement& found = of(read);
    if (found != node_.from) {
      add({.kind = Finding::Kind::not_as_said,
           .tensor = read,
           .found = found,
           .wanted = node_.from});
    }
    if (!converts()) {
      add({.kind = Finding::Kind::no_conversion, .found = node_.from, .wanted = node_.to});
    }
    return node_.to;
  }

 private:
  const Placement& of(const std::string& tensor) const {
    static const Placement kWhole = {};
    const auto found = state_.find(tensor);
    if (found == state_.end()) {
      return kWhole;
    }
    const auto on = found->second.find(axis_);
    return on == found->second.end() ? kWhole : on->second;
  }

  std::string renamed(const std::string& dim) const {
    const auto found = node_.renamed.find(dim);
    return found == node_.renamed.end() ? dim : found->second;
  }

  void add(Finding finding) {
    finding.node = node_.name;
    finding.axis = axis_;
    findings_.push_back(std::move(finding));
  }

  // Summands stay summands if the computation is linear in them.
  Placement of_summands(const std::string& summand) {
    if (node_.linear == Node::Linear::none) {
      add({.kind = Finding::Kind::unsummed, .tensor = summand, .found = partial()});
      return replicate();
    }
    for (const std::string& read : node_.reads) {
      const Placement& found = of(read);
      if (read == summand) {
        continue;
      }
      if (node_.linear == Node::Linear::together && found.kind != Kind::partial) {
        add({.kind = Finding::Kind::summed_twice,
             .tensor = read,
             .other = summand,
             .found = found});
      } else if (node_.linear == Node::Linear::each && found.kind == Kind::partial) {
        add({.kind = Finding::Kind::product_of_sums,
             .tensor = summand,
             .other = read,
             .found = found});
      } else if (found.kind == Kind::shard) {
        add({.kind = Finding::Kind::two_cuts,
             .tensor = summand,
             .other = read,
             .found = partial(),
             .wanted = found});
      }
    }
    return partial();
  }

  bool is_alike(const std::string& a, const std::string& b) const {
    return canonical(step_, a) == canonical(step_, b);
  }
  // A dimension that is cut like another one follows it, but not vice versa.
  bool is_named(const std::vector<std::string>& dims, const std::string& dim) const {
    return has_name(dims, dim) || has_name(dims, canonical(step_, dim));
  }

  Placement of_parts(const std::string& part, const Tensor& written) {
    const std::string dim = of(part).dim;
    for (const std::string& read : node_.reads) {
      const Placement& found = of(read);
      const Tensor& tensor = *step_.find_tensor(read);
      const bool is_part = found.kind == Kind::shard;
      if (is_part && !is_alike(found.dim, dim)) {
        add({.kind = Finding::Kind::two_cuts,
             .tensor = part,
             .other = read,
             .found = of(part),
             .wanted = found});
        return replicate();
      }
      if (!is_part && std::any_of(tensor.dims.begin(), tensor.dims.end(),
                                  [&](const auto& one) { return is_alike(one, dim); })) {
        add({.kind = Finding::Kind::whole_beside_part,
             .tensor = read,
             .other = part,
             .found = found,
             .wanted = of(part)});
        return replicate();
      }
    }
    const auto all_named = [&](const std::vector<std::string>& dims) {
      return std::all_of(node_.reads.begin(), node_.reads.end(), [&](const std::string& read) {
        return of(read).kind != Kind::shard || is_named(dims, of(read).dim);
      });
    };
    if (all_named(node_.pointwise)) {
      for (const std::string& one : written.dims) {
        if (is_alike(one, renamed(dim))) {
          return shard(one);
        }
      }
    } else if (all_named(node_.summed)) {
      return partial();
    }
    add({.kind = Finding::Kind::needs_whole, .tensor = part, .found = of(part)});
    return replicate();
  }

  bool converts() const {
    const Kind from = node_.from.kind;
    const Kind to = node_.to.kind;
    if (node_.by == "ring" || node_.by == "ring_with") {
      return from == Kind::shard && to == Kind::replicate;
    }
    if (node_.by == "ring_home") {
      return from == Kind::partial && to == Kind::shard;
    }
    if (node_.by == "first") {
      return from == Kind::replicate && to == Kind::partial;
    }
    if (node_.by == "merge") {
      return from == Kind::partial && to == Kind::replicate;
    }
    if (node_.kind != Node::Kind::redistribute) {
      return from == Kind::shard && to == Kind::shard;
    }
    return to != Kind::partial && node_.from != node_.to;
  }

  const Step& step_;
  const Node& node_;
  const std::string& axis_;
  const State& state_;
  std::vector<Finding>& findings_;
};

}  // namespace

void apply(const Step& step, const StepRanks& ranks, const Node& node, State& state,
           std::vector<Finding>& findings) {
  for (const std::string& read : node.reads) {
    if (!state.contains(read)) {
      findings.push_back({.kind = Finding::Kind::not_there, .node = node.name, .tensor = read});
      state[read] = step.find_tensor(read)->placement;
    }
  }
  if (node.kind == Node::Kind::send || node.kind == Node::Kind::broadcast ||
      node.kind == Node::Kind::sum_stages) {
    return;
  }
  const std::vector<std::string> moving = axis_names(node.axes);
  std::vector<Placements> after;
  for (std::size_t i = 0; i < node.writes.size(); ++i) {
    const Tensor& written = *step.find_tensor(node.writes[i]);
    Placements placements;
    for (const std::string& axis : ranks.wide_axes()) {
      Rule rule(step, node, axis, state, findings);
      Placement placement = node.kind == Node::Kind::compute ? rule.computed(written)
                            : has_name(moving, axis)         ? rule.moved(node.reads[i])
                                                             : rule.carried(node.reads[i], written);
      if (placement.kind != Kind::replicate) {
        placements[axis] = std::move(placement);
      }
    }
    after.push_back(std::move(placements));
  }
  for (std::size_t i = node.writes.size();
       node.kind == Node::Kind::redistribute && i < node.reads.size(); ++i) {
    for (const std::string& axis : ranks.wide_axes()) {
      if (has_name(moving, axis)) {
        Rule(step, node, axis, state, findings).moved(node.reads[i]);
      }
    }
  }
  for (std::size_t i = 0; i < node.writes.size(); ++i) {
    state[node.writes[i]] = std::move(after[i]);
  }
}

}  // namespace unisono::step
