#include "cost/choices_json.h"

#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "base/json_text.h"
#include "cost/json_values.h"
#include "unisono/error.hpp"
#include "unisono/options.hpp"

namespace unisono::cost {
namespace {

// Reads an algorithm name, with or without parameters, for this rank count.
std::string read_choice(const JsonNode& place, Collective collective, int ranks) {
  const std::string name = place.text();
  if (name.empty()) {
    return name;
  }
  const Algorithm* algorithm = find_algorithm(collective, name);
  if (algorithm == nullptr) {
    place.fail("unknown algorithm '" + name + "'");
  }
  Shape shape{.ranks = ranks};
  try {
    shape.parameters = parse_parameters(*algorithm, name);
  } catch (const Error& error) {
    refuse(place, error);
  }
  if (!can_serve(*algorithm, shape)) {
    place.fail("'" + name + "' cannot serve " + std::to_string(ranks) + " ranks");
  }
  return name;
}

std::vector<Choice> read_rows(const JsonNode& place) {
  if (!place.find("choices")) {
    return {};
  }
  const JsonNode columns = place.at("choices");
  const JsonNode collectives = columns.at("collective");
  const std::size_t size = collectives.size();
  const JsonNode ranks = columns.column("ranks", size);
  const JsonNode bytes = columns.column("from_bytes", size);
  const JsonNode algorithms = columns.column("algorithm", size);
  std::vector<Choice> rows;
  for (std::size_t i = 0; i < size; ++i) {
    const Collective collective = read_collective(collectives.item(i));
    if (is_v_form(collective)) {
      collectives.item(i).fail("the plain form is needed, it serves the v-form as well");
    }
    const int row_ranks = read_ranks(ranks.item(i));
    rows.push_back({.collective = collective,
                    .ranks = row_ranks,
                    .from_bytes = read_bytes(bytes.item(i)),
                    .algorithm = read_choice(algorithms.item(i), collective, row_ranks)});
  }
  return rows;
}

WaitPolicy read_policy(const JsonNode& place) {
  try {
    return parse_wait_policy(place.text(), {});
  } catch (const Error&) {
    place.fail("not a waiting policy, such as spin=3000,yield_us=500");
  }
}

std::vector<WaitChoice> read_waits(const JsonNode& place) {
  if (!place.find("waits")) {
    return {};
  }
  const JsonNode columns = place.at("waits");
  const JsonNode ranks = columns.at("ranks");
  const std::size_t size = ranks.size();
  const JsonNode oversubscribed = columns.column("oversubscribed", size);
  const JsonNode policies = columns.column("policy", size);
  std::vector<WaitChoice> rows;
  for (std::size_t i = 0; i < size; ++i) {
    rows.push_back({.ranks = read_ranks(ranks.item(i)),
                    .oversubscribed = oversubscribed.item(i).truth(),
                    .policy = read_policy(policies.item(i))});
  }
  return rows;
}

std::vector<ThreadChoice> read_thread_choices(const JsonNode& place) {
  if (!place.find("threads")) {
    return {};
  }
  const JsonNode columns = place.at("threads");
  const JsonNode collectives = columns.at("collective");
  const std::size_t size = collectives.size();
  const JsonNode ranks = columns.column("ranks", size);
  const JsonNode bytes = columns.column("from_bytes", size);
  const JsonNode threads = columns.column("threads", size);
  std::vector<ThreadChoice> rows;
  for (std::size_t i = 0; i < size; ++i) {
    rows.push_back({.collective = read_collective(collectives.item(i)),
                    .ranks = read_ranks(ranks.item(i)),
                    .from_bytes = read_bytes(bytes.item(i)),
                    .threads = static_cast<int>(threads.item(i).whole(1, kMostThreads))});
  }
  return rows;
}

}  // namespace

std::string choices_text(const Choices& choices) {
  std::string text;
  if (const auto& rows = choices.rows(); !rows.empty()) {
    const auto column = [&rows](const char* name, const auto& value) {
      return json_column(name, rows, value);
    };
    text +=
        ",\n \"choices\": {" +
        column("collective",
               [](const Choice& row) { return json_string(to_string(row.collective)); }) +
        ", " + column("ranks", [](const Choice& row) { return std::to_string(row.ranks); }) + ", " +
        column("from_bytes", [](const Choice& row) { return json_number(row.from_bytes); }) + ", " +
        column("algorithm", [](const Choice& row) { return json_string(row.algorithm); }) + "}";
  }
  if (const auto& rows = choices.waits(); !rows.empty()) {
    const auto column = [&rows](const char* name, const auto& value) {
      return json_column(name, rows, value);
    };
    text +=
        ",\n \"waits\": {" +
        column("ranks", [](const WaitChoice& row) { return std::to_string(row.ranks); }) + ", " +
        column("oversubscribed",
               [](const WaitChoice& row) { return row.oversubscribed ? "true" : "false"; }) +
        ", " +
        column("policy", [](const WaitChoice& row) { return json_string(to_text(row.policy)); }) +
        "}";
  }
  if (const auto& rows = choices.threads(); !rows.empty()) {
    const auto column = [&rows](const char* name, const auto& value) {
      return json_column(name, rows, value);
    };
    text +=
        ",\n \"threads\": {" +
        column("collective",
               [](const ThreadChoice& row) { return json_string(to_string(row.collective)); }) +
        ", " + column("ranks", [](const ThreadChoice& row) { return std::to_string(row.ranks); }) +
        ", " +
        column("from_bytes", [](const ThreadChoice& row) { return json_number(row.from_bytes); }) +
        ", " +
        column("threads", [](const ThreadChoice& row) { return std::to_string(row.threads); }) +
        "}";
  }
  return text;
}

Choices read_choices(const JsonNode& document) {
  return Choices(read_rows(document), read_waits(document), read_thread_choices(document));
}

}  // namespace unisono::cost
