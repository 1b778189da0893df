// Reads and writes times, sizes and links.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

#include "cli/failure.h"
#include "plan/plan.h"

namespace unisono::cli {
namespace {

constexpr std::string_view kExample = "for example --link alpha=5us,beta=12.5GB/s";

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kTimes[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
constexpr Unit kRates[] = {{"MB/s", 1e6},        {"GB/s", 1e9},          {"TB/s", 1e12},
                           {"Mbit/s", 1e6 / 8},  {"Gbit/s", 1e9 / 8},    {"Tbit/s", 1e12 / 8},
                           {"MiB/s", 1048576.0}, {"GiB/s", 1073741824.0}};

// Parses a number with one of the units; nullopt if it is invalid, or not above 0 (times may be 0).
std::optional<double> quantity(std::string_view text, std::span<const Unit> units) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const Unit& known : units) {
    if (error == std::errc{} && unit == known.name && std::isfinite(value) && value >= 0) {
      return value * known.factor;
    }
  }
  return std::nullopt;
}

double time_of(std::string_view key, std::string_view text) {
  if (const auto value = quantity(text, kTimes)) {
    return *value;
  }
  throw UsageError(fmt::format("--link: {}={} is not a time", key, text),
                   "a number and ns, us, ms or s", std::string(kExample));
}

}  // namespace

double s_per_byte(std::string_view what, std::string_view text, std::string_view next) {
  const auto value = quantity(text, kRates);
  if (value && *value > 0 && std::isfinite(*value)) {
    return 1 / *value;
  }
  throw UsageError(fmt::format("{}{} is not a bandwidth above 0", what, text),
                   "a number and GB/s, MB/s, TB/s, Gbit/s, GiB/s ...", std::string(next));
}

cost::Parameters parse_link(std::string_view text) {
  cost::Parameters parameters;
  std::vector<std::string_view> keys;
  const auto given = [&keys](std::string_view name) {
    return std::find(keys.begin(), keys.end(), name) != keys.end();
  };
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : item.substr(equals + 1);
    if (given(key)) {
      throw UsageError(fmt::format("--link: {} comes twice", key), {}, std::string(kExample));
    }
    keys.push_back(key);
    if (key == "alpha") {
      parameters.alpha_s = time_of(key, value);
    } else if (key == "floor") {
      parameters.floor_s = time_of(key, value);
    } else if (key == "beta") {
      parameters.beta_s_per_byte = s_per_byte(fmt::format("--link: {}=", key), value, kExample);
    } else if (key == "gamma") {
      parameters.gamma_s_per_byte = s_per_byte(fmt::format("--link: {}=", key), value, kExample);
    } else {
      constexpr std::array<std::string_view, 4> kKeys = {"alpha", "beta", "gamma", "floor"};
      throw UsageError(fmt::format("--link: unknown part '{}'", item), did_you_mean(key, kKeys),
                       std::string(kExample));
    }
  }
  if (!given("beta")) {
    throw UsageError("--link: beta is missing", "the bandwidth of one direction",
                     std::string(kExample));
  }
  if (!given("alpha")) {
    throw UsageError("--link: alpha is missing",
                     "it is the time that every message needs, even an empty one; it may be 0us",
                     std::string(kExample));
  }
  return parameters;
}

std::string time_text(double seconds) {
  constexpr Unit kDown[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  for (const Unit& unit : kDown) {
    // 0.9995 of a unit would be printed as 1.
    if (seconds >= unit.factor * 0.9995 || (unit.factor == 1e-9 && seconds > 0)) {
      const double value = seconds / unit.factor;
      const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
      return fmt::format("{:.{}f} {}", value, decimals, unit.name);
    }
  }
  return "0 us";
}

double rounded(double value) {
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

std::string link_text(const cost::Parameters& parameters) {
  const auto rate = [](double s_per_byte) { return fmt::format("{:.4g} GB/s", 1e-9 / s_per_byte); };
  std::string text =
      fmt::format("{:.4g} us + {}", parameters.alpha_s * 1e6, rate(parameters.beta_s_per_byte));
  if (parameters.gamma_s_per_byte > 0) {
    text += fmt::format(", reduces {}", rate(parameters.gamma_s_per_byte));
  }
  if (parameters.floor_s > 0) {
    text += fmt::format(", starts in {:.4g} us", parameters.floor_s * 1e6);
  }
  return text;
}

std::string tokens_text(double tokens) {
  return fmt::format("{} token{}", tokens, tokens == 1 ? "" : "s");
}

}  // namespace unisono::cli
