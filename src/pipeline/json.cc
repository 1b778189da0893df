#include "pipeline/json.h"

#include <algorithm>

#include "base/json.h"
#include "base/json_text.h"
#include "pipeline/text.h"

namespace unisono::pipeline {
namespace {

constexpr double kMostAmount = 1e18;

std::vector<int> whole_numbers(const JsonNode& list, int most) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < list.size(); ++i) {
    numbers.push_back(static_cast<int>(list.item(i).whole(0, most)));
  }
  return numbers;
}

// Joins the texts of a list into one line of the CSV.
std::string joined(const JsonNode& list) {
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) {
    text += (i == 0 ? "" : ",") + list.item(i).text();
  }
  return text;
}

// Reads one number for all stages, or a list with one for each.
void read_amounts(const JsonNode& parent, std::string_view key, std::size_t stages,
                  std::vector<double>& amounts) {
  const auto node = parent.find(key);
  if (!node) {
    return;
  }
  if (node->is(JsonValue::Kind::number)) {
    amounts.assign(stages, node->number(0, kMostAmount));
    return;
  }
  if (node->size() != stages) {
    node->fail("needs one number for each of " + std::to_string(stages) + " stages");
  }
  for (std::size_t i = 0; i < stages; ++i) {
    amounts.push_back(node->item(i).number(0, kMostAmount));
  }
}

void read_chains(const JsonNode& root, Pipeline& pipeline) {
  const auto chains = root.find("chains");
  if (!chains) {
    Chain chain{.stages = {}, .first = 0, .count = pipeline.microbatches};
    for (int stage = 0; stage < pipeline.stages(); ++stage) {
      chain.stages.push_back(stage);
    }
    pipeline.chains = {std::move(chain)};
    return;
  }
  for (std::size_t i = 0; i < chains->size(); ++i) {
    const JsonNode node = chains->item(i);
    node.allow_only({"stages", "first", "count"});
    pipeline.chains.push_back(
        {.stages = whole_numbers(node.at("stages"), kMostStages),
         .first = static_cast<int>(node.at("first").whole(0, kMostMicrobatches)),
         .count = static_cast<int>(node.at("count").whole(1, kMostMicrobatches))});
  }
}

void read_costs(const JsonNode& root, Pipeline& pipeline) {
  const std::size_t stages = pipeline.stage_rank.size();
  if (const auto costs = root.find("costs")) {
    costs->allow_only({"forward", "input", "weight", "transfer"});
    read_amounts(*costs, "forward", stages, pipeline.costs.forward);
    read_amounts(*costs, "input", stages, pipeline.costs.input);
    read_amounts(*costs, "weight", stages, pipeline.costs.weight);
    read_amounts(*costs, "transfer", stages, pipeline.costs.transfer);
  }
  if (const auto memory = root.find("memory")) {
    memory->allow_only({"activation_bytes", "kept_bytes"});
    read_amounts(*memory, "activation_bytes", stages, pipeline.memory.activation_bytes);
    read_amounts(*memory, "kept_bytes", stages, pipeline.memory.kept_bytes);
  }
  set_unit_costs(pipeline);
}

}  // namespace

Pipeline pipeline_in(const JsonNode& root) {
  root.allow_only({"format", "name", "microbatches", "stages", "chains", "costs", "memory", "lanes",
                   "capacity", "actions"});
  if (root.at("format").text() != kPipelineFormat) {
    root.at("format").fail("is not \"unisono.pipeline/1\"");
  }
  Pipeline pipeline;
  if (const auto name = root.find("name")) {
    pipeline.name = name->text();
  }
  const JsonNode actions = root.at("actions");
  if (actions.size() > static_cast<std::size_t>(kMostRanks)) {
    actions.fail("has more than 4096 ranks");
  }
  pipeline.ranks = static_cast<int>(actions.size());
  pipeline.microbatches = static_cast<int>(root.at("microbatches").whole(1, kMostMicrobatches));
  if (root.at("stages").size() > static_cast<std::size_t>(kMostStages)) {
    root.at("stages").fail("has more than 16384 stages");
  }
  pipeline.stage_rank = whole_numbers(root.at("stages"), kMostRanks - 1);
  read_chains(root, pipeline);
  read_costs(root, pipeline);
  if (const auto lanes = root.find("lanes")) {
    pipeline.lanes = static_cast<int>(lanes->whole(1, 2));
  }
  if (const auto capacity = root.find("capacity")) {
    pipeline.capacity = static_cast<int>(capacity->whole(0, kMostActions));
  }
  for (std::size_t rank = 0; rank < actions.size(); ++rank) {
    Parsed<std::vector<Action>> row = parse_actions(joined(actions.item(rank)));
    if (!row) {
      actions.item(rank).fail(row.position + ": " + row.message);
    }
    pipeline.actions.push_back(std::move(*row.value));
  }
  if (const auto problem = check(pipeline)) {
    root.fail(*problem);
  }
  return pipeline;
}

namespace {

template <typename Values, typename Write>
std::string list(const Values& values, const Write& write) {
  std::string text = "[";
  for (const auto& value : values) {
    text += (text.size() == 1 ? "" : ", ") + write(value);
  }
  return text + "]";
}

// Writes a line of the CSV as one string per action, because a single string would soon exceed the
// limits of readers.
std::string action_list(std::string_view line) {
  std::string text = "[";
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(','), line.size());
    text += (text.size() == 1 ? "" : ", ") + json_string(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return text + "]";
}

std::string numbers(const std::vector<double>& values) {
  return list(values, json_number);
}

std::string numbers(const std::vector<int>& values) {
  return list(values, [](int value) { return std::to_string(value); });
}

}  // namespace

std::string to_json(const Pipeline& pipeline) {
  const auto chain_text = [](const Chain& chain) {
    return "{\"stages\": " + numbers(chain.stages) + ", \"first\": " + std::to_string(chain.first) +
           ", \"count\": " + std::to_string(chain.count) + "}";
  };
  std::string text = "{\"format\": \"" + std::string(kPipelineFormat) + "\",\n";
  text += " \"name\": " + json_string(pipeline.name) + ",\n";
  text += " \"microbatches\": " + std::to_string(pipeline.microbatches) + ",\n";
  text += " \"stages\": " + numbers(pipeline.stage_rank) + ",\n";
  text += " \"chains\": " + list(pipeline.chains, chain_text) + ",\n";
  text += " \"costs\": {\"forward\": " + numbers(pipeline.costs.forward) +
          ",\n           \"input\": " + numbers(pipeline.costs.input) +
          ",\n           \"weight\": " + numbers(pipeline.costs.weight) +
          ",\n           \"transfer\": " + numbers(pipeline.costs.transfer) + "},\n";
  text += " \"memory\": {\"activation_bytes\": " + numbers(pipeline.memory.activation_bytes) +
          ",\n            \"kept_bytes\": " + numbers(pipeline.memory.kept_bytes) + "},\n";
  text += " \"lanes\": " + std::to_string(pipeline.lanes) +
          ",\n \"capacity\": " + std::to_string(pipeline.capacity) + ",\n \"actions\": [";
  for (std::size_t rank = 0; rank < pipeline.actions.size(); ++rank) {
    text += (rank == 0 ? "\n  " : ",\n  ") + action_list(actions_text(pipeline.actions[rank]));
  }
  return text + "]}\n";
}

Parsed<Pipeline> parse_pipeline_json(std::string_view text) {
  return parse_json_as<Pipeline>(text, pipeline_in);
}

}  // namespace unisono::pipeline
