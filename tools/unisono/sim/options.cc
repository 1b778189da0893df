// Reads the simulation options of `unisono sim`.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "cli/failure.h"
#include "plan/plan.h"
#include "sim/sim.h"

namespace unisono::cli {
namespace {

struct Assignment {
  std::string name;
  std::string value;
};

// Splits "NAME=VALUE" at the last equals sign.
Assignment assignment(std::string_view option, const std::string& text, std::string_view example) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw UsageError(fmt::format("--{} cannot be '{}'", option, text),
                     fmt::format("such as --{} {}", option, example), "unisono help sim");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

double real(std::string_view option, const std::string& text, double least, double most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) ||
      value < least || value > most) {
    throw UsageError(fmt::format("--{} cannot be '{}'", option, text),
                     fmt::format("a number from {:g} to {:g}", least, most), "unisono help sim");
  }
  return value;
}

int rank(std::string_view option, const std::string& text) {
  return static_cast<int>(real(option, text, 0, kMostTopologyRanks - 1));
}

// "30us", "1.5ms", "2s" in microseconds.
double time_us(std::string_view option, const std::string& text) {
  struct Unit {
    std::string_view name;
    double factor;
  };
  constexpr Unit kUnits[] = {{"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}};
  for (const Unit& unit : kUnits) {
    if (text.ends_with(unit.name)) {
      const std::string number = text.substr(0, text.size() - unit.name.size());
      if (!number.empty() && number.find_first_not_of("0123456789.e+-") == std::string::npos) {
        constexpr double kMost = 1e9;
        return real(option, number, 0, kMost) * unit.factor;
      }
    }
  }
  throw UsageError(fmt::format("--{}: '{}' is not a time", option, text),
                   "give a number and ns, us, ms or s", "unisono help sim");
}

}  // namespace

network_model::SimulationOptions simulation_options(const Arguments& arguments) {
  constexpr double kUsPerSecond = 1e6;
  network_model::SimulationOptions options;
  options.ports = static_cast<int>(arguments.number("ports", 1, 64));
  if (arguments.has("gamma")) {
    if (arguments.has("link")) {
      throw UsageError("--gamma cannot be used with --link", "write gamma=... in the link",
                       "unisono help sim");
    }
    options.gamma_us_per_byte =
        s_per_byte("--gamma: ", arguments.text("gamma"), "unisono help sim") * kUsPerSecond;
  }
  if (arguments.has("segment")) {
    options.segment_bytes = static_cast<double>(arguments.bytes("segment"));
    if (options.segment_bytes <= 0) {
      throw UsageError("--segment must be above zero", {}, "unisono help sim");
    }
  }
  const std::string contention = arguments.text("contention");
  options.contention = contention == "on"    ? network_model::Contention::on
                       : contention == "off" ? network_model::Contention::off
                                             : network_model::Contention::automatic;
  const std::string routes = arguments.text("routes");
  options.routes = routes == "adaptive" ? RouteChoice::adaptive
                   : routes == "hashed" ? RouteChoice::hashed
                                        : RouteChoice::fixed;
  if (arguments.has("link") && options.routes != RouteChoice::fixed) {
    throw UsageError("--routes cannot be used with --link",
                     "with --link every pair of ranks has its own link", "unisono help sim");
  }
  for (const std::string& text : arguments.texts("late")) {
    const Assignment late = assignment("late", text, "3=50us");
    options.rank_faults.push_back(
        {.rank = rank("late", late.name), .late_us = time_us("late", late.value)});
  }
  for (const std::string& text : arguments.texts("slow")) {
    const Assignment slow = assignment("slow", text, "3=1.5");
    options.rank_faults.push_back(
        {.rank = rank("slow", slow.name), .factor = real("slow", slow.value, 1e-3, 1e6)});
  }
  for (const std::string& text : arguments.texts("degrade")) {
    const Assignment worse = assignment("degrade", text, "host3=0.5");
    options.link_faults.push_back(
        {.name = worse.name, .bandwidth_factor = real("degrade", worse.value, 1e-6, 1)});
  }
  options.jitter = real("jitter", arguments.text("jitter"), 0, 100);
  options.seed = static_cast<std::uint64_t>(arguments.number("seed", 0, INT64_MAX));
  options.most_messages =
      static_cast<double>(arguments.number("most-messages", 1, 1'000'000'000'000'000));
  options.extrapolate = !arguments.has("all-steps");
  constexpr std::size_t kTraced = 1'000'000;
  constexpr std::size_t kExplained = 100'000;
  options.records = arguments.has("trace") ? kTraced : arguments.has("json") ? kExplained : 0;
  return options;
}

}  // namespace unisono::cli
