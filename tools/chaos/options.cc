#include "chaos/options.h"

#include <charconv>
#include <optional>
#include <string>

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

// A number with one of the units behind it.
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

// Empty: it is set. Else what it should look like.
std::string set(Options& options, std::string_view name, std::string_view text) {
  const auto take = [](auto& to, std::optional<double> value, double scale, const char* wanted) {
    if (!value) {
      return std::string(wanted);
    }
    to = static_cast<std::remove_reference_t<decltype(to)>>(*value / scale);
    return std::string();
  };
  if (name == "delay") {
    return take(options.delay_us, number(text, kTimes), 1, "a time such as 5ms");
  }
  if (name == "jitter") {
    return take(options.jitter_us, number(text, kTimes), 1, "a time such as 1ms");
  }
  if (name == "kill") {
    return take(options.kill_ms, number(text, kTimes), 1000, "a time such as 30s");
  }
  if (name == "rate") {
    return take(options.bytes_per_s, number(text, kRates), 1, "a rate such as 100Mbit");
  }
  if (name == "loss") {
    const auto part = number(text, kParts);
    return take(options.loss, part && *part < 1 ? part : std::nullopt, 1,
                "a part below 1 such as 1%");
  }
  if (name == "seed") {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), options.seed);
    return error == std::errc{} && end == text.data() + text.size() ? "" : "a whole number";
  }
  return "one of delay, jitter, loss, rate, kill and seed";
}

}  // namespace

Parsed<Options> parse(std::string_view text) {
  Options options;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view value = equals < word.size() ? word.substr(equals + 1) : "";
    if (const std::string wanted = set(options, word.substr(0, equals), value); !wanted.empty()) {
      return Parsed<Options>::failure("'" + std::string(word) + "': wanted is " + wanted,
                                      "byte " + std::to_string(at));
    }
    at = end + 1;
  }
  return Parsed<Options>::success(options);
}

}  // namespace unisono::chaos
