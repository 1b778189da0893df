#include "cli/arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/bytes_text.h"
#include "cli/failure.h"

namespace unisono::cli {
namespace {

const Option& find_option(const Command& command, std::string_view name) {
  for (const Option& option : command.options) {
    if (option.name == name) {
      return option;
    }
  }
  for (const Option& option : common_options()) {
    if (option.name == name) {
      return option;
    }
  }
  throw std::logic_error(fmt::format("{} has no option {}", command.name, name));
}

template <typename T>
bool read_number(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end;
}

[[noreturn]] void fail_value(const Command& command, std::string_view option,
                             std::string_view value, const std::string& wanted) {
  throw UsageError(fmt::format("--{} cannot be '{}'", option, value), wanted,
                   fmt::format("unisono help {}", command.name));
}

// Returns the number of seconds in one `unit`; 0: unknown unit.
double seconds_of_unit(std::string_view unit) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  static constexpr Unit kUnits[] = {{"", 1},      {"s", 1},      {"ms", 1e-3}, {"us", 1e-6},
                                    {"ns", 1e-9}, {"min", 60.0}, {"m", 60.0},  {"h", 3600.0}};
  for (const Unit& candidate : kUnits) {
    if (candidate.name == unit) {
      return candidate.seconds;
    }
  }
  return 0;
}

}  // namespace

bool Arguments::has(std::string_view option) const {
  return values_.contains(find_option(*command_, option).name);
}

std::string Arguments::text(std::string_view option) const {
  const auto found = values_.find(option);
  if (found == values_.end() || found->second.empty()) {
    return std::string(find_option(*command_, option).fallback);
  }
  return found->second.back();
}

const std::vector<std::string>& Arguments::texts(std::string_view option) const {
  static const std::vector<std::string> kNone;
  const auto found = values_.find(find_option(*command_, option).name);
  return found == values_.end() ? kNone : found->second;
}

std::int64_t Arguments::number(std::string_view option, std::int64_t least,
                               std::int64_t most) const {
  const std::string value = text(option);
  std::int64_t result = 0;
  if (!read_number(value, result) || result < least || result > most) {
    fail_value(*command_, option, value, fmt::format("a number from {} to {}", least, most));
  }
  return result;
}

double Arguments::real(std::string_view option) const {
  const std::string value = text(option);
  double result = 0;
  if (!read_number(value, result) || !std::isfinite(result)) {
    fail_value(*command_, option, value, "a number, such as 1.5");
  }
  return result;
}

std::uint64_t Arguments::bytes(std::string_view option) const {
  return bytes_in(option, text(option));
}

std::uint64_t Arguments::bytes_in(std::string_view option, std::string_view value) const {
  const auto result = parse_bytes(value);
  if (!result) {
    fail_value(*command_, option, value, "a size, such as 8, 64K or 64MiB");
  }
  return *result;
}

double Arguments::seconds(std::string_view option) const {
  const std::string value = text(option);
  const std::size_t digits = std::string_view(value).find_first_not_of("0123456789.");
  const std::string_view unit =
      digits == std::string::npos ? std::string_view{} : std::string_view(value).substr(digits);
  double result = 0;
  if (!read_number(std::string_view(value).substr(0, digits), result) ||
      seconds_of_unit(unit) <= 0) {
    fail_value(*command_, option, value, "a time, such as 30s, 500ms or 2m");
  }
  return result * seconds_of_unit(unit);
}

std::vector<int> parse_ranks(std::string_view text, int ranks, std::string_view option) {
  std::vector<int> result;
  const auto fail = [&] {
    throw UsageError(fmt::format("--{} cannot be '{}'", option, text),
                     fmt::format("ranks from 0 to {}, such as 0,2-3", ranks - 1));
  };
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest = item.size() == rest.size() ? std::string_view{} : rest.substr(item.size() + 1);
    const std::size_t dash = item.find('-');
    int first = 0;
    int last = 0;
    if (!read_number(item.substr(0, dash), first)) {
      fail();
    }
    last = first;
    if (dash != std::string_view::npos && !read_number(item.substr(dash + 1), last)) {
      fail();
    }
    if (first < 0 || last < first || last >= ranks) {
      fail();
    }
    for (int rank = first; rank <= last; ++rank) {
      result.push_back(rank);
    }
  }
  if (result.empty()) {
    fail();
  }
  return result;
}

}  // namespace unisono::cli
