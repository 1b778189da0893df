#include "model/machine_json.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "model/choices_json.h"
#include "model/json_place.h"
#include "unisono/error.hpp"

namespace unisono::model {
namespace {

using json_place::Fault;
using json_place::Json;
using json_place::Place;

// The numbers of a trend, how they are called, and in which unit.
struct TrendField {
  const char* name;
  double Trend::* member;
  double unit;
  bool is_rate = false;  // written as GB/s, kept as seconds per byte
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

Json factors_json(const std::map<int, double>& factors) {
  Json json = Json::object();
  for (const auto& [ranks, factor] : factors) {
    json[std::to_string(ranks)] = factor;
  }
  return json;
}

Json trend_json(const Trend& trend) {
  Json json;
  for (const TrendField& field : kTrendFields) {
    const double value = trend.*field.member;
    json[field.name] = field.is_rate ? field.unit / value : value / field.unit;
  }
  json["has_switch"] = trend.has_switch;
  json["byte_factors"] = factors_json(trend.byte_factors);
  json["latency_factors"] = factors_json(trend.latency_factors);
  return json;
}

Json residuals_json(const Residuals::State& state) {
  Json json;
  json["scale"] = state.scale;
  for (const char* name : {"collective", "ranks", "bytes", "weight"}) {
    json[name] = Json::array();
  }
  for (std::size_t i = 0; i < state.known.size(); ++i) {
    json["collective"].push_back(to_string(state.known[i].collective));
    json["ranks"].push_back(state.known[i].ranks);
    json["bytes"].push_back(state.known[i].bytes);
    json["weight"].push_back(state.weights[i]);
  }
  return json;
}

void check_algorithm(const Place& place, Collective collective, const std::string& name) {
  const Algorithm* algorithm = find_algorithm(collective, name);
  if (algorithm == nullptr) {
    place.fail("unknown algorithm");
  }
  try {
    parse_parameters(*algorithm, name);
  } catch (const Error& error) {
    place.fail(error);
  }
}

// "" or "all_reduce/ring": those who ask a machine look the algorithm up.
std::string read_group_name(const Place& place) {
  std::string name = place.word();
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

std::vector<Point> read_points(const Place& place) {
  const Place collectives = place["collective"];
  const std::size_t size = collectives.size();
  if (size == 0) {
    collectives.fail("there are no measurements");
  }
  const Place algorithms = place.column("algorithm", size);
  const Place ranks = place.column("ranks", size);
  const Place bytes = place.column("bytes", size);
  const Place times = place.column("time_us", size);
  std::vector<Point> points;
  for (std::size_t i = 0; i < size; ++i) {
    Point point{.collective = collectives[i].collective(),
                .algorithm = algorithms[i].word(),
                .ranks = ranks[i].ranks(),
                .bytes = bytes[i].not_negative(kMostPointBytes),
                .time_s = times[i].positive(kLeastPointUs, kMostPointUs) * 1e-6};
    if (!point.algorithm.empty()) {
      check_algorithm(algorithms[i], point.collective, point.algorithm);
    }
    points.push_back(std::move(point));
  }
  return points;
}

std::map<int, double> read_factors(const Place& factors) {
  std::map<int, double> result;
  if (!factors.json().is_object()) {
    factors.fail("an object is needed");
  }
  for (const auto& [name, factor] : factors.json().items()) {
    int ranks = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), ranks);
    if (error != std::errc{} || end != name.data() + name.size() || ranks < 1) {
      factors.fail("the name of a factor is no number of ranks");
    }
    result[ranks] = factors[name].positive();
  }
  return result;
}

Trend read_trend(const Place& place) {
  Trend trend;
  for (const TrendField& field : kTrendFields) {
    const double value = place[field.name].positive();
    trend.*field.member = field.is_rate ? field.unit / value : value * field.unit;
  }
  trend.has_switch = place["has_switch"].truth();
  trend.byte_factors = read_factors(place["byte_factors"]);
  trend.latency_factors = read_factors(place["latency_factors"]);
  return trend;
}

Residuals::State read_residuals(const Place& place) {
  const Place collectives = place["collective"];
  const std::size_t size = collectives.size();
  const Place ranks = place.column("ranks", size);
  const Place bytes = place.column("bytes", size);
  const Place weights = place.column("weight", size);
  Residuals::State state;
  state.scale = place["scale"].positive();
  for (std::size_t i = 0; i < size; ++i) {
    state.known.push_back({.collective = collectives[i].collective(),
                           .ranks = ranks[i].ranks(),
                           .bytes = bytes[i].not_negative()});
    state.weights.push_back(weights[i].number());
  }
  return state;
}

void check_format(const Place& place) {
  const Place format = place["format"];
  if (format.word() != kMachineFormat) {
    format.fail("unknown version, this reads " + std::string(kMachineFormat));
  }
}

HostInfo read_host(const Place& place) {
  if (!place.has("host")) {
    return {};
  }
  const Place host = place["host"];
  return {.cpu = host["cpu"].word(), .cpus = host["cpus"].ranks()};
}

Machine read_machine(const Place& place) {
  std::vector<Point> points = read_points(place["points"]);
  if (!place.has("groups")) {
    return Machine::fit(std::move(points));
  }
  const Place list = place["groups"];
  std::map<std::string, Machine::Group> groups;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Place group = list[i];
    groups[read_group_name(group["group"])] = {
        .trend = read_trend(group["trend"]),
        .residuals = Residuals(read_residuals(group["residuals"]))};
  }
  return Machine::restore(std::move(points), std::move(groups));
}

NamedMachine read(const Place& place) {
  check_format(place);
  return {.name = place["name"].word(),
          .machine = read_machine(place),
          .host = read_host(place),
          .choices = read_choices(place)};
}

// Of a parser: what the text says, or what is wrong with it.
template <typename T, typename Read>
Parsed<T> parsed(std::string_view text, const Json::parser_callback_t& passes, Read&& read) {
  try {
    const Json json = Json::parse(text, passes);
    return Parsed<T>::success(read(Place(json, "")));
  } catch (const Json::parse_error& error) {
    return Parsed<T>::failure("this is no JSON", "byte " + std::to_string(error.byte));
  } catch (const Json::exception&) {
    return Parsed<T>::failure("a number is out of range", "/");
  } catch (const Fault& fault) {
    return Parsed<T>::failure(fault.message, fault.position);
  } catch (const Error& error) {
    const std::string what = error.what();
    return Parsed<T>::failure(what.substr(0, what.find('\n')), "/points");
  }
}

}  // namespace

