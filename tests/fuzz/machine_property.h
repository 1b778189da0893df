// The property of any bytes given to the parsers of machines and of tables of measured times.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include "cost/machine_json.h"
#include "network_model/fit_machine.h"
#include "network_model/table.h"
#include "unisono/error.hpp"

namespace unisono::fuzz {

// With more rows, fitting may take seconds.
inline constexpr std::size_t kMostFitted = 64;
inline constexpr int kMostFittedRanks = 64;

inline bool is_small(const std::vector<cost::Point>& points) {
  for (const cost::Point& point : points) {
    if (point.ranks > kMostFittedRanks) {
      return false;
    }
  }
  return points.size() <= kMostFitted;
}

// A machine answers questions within its data, and survives being written and read again.
inline std::string machine_holds(const cost::NamedMachine& named) {
  for (const cost::Point& point : named.machine.points()) {
    if (named.machine.knows(point.collective, point.algorithm) &&
        !(named.machine.time_s(point.collective, point.algorithm, point.ranks, point.bytes) >= 0)) {
      return "a time below zero";
    }
  }
  const std::string written = cost::to_json(named);
  const Parsed<cost::NamedMachine> again =
      cost::parse_machine_json(written, network_model::fit_machine);
  if (!again) {
    return "not read back: " + again.position + ": " + again.message;
  }
  return "";
}

inline std::string table_property(std::string_view text) {
  const Parsed<network_model::Table> table = network_model::parse_table(text);
  if (!table) {
    return table.message.empty() || table.position.empty() ? "refused without message or position"
                                                           : "";
  }
  for (const std::string& name : table.value->machines()) {
    const std::vector<cost::Point> points = table.value->points(name);
    if (points.empty() || !is_small(points)) {
      continue;
    }
    try {
      const cost::NamedMachine named{.name = name, .machine = network_model::fit_machine(points)};
      if (std::string problem = machine_holds(named); !problem.empty()) {
        return problem;
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::usage) {
        return error.what();
      }
    }
  }
  return "";
}

// Returns an empty text if the property holds, otherwise the failure: a refusal states the mistake
// and its place; an accepted machine is as above.
inline std::string machine_property(std::string_view text) {
  const Parsed<cost::Choices> choices = cost::parse_choices_json(text);
  const Parsed<cost::NamedMachine> machine =
      cost::parse_machine_json(text, network_model::fit_machine);
  if (!machine) {
    if (machine.message.empty() || machine.position.empty()) {
      return "refused without message or position";
    }
    return table_property(text);
  }
  if (!choices) {
    return "choices refused of a machine that is right: " + choices.message;
  }
  return is_small(machine.value->machine.points()) ? machine_holds(*machine.value) : "";
}

}  // namespace unisono::fuzz
