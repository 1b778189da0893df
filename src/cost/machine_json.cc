#include "cost/machine_json.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "base/json.h"
#include "base/json_text.h"
#include "cost/choices_json.h"
#include "cost/json_values.h"
#include "unisono/error.hpp"

namespace unisono::cost {
namespace {

// The least positive number that is accepted.
constexpr double kLeast = 1e-100;
constexpr double kMost = 1e100;

// A number of a trend, its JSON key and its unit.
struct TrendField {
  const char* name;
  double Trend::* member;
  double unit;
  bool is_rate = false;  // written as GB/s, stored as seconds per byte
};
constexpr std::array kTrendFields = {
    TrendField{"floor_us", &Trend::floor_s, 1e-6},
    TrendField{"alpha_us", &Trend::alpha_s, 1e-6},
    TrendField{"gb_per_s", &Trend::beta_s_per_byte, 1e-9, true},
    TrendField{"ramp_bytes", &Trend::ramp_bytes, 1},
    TrendField{"restart_gb_per_s", &Trend::restart_s_per_byte, 1e-9, true},
    TrendField{"direct_alpha_us", &Trend::direct_alpha_s, 1e-6},
    TrendField{"direct_gb_per_s", &Trend::direct_beta_s_per_byte, 1e-9, true},
    TrendField{"reduce_gb_per_s", &Trend::gamma_s_per_byte, 1e-9, true},
    TrendField{"switch_alpha_us", &Trend::switch_alpha_s, 1e-6},
    TrendField{"switch_gb_per_s", &Trend::switch_beta_s_per_byte, 1e-9, true},
};

std::string factors_text(const std::map<int, double>& factors) {
  std::string text;
  for (const auto& [ranks, factor] : factors) {
    text += (text.empty() ? "\"" : ", \"") + std::to_string(ranks) + "\": " + json_number(factor);
  }
  return "{" + text + "}";
}

std::string trend_text(const Trend& trend) {
  std::string text = "{";
  for (const TrendField& field : kTrendFields) {
    const double value = trend.*field.member;
    text += std::string("\"") + field.name +
            "\": " + json_number(field.is_rate ? field.unit / value : value / field.unit) + ", ";
  }
  return text + "\"has_switch\": " + (trend.has_switch ? "true" : "false") +
         ", \"byte_factors\": " + factors_text(trend.byte_factors) +
         ", \"latency_factors\": " + factors_text(trend.latency_factors) + "}";
}

// Reads the collective, ranks and bytes of each row: of points, or of residuals.
template <typename Row>
std::string cases_text(const std::vector<Row>& rows) {
  return json_column("collective", rows,
                     [](const Row& row) { return json_string(to_string(row.collective)); }) +
         ", " +
         json_column("ranks", rows, [](const Row& row) { return std::to_string(row.ranks); }) +
         ", " + json_column("bytes", rows, [](const Row& row) { return json_number(row.bytes); });
}

std::string residuals_text(const Residuals::State& state) {
  return "{\"scale\": " + json_number(state.scale) + ", " + cases_text(state.known) + ", " +
         json_column("weight", state.weights, json_number) + "}";
}

std::string points_text(const std::vector<Point>& points) {
  return "{" + cases_text(points) + ", " +
         json_column("algorithm", points,
                     [](const Point& point) { return json_string(point.algorithm); }) +
         ", " +
         json_column("time_us", points,
                     [](const Point& point) { return json_number(point.time_s * 1e6); }) +
         "}";
}

std::string groups_text(const Machine& machine) {
  std::string text;
  for (const auto& [name, group] : machine.groups()) {
    text += (text.empty() ? "\n    {\"group\": " : ",\n    {\"group\": ") + json_string(name) +
            ",\n     \"trend\": " + trend_text(group.trend) +
            ",\n     \"residuals\": " + residuals_text(group.residuals.state()) + "}";
  }
  return "[" + text + "]";
}

void check_algorithm(const JsonNode& place, Collective collective, const std::string& name) {
  const Algorithm* algorithm = find_algorithm(collective, name);
  if (algorithm == nullptr) {
    place.fail("unknown algorithm");
  }
  try {
    parse_parameters(*algorithm, name);
  } catch (const Error& error) {
    refuse(place, error);
  }
}

// Reads "" or "all_reduce/ring". The algorithm is not checked here: users of a machine look it up.
std::string read_group_name(const JsonNode& place) {
  std::string name = place.text();
  if (name.empty()) {
    return name;
  }
  const std::size_t slash = name.find('/');
  const auto collective = parse_collective(name.substr(0, slash));
  if (slash == std::string::npos || !collective || is_v_form(*collective)) {
    place.fail("a group is \"\" or COLLECTIVE/ALGORITHM");
  }
  check_algorithm(place, *collective, name.substr(slash + 1));
  return name;
}

std::vector<Point> read_points(const JsonNode& place) {
  const JsonNode collectives = place.at("collective");
  const std::size_t size = collectives.size();
  if (size == 0) {
    collectives.fail("there are no measurements");
  }
  const JsonNode algorithms = place.column("algorithm", size);
  const JsonNode ranks = place.column("ranks", size);
  const JsonNode bytes = place.column("bytes", size);
  const JsonNode times = place.column("time_us", size);
  std::vector<Point> points;
  for (std::size_t i = 0; i < size; ++i) {
    Point point{.collective = read_collective(collectives.item(i)),
                .algorithm = algorithms.item(i).text(),
                .ranks = read_ranks(ranks.item(i)),
                .bytes = read_bytes(bytes.item(i), kMostPointBytes),
                .time_s = times.item(i).number(kLeastPointUs, kMostPointUs) * 1e-6};
    if (!point.algorithm.empty()) {
      check_algorithm(algorithms.item(i), point.collective, point.algorithm);
    }
    points.push_back(std::move(point));
  }
  return points;
}

std::map<int, double> read_factors(const JsonNode& factors) {
  std::map<int, double> result;
  for (const std::string& name : factors.keys()) {
    int ranks = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), ranks);
    if (error != std::errc{} || end != name.data() + name.size() || ranks < 1) {
      factors.fail("the name of a factor is not a number of ranks");
    }
    result[ranks] = factors.at(name).number(kLeast, kMost);
  }
  return result;
}

