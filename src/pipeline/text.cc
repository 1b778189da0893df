#include "pipeline/text.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/words.h"

namespace unisono::pipeline {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20U;

// Removes and returns the number at the front of `text`.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<Action> plain_action(std::string_view text) {
  const std::optional<int> stage = take_number(text);
  if (!stage) {
    return std::nullopt;
  }
  const std::size_t digits = text.find_first_of("0123456789");
  const std::string_view name = text.substr(0, digits);
  for (int kind = 0; kind < static_cast<int>(ActionKind::overlap); ++kind) {
    Action action{.kind = static_cast<ActionKind>(kind), .stage = *stage};
    if (to_string(action.kind) != name) {
      continue;
    }
    text.remove_prefix(name.size());
    if (!has_microbatch(action.kind)) {
      return text.empty() ? std::optional(action) : std::nullopt;
    }
    const std::optional<int> microbatch = take_number(text);
    if (!microbatch || !text.empty()) {
      return std::nullopt;
    }
    action.microbatch = *microbatch;
    return action;
  }
  return std::nullopt;
}

// Parses "(1F4;2B0)OVERLAP_F_B" as an overlap and its parts.
bool append_overlap(std::string_view text, std::vector<Action>& actions) {
  const std::size_t end = text.find(')');
  if (end == std::string_view::npos ||
      trimmed(text.substr(end + 1)) != to_string(ActionKind::overlap)) {
    return false;
  }
  std::string_view inside = text.substr(1, end - 1);
  const std::size_t overlap = actions.size();
  actions.push_back({.kind = ActionKind::overlap});
  while (true) {
    const std::size_t divider = inside.find(';');
    const std::optional<Action> part = plain_action(trimmed(inside.substr(0, divider)));
    if (!part || !is_compute(part->kind)) {
      return false;
    }
    actions.push_back(*part);
    ++actions[overlap].parts;
    if (divider == std::string_view::npos) {
      return true;
    }
    inside.remove_prefix(divider + 1);
  }
}

bool append_action(std::string_view text, std::vector<Action>& actions) {
  if (text.starts_with('(')) {
    return append_overlap(text, actions);
  }
  const std::optional<Action> action = plain_action(text);
  if (action) {
    actions.push_back(*action);
  }
  return action.has_value();
}

// Derives stages, their ranks and microbatches from the actions.
std::optional<std::string> derive_shape(Pipeline& pipeline) {
  int stages = 0;
  pipeline.microbatches = 0;
  for (const std::vector<Action>& actions : pipeline.actions) {
    for (const Action& action : actions) {
      stages = std::max(stages, action.stage + 1);
      pipeline.microbatches = std::max(pipeline.microbatches, action.microbatch + 1);
      if (stages > kMostStages || pipeline.microbatches > kMostMicrobatches) {
        return to_string(action) + " exceeds 16384 stages or 65536 microbatches";
      }
    }
  }
  pipeline.stage_rank.assign(static_cast<std::size_t>(stages), -1);
  for (std::size_t rank = 0; rank < pipeline.actions.size(); ++rank) {
    for (const Action& action : pipeline.actions[rank]) {
      if (is_compute(action.kind)) {
        int& place = pipeline.stage_rank[static_cast<std::size_t>(action.stage)];
        place = place < 0 ? static_cast<int>(rank) : place;
      }
    }
  }
  Chain chain{.stages = {}, .first = 0, .count = pipeline.microbatches};
  for (int stage = 0; stage < stages; ++stage) {
    if (pipeline.stage_rank[static_cast<std::size_t>(stage)] < 0) {
      return "no rank computes stage " + std::to_string(stage);
    }
    chain.stages.push_back(stage);
  }
  pipeline.chains = {std::move(chain)};
  set_unit_costs(pipeline);
  return check(pipeline);
}

}  // namespace

Parsed<std::vector<Action>> parse_actions(std::string_view line) {
  std::vector<Action> actions;
  for (int cell = 1;; ++cell) {
    const std::size_t comma = line.find(',');
    const std::string_view text = trimmed(line.substr(0, comma));
    if (!text.empty() && (!append_action(text, actions) || actions.size() > kMostActions)) {
      return Parsed<std::vector<Action>>::failure(
          in_quotes(text) + " is not an action such as 2F0, 1SEND_F3 or (1F4;2B0)OVERLAP_F_B",
          "cell " + std::to_string(cell));
    }
    if (comma == std::string_view::npos) {
      return Parsed<std::vector<Action>>::success(std::move(actions));
    }
    line.remove_prefix(comma + 1);
  }
}

std::string actions_text(const std::vector<Action>& actions) {
  std::string text;
  for (std::size_t i = 0; i < actions.size(); i = after(actions, i)) {
    text += i == 0 ? "" : ",";
    if (actions[i].kind != ActionKind::overlap) {
      text += to_string(actions[i]);
      continue;
    }
    for (std::size_t k = i + 1; k < after(actions, i); ++k) {
      text += (k == i + 1 ? "(" : ";") + to_string(actions[k]);
    }
    text += ")" + to_string(actions[i]);
  }
  return text;
}

Parsed<Pipeline> parse_csv(std::string_view text) {
  Pipeline pipeline{.name = "csv"};
  const auto fail = [](std::string message, std::size_t line) {
    return Parsed<Pipeline>::failure(std::move(message), "line " + std::to_string(line));
  };
  if (text.size() > kMostBytes) {
    return Parsed<Pipeline>::failure("more than 64 MiB", "byte " + std::to_string(kMostBytes));
  }
  if (text.ends_with('\n')) {  // strip only one: an empty line is a rank without stages
    text.remove_suffix(1);
  }
  std::size_t total = 0;
  while (true) {
    const std::size_t end = text.find('\n');
    Parsed<std::vector<Action>> line = parse_actions(text.substr(0, end));
    const std::size_t number = pipeline.actions.size() + 1;
    if (!line) {
      return fail(line.position + ": " + line.message, number);
    }
    total += line.value->size();
    if (number > kMostRanks || total > kMostActions) {
      return fail("it has too many ranks or actions", number);
    }
    pipeline.actions.push_back(std::move(*line.value));
    if (end == std::string_view::npos) {
      break;
    }
    text.remove_prefix(end + 1);
  }
  pipeline.ranks = static_cast<int>(pipeline.actions.size());
  if (const auto problem = derive_shape(pipeline)) {
    return fail(*problem, 1);
  }
  return Parsed<Pipeline>::success(std::move(pipeline));
}

std::string to_csv(const Pipeline& pipeline) {
  std::string text;
  for (const std::vector<Action>& actions : pipeline.actions) {
    text += actions_text(actions) + "\n";
  }
  return text;
}

}  // namespace unisono::pipeline
