#include <algorithm>
#include <array>

#include "base/json.h"
#include "pipeline/json.h"
#include "step/json.h"
#include "step/problem.h"
#include "unisono/error.hpp"

namespace unisono::step {
namespace {

constexpr double kMostAmount = 1e18;
constexpr std::int64_t kMostWhole = std::int64_t{1} << 40;

template <typename Kind, std::size_t N>
Kind kind_of(const JsonNode& node, const std::array<std::string_view, N>& names) {
  const auto found = std::find(names.begin(), names.end(), node.text());
  if (found == names.end()) {
    std::string known;
    for (const std::string_view name : names) {
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    node.fail("\"" + node.text() + "\" is not one of " + known);
  }
  return static_cast<Kind>(found - names.begin());
}

std::string text_or(const JsonNode& node, std::string_view key) {
  const auto found = node.find(key);
  return found ? found->text() : std::string();
}

double number_or(const JsonNode& node, std::string_view key, double otherwise) {
  const auto found = node.find(key);
  return found ? found->number(0, kMostAmount) : otherwise;
}

std::vector<std::string> names_in(const JsonNode& node, std::string_view key) {
  std::vector<std::string> names;
  if (const auto found = node.find(key)) {
    for (std::size_t i = 0; i < found->size(); ++i) {
      names.push_back(found->item(i).text());
    }
  }
  return names;
}

Placement placement_in(const JsonNode& node) {
  const std::string& text = node.text();
  if (text == "replicate") {
    return replicate();
  }
  if (text == "partial") {
    return partial();
  }
  if (text.starts_with("shard(") && text.ends_with(")") && text.size() > 7) {
    return shard(text.substr(6, text.size() - 7));
  }
  node.fail("\"" + text + "\" is not a placement: replicate, partial, or shard(DIMENSION)");
}

Placements placements_in(const JsonNode& node, std::string_view key) {
  Placements placements;
  if (const auto found = node.find(key)) {
    for (std::size_t i = 0; i < found->keys().size(); ++i) {
      placements[found->keys()[i]] = placement_in(found->member(i));
    }
  }
  return placements;
}

Dim dim_in(const JsonNode& node) {
  node.allow_only({"name", "size", "cut", "batch", "like"});
  Dim dim{.name = node.at("name").text(),
          .size = static_cast<std::size_t>(node.at("size").whole(1, kMostWhole)),
          .like = text_or(node, "like")};
  if (const auto cut = node.find("cut")) {
    dim.cut = kind_of<Cut, 4>(*cut, {"even", "rows", "heads", "kv_heads"});
  }
  if (const auto batch = node.find("batch")) {
    dim.batch = static_cast<std::size_t>(batch->whole(1, kMostWhole));
  }
  return dim;
}

Tensor tensor_in(const JsonNode& node) {
  node.allow_only({"name", "kind", "dims", "element_bytes", "layered", "placement"});
  const auto layered = node.find("layered");
  return {
      .name = node.at("name").text(),
      .kind = kind_of<Tensor::Kind, 4>(node.at("kind"), {"weight", "cache", "input", "activation"}),
      .dims = names_in(node, "dims"),
      .element_bytes = number_or(node, "element_bytes", 4),
      .is_layered = layered && layered->truth(),
      .placement = placements_in(node, "placement")};
}

Node node_in(const JsonNode& json) {
  json.allow_only({"compute",   "redistribute", "dispatch", "combine", "send",
                   "broadcast", "sum_stages",   "reads",    "writes",  "pointwise",
                   "summed",    "linear",       "renamed",  "flops",   "share",
                   "axes",      "from",         "to",       "by",      "rows_sent"});
  constexpr std::array<std::string_view, 7> kKinds = {
      "compute", "redistribute", "dispatch", "combine", "send", "broadcast", "sum_stages"};
  Node node;
  int kinds = 0;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (const auto name = json.find(kKinds[i])) {
      node.kind = static_cast<Node::Kind>(i);
      node.name = name->text();
      ++kinds;
    }
  }
  if (kinds != 1) {
    json.fail(
        "needs exactly one of compute, redistribute, dispatch, combine, send, broadcast, "
        "sum_stages");
  }
  node.reads = names_in(json, "reads");
  node.writes = names_in(json, "writes");
  node.pointwise = names_in(json, "pointwise");
  node.summed = names_in(json, "summed");
  if (const auto linear = json.find("linear")) {
    node.linear = kind_of<Node::Linear, 3>(*linear, {"none", "each", "together"});
  }
  if (const auto renamed = json.find("renamed")) {
    for (std::size_t i = 0; i < renamed->keys().size(); ++i) {
      node.renamed[renamed->keys()[i]] = renamed->member(i).text();
    }
  }
  node.flops = number_or(json, "flops", 0);
  node.share = number_or(json, "share", 1);
  node.axes = text_or(json, "axes");
  if (const auto from = json.find("from")) {
    node.from = placement_in(*from);
  }
  if (const auto to = json.find("to")) {
    node.to = placement_in(*to);
  }
  if (const auto by = json.find("by")) {
    node.by = by->text();
    constexpr std::array<std::string_view, 5> kWays = {"ring", "ring_with", "ring_home", "merge",
                                                       "first"};
    if (std::find(kWays.begin(), kWays.end(), node.by) == kWays.end()) {
      by->fail("\"" + node.by + "\" is not one of ring, ring_with, ring_home, merge, first");
    }
  }
  node.rows_sent = number_or(json, "rows_sent", 1);
  return node;
}

Section section_in(const JsonNode& json) {
  json.allow_only({"name", "stage", "pass", "first_layer", "repeat", "nodes"});
  constexpr int kMost = 1'000'000;
  const auto stage = json.find("stage");
  Section section{.name = json.at("name").text(),
                  .stage = stage ? static_cast<int>(stage->whole(0, kMost)) : kAllStages,
                  .repeat = static_cast<int>(json.at("repeat").whole(1, kMost)),
                  .nodes = {}};
  if (const auto first = json.find("first_layer")) {
    section.first_layer = static_cast<int>(first->whole(0, kMost));
  }
  if (const auto pass = json.find("pass")) {
    section.pass =
        kind_of<StagePass, 4>(*pass, {"none", "forward", "backward_input", "backward_weight"});
  }
  const JsonNode nodes = json.at("nodes");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    section.nodes.push_back(node_in(nodes.item(i)));
  }
  return section;
}

template <typename Row, typename Read>
void read_rows(const JsonNode& root, std::string_view key, std::vector<Row>& rows,
               const Read& read) {
  const JsonNode list = root.at(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    rows.push_back(read(list.item(i)));
  }
}

Step step_in(const JsonNode& root) {
  root.allow_only({"format", "name", "mesh", "stage_axis", "pipeline", "data_axes", "context_axes",
                   "order", "memory_bytes", "dims", "tensors", "sections", "results"});
  if (root.at("format").text() != kStepFormat) {
    root.at("format").fail("is not \"" + std::string(kStepFormat) + "\"");
  }
  Step step;
  step.name = text_or(root, "name");
  step.mesh = root.at("mesh").text();
  try {
    const auto mesh = parallel::MeshShape::parse(step.mesh);
    constexpr int kMostRanks = 1 << 20;
    if (mesh.ranks() > kMostRanks) {
      root.at("mesh").fail("has more than 2^20 ranks");
    }
    step.stage_axis = text_or(root, "stage_axis");
    if (!step.stage_axis.empty()) {
      mesh.size(step.stage_axis);
    }
  } catch (const Error& error) {
    root.at("mesh").fail(std::string(error.summary()));
  }
  if (const auto pipeline = root.find("pipeline")) {
    step.pipeline = pipeline::pipeline_in(*pipeline);
  }
  step.data_axes = names_in(root, "data_axes");
  step.context_axes = names_in(root, "context_axes");
  if (const auto order = root.find("order")) {
    step.order = kind_of<parallel::ContextOrder, 3>(*order, {"contiguous", "zigzag", "striped"});
  }
  step.memory_bytes = number_or(root, "memory_bytes", 0);
  read_rows(root, "dims", step.dims, dim_in);
  read_rows(root, "tensors", step.tensors, tensor_in);
  read_rows(root, "sections", step.sections, section_in);
  read_rows(root, "results", step.results, [](const JsonNode& json) {
    json.allow_only({"tensor", "placement", "everywhere"});
    const auto everywhere = json.find("everywhere");
    return Step::Result{.tensor = json.at("tensor").text(),
                        .placement = placements_in(json, "placement"),
                        .is_everywhere = everywhere && everywhere->truth()};
  });
  if (const std::string problem = problem_of(step); !problem.empty()) {
    root.fail(problem);
  }
  return step;
}

}  // namespace

Parsed<Step> parse_step_json(std::string_view text) {
  return parse_json_as<Step>(text, step_in);
}

}  // namespace unisono::step