Trend read_trend(const JsonNode& place) {
  Trend trend;
  for (const TrendField& field : kTrendFields) {
    const double value = place.at(field.name).number(kLeast, kMost);
    trend.*field.member = field.is_rate ? field.unit / value : value * field.unit;
  }
  trend.has_switch = place.at("has_switch").truth();
  trend.byte_factors = read_factors(place.at("byte_factors"));
  trend.latency_factors = read_factors(place.at("latency_factors"));
  return trend;
}

Residuals::State read_residuals(const JsonNode& place) {
  const JsonNode collectives = place.at("collective");
  const std::size_t size = collectives.size();
  const JsonNode ranks = place.column("ranks", size);
  const JsonNode bytes = place.column("bytes", size);
  const JsonNode weights = place.column("weight", size);
  Residuals::State state;
  state.scale = place.at("scale").number(kLeast, kMost);
  for (std::size_t i = 0; i < size; ++i) {
    state.known.push_back({.collective = read_collective(collectives.item(i)),
                           .ranks = read_ranks(ranks.item(i)),
                           .bytes = read_bytes(bytes.item(i))});
    state.weights.push_back(weights.item(i).number(-kMost, kMost));
  }
  return state;
}

void check_format(const JsonNode& place) {
  const JsonNode format = place.at("format");
  if (format.text() != kMachineFormat) {
    format.fail("unknown version, this reads " + std::string(kMachineFormat));
  }
}

HostInfo read_host(const JsonNode& place) {
  if (!place.find("host")) {
    return {};
  }
  const JsonNode host = place.at("host");
  return {.cpu = host.at("cpu").text(), .cpus = read_ranks(host.at("cpus"))};
}

Machine read_machine(const JsonNode& place, const FitMachine& fit) {
  const JsonNode measured = place.at("points");
  std::vector<Point> points = read_points(measured);
  const auto list = place.find("groups");
  try {
    if (!list && fit) {
      return fit(std::move(points));
    }
    std::map<std::string, Machine::Group> groups;
    for (std::size_t i = 0; list && i < list->size(); ++i) {
      const JsonNode group = list->item(i);
      groups[read_group_name(group.at("group"))] = {
          .trend = read_trend(group.at("trend")),
          .residuals = Residuals(read_residuals(group.at("residuals")))};
    }
    return Machine::restore(std::move(points), std::move(groups));
  } catch (const Error& error) {
    refuse(measured, error);
  }
}

NamedMachine read(const JsonNode& place, const FitMachine& fit) {
  check_format(place);
  return {.name = place.at("name").text(),
          .machine = read_machine(place, fit),
          .host = read_host(place),
          .choices = read_choices(place)};
}

}  // namespace

std::string to_json(const NamedMachine& named) {
  std::string text =
      "{\"format\": " + json_string(kMachineFormat) + ",\n \"name\": " + json_string(named.name);
  if (named.host.cpus > 0) {
    text += ",\n \"host\": {\"cpu\": " + json_string(named.host.cpu) +
            ", \"cpus\": " + std::to_string(named.host.cpus) + "}";
  }
  return text + choices_text(named.choices) +
         ",\n \"points\": " + points_text(named.machine.points()) +
         ",\n \"groups\": " + groups_text(named.machine) + "}\n";
}

Parsed<NamedMachine> parse_machine_json(std::string_view text, const FitMachine& fit) {
  return parse_json_as<NamedMachine>(text,
                                     [&](const JsonNode& document) { return read(document, fit); });
}

Parsed<Choices> parse_choices_json(std::string_view text) {
  constexpr std::array<std::string_view, 2> kMeasured = {"points", "groups"};
  const auto read_it = [](const JsonNode& document) {
    check_format(document);
    return read_choices(document);
  };
  return parse_json_as<Choices>(text, read_it, kMeasured);
}

}  // namespace unisono::cost