std::string to_json(const NamedMachine& named) {
  Json json;
  json["format"] = kMachineFormat;
  json["name"] = named.name;
  if (named.host.cpus > 0) {
    json["host"] = {{"cpu", named.host.cpu}, {"cpus", named.host.cpus}};
  }
  write_choices(named.choices, json);
  Json& points = json["points"];
  for (const char* name : {"collective", "algorithm", "ranks", "bytes", "time_us"}) {
    points[name] = Json::array();
  }
  for (const Point& point : named.machine.points()) {
    points["collective"].push_back(to_string(point.collective));
    points["algorithm"].push_back(point.algorithm);
    points["ranks"].push_back(point.ranks);
    points["bytes"].push_back(point.bytes);
    points["time_us"].push_back(point.time_s * 1e6);
  }
  json["groups"] = Json::array();
  for (const auto& [name, group] : named.machine.groups()) {
    json["groups"].push_back({{"group", name},
                              {"trend", trend_json(group.trend)},
                              {"residuals", residuals_json(group.residuals.state())}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Parsed<NamedMachine> parse_machine_json(std::string_view text) {
  return parsed<NamedMachine>(text, nullptr, read);
}

Parsed<Choices> parse_choices_json(std::string_view text) {
  const auto passes = [](int depth, Json::parse_event_t event, const Json& value) {
    return depth != 1 || event != Json::parse_event_t::key ||
           (value != "points" && value != "groups");
  };
  return parsed<Choices>(text, passes, [](const Place& place) {
    check_format(place);
    return read_choices(place);
  });
}

}  // namespace unisono::model
