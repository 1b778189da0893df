#include "chaos/options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <random>

namespace unisono::chaos {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kTimes[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}};
constexpr Unit kParts[] = {{"%", 0.01}, {"", 1}};
constexpr Unit kRates[] = {{"kbit", 125}, {"Mbit", 125e3}, {"Gbit", 125e6}};
constexpr double kMost = 1e15;
constexpr int kLatestDrawnMs = 5000;
constexpr std::string_view kStrikes[] = {"kill", "stop", "reset"};  // by FaultSpec::Kind

// A number followed by one of the units.
template <std::size_t n>
std::optional<double> number(std::string_view text, const Unit (&units)[n]) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !(value >= 0)) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (rest == unit.name && value * unit.factor <= kMost) {
      return value * unit.factor;
    }
  }
  return std::nullopt;
}

template <typename T>
bool whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool milliseconds(std::string_view text, std::int64_t& value) {
  const std::optional<double> time_us = number(text, kTimes);
  value = static_cast<std::int64_t>(time_us.value_or(0) / 1000);
  return time_us.has_value();
}

// "2@1.5s+500ms", "random@2s", "random", "2".
std::optional<FaultSpec> parse_strike(FaultSpec::Kind kind, std::string_view text) {
  FaultSpec strike{.kind = kind};
  const std::size_t plus = text.find('+');
  if (plus != std::string_view::npos) {
    if (kind != FaultSpec::Kind::stop || !milliseconds(text.substr(plus + 1), strike.for_ms)) {
      return std::nullopt;
    }
    text = text.substr(0, plus);
  }
  const std::size_t at = text.find('@');
  if (at != std::string_view::npos && !milliseconds(text.substr(at + 1), strike.at_ms)) {
    return std::nullopt;
  }
  const std::string_view who = text.substr(0, at);
  if (who != "random" && (!whole(who, strike.rank) || strike.rank < 0)) {
    return std::nullopt;
  }
  return strike;
}

// Sets the option; returns the expected form if the value is invalid, otherwise empty.
std::string set(Plan& plan, std::string_view name, std::string_view text) {
  const auto take = [](auto& to, std::optional<double> value, const char* wanted) {
    if (!value) {
      return std::string(wanted);
    }
    to = static_cast<std::remove_reference_t<decltype(to)>>(*value);
    return std::string();
  };
  const auto part = [&]() {
    const auto value = number(text, kParts);
    return value && *value < 1 ? value : std::nullopt;
  };
  if (name == "delay") {
    return take(plan.link.delay_us, number(text, kTimes), "a time such as 5ms");
  }
  if (name == "jitter") {
    return take(plan.link.jitter_us, number(text, kTimes), "a time such as 1ms");
  }
  if (name == "rate") {
    return take(plan.link.bytes_per_s, number(text, kRates), "a rate such as 100Mbit");
  }
  if (name == "loss") {
    return take(plan.link.loss, part(), "a part below 1 such as 1%");
  }
  if (name == "corrupt") {
    return take(plan.link.corrupt, part(), "a part below 1 such as 0.1%");
  }
  if (name == "seed") {
    plan.has_seed = true;
    return whole(text, plan.link.seed) ? "" : "a whole number";
  }
  for (std::size_t kind = 0; kind < std::size(kStrikes); ++kind) {
    if (name == kStrikes[kind]) {
      const auto strike = parse_strike(static_cast<FaultSpec::Kind>(kind), text);
      if (strike) {
        plan.strikes.push_back(*strike);
        return "";
      }
      return kStrikes[kind] == "stop" ? "a rank and times such as 1@2s+500ms, or random"
                                      : "a rank and a time such as 1@2s, or random";
    }
  }
  return "one of delay, jitter, loss, rate, corrupt, reset, kill, stop and seed";
}

std::string time_text(std::int64_t time_us) {
  if (time_us % 1'000'000 == 0) {
    return std::to_string(time_us / 1'000'000) + "s";
  }
  return time_us % 1000 == 0 ? std::to_string(time_us / 1000) + "ms"
                             : std::to_string(time_us) + "us";
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.10g", value);
  return text;
}

std::string strike_text(const FaultSpec& strike) {
  std::string text = strike.rank == FaultSpec::kAny ? "random" : std::to_string(strike.rank);
  text += strike.at_ms < 0 ? "" : "@" + time_text(strike.at_ms * 1000);
  return text + (strike.for_ms < 0 ? "" : "+" + time_text(strike.for_ms * 1000));
}

}  // namespace

bool Plan::needs_relay() const {
  return !link.is_plain() ||
         std::any_of(strikes.begin(), strikes.end(),
                     [](const FaultSpec& strike) { return strike.kind == FaultSpec::Kind::reset; });
}

Parsed<Plan> parse(std::string_view text) {
  Plan plan;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view value = equals < word.size() ? word.substr(equals + 1) : "";
    if (const std::string wanted = set(plan, word.substr(0, equals), value); !wanted.empty()) {
      return Parsed<Plan>::failure("'" + std::string(word) + "': expected is " + wanted,
                                   "byte " + std::to_string(at));
    }
    at = end + 1;
  }
  return Parsed<Plan>::success(plan);
}

Plan drawn(Plan plan, int ranks) {
  std::mt19937_64 random(plan.link.seed);
  for (FaultSpec& strike : plan.strikes) {
    // Both are always drawn, so that what one strike says changes no other.
    const auto rank = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
    const auto at_ms = static_cast<std::int64_t>(random() % kLatestDrawnMs);
    strike.rank = strike.rank == FaultSpec::kAny ? rank : strike.rank;
    strike.at_ms = strike.at_ms < 0 ? at_ms : strike.at_ms;
  }
  return plan;
}

std::string to_text(const Plan& plan) {
  const Options& link = plan.link;
  std::string text;
  const auto add = [&text](bool there, std::string_view name, const std::string& value) {
    text += there ? std::string(name) + "=" + value + "," : "";
  };
  add(link.delay_us > 0, "delay", time_text(link.delay_us));
  add(link.jitter_us > 0, "jitter", time_text(link.jitter_us));
  add(link.loss > 0, "loss", number_text(link.loss * 100) + "%");
  add(link.bytes_per_s > 0, "rate", number_text(link.bytes_per_s / 125e3) + "Mbit");
  add(link.corrupt > 0, "corrupt", number_text(link.corrupt * 100) + "%");
  for (const FaultSpec& strike : plan.strikes) {
    add(true, kStrikes[static_cast<std::size_t>(strike.kind)], strike_text(strike));
  }
  return text + "seed=" + std::to_string(link.seed);
}

}  // namespace unisono::chaos
