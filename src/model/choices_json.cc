#include "model/choices_json.h"

#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "unisono/error.hpp"

namespace unisono::model {
namespace {

using json_place::Json;
using json_place::Place;

// An algorithm, with parameters or without, for so many ranks.
std::string read_choice(const Place& place, Collective collective, int ranks) {
  const std::string name = place.word();
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
    place.fail(error);
  }
  if (!can_serve(*algorithm, shape)) {
    place.fail("'" + name + "' cannot serve " + std::to_string(ranks) + " ranks");
  }
  return name;
}

std::vector<Choice> read_rows(const Place& place) {
  if (!place.has("choices")) {
    return {};
  }
  const Place columns = place["choices"];
  const Place collectives = columns["collective"];
  const std::size_t size = collectives.size();
  const Place ranks = columns.column("ranks", size);
  const Place bytes = columns.column("from_bytes", size);
  const Place algorithms = columns.column("algorithm", size);
  std::vector<Choice> rows;
  for (std::size_t i = 0; i < size; ++i) {
    const Collective collective = collectives[i].collective();
    if (is_v_form(collective)) {
      collectives[i].fail("the plain form is needed, it serves the v-form as well");
    }
    const int row_ranks = ranks[i].ranks();
    rows.push_back({.collective = collective,
                    .ranks = row_ranks,
                    .from_bytes = bytes[i].not_negative(),
                    .algorithm = read_choice(algorithms[i], collective, row_ranks)});
  }
  return rows;
}

WaitPolicy read_policy(const Place& place) {
  try {
    return parse_wait_policy(place.word(), {});
  } catch (const Error&) {
    place.fail("no way of waiting, such as spin=3000,yield_us=500");
  }
}

std::vector<WaitChoice> read_waits(const Place& place) {
  if (!place.has("waits")) {
    return {};
  }
  const Place columns = place["waits"];
  const Place ranks = columns["ranks"];
  const std::size_t size = ranks.size();
  const Place crowded = columns.column("crowded", size);
  const Place policies = columns.column("policy", size);
  std::vector<WaitChoice> rows;
  for (std::size_t i = 0; i < size; ++i) {
    rows.push_back({.ranks = ranks[i].ranks(),
                    .crowded = crowded[i].truth(),
                    .policy = read_policy(policies[i])});
  }
  return rows;
}

Json columns_of(std::initializer_list<const char*> names) {
  Json json;
  for (const char* name : names) {
    json[name] = Json::array();
  }
  return json;
}

}  // namespace

void write_choices(const Choices& choices, Json& document) {
  if (!choices.rows().empty()) {
    Json& json = document["choices"] =
        columns_of({"collective", "ranks", "from_bytes", "algorithm"});
    for (const Choice& row : choices.rows()) {
      json["collective"].push_back(to_string(row.collective));
      json["ranks"].push_back(row.ranks);
      json["from_bytes"].push_back(row.from_bytes);
      json["algorithm"].push_back(row.algorithm);
    }
  }
  if (!choices.waits().empty()) {
    Json& json = document["waits"] = columns_of({"ranks", "crowded", "policy"});
    for (const WaitChoice& row : choices.waits()) {
      json["ranks"].push_back(row.ranks);
      json["crowded"].push_back(row.crowded);
      json["policy"].push_back(to_text(row.policy));
    }
  }
}

Choices read_choices(const Place& document) {
  return Choices(read_rows(document), read_waits(document));
}

}  // namespace unisono::model
