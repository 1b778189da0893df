#include "bench/moe_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <random>
#include <sstream>

#include "cli/failure.h"
#include "cli/text_file.h"

namespace unisono::cli {
namespace {

constexpr std::int32_t kMostExperts = 1 << 20;

[[noreturn]] void refuse(const std::string& path, std::size_t line, const std::string& why) {
  throw UsageError(
      fmt::format("{}:{}: {}", path, line, why),
      "write one token per line, its experts separated by spaces or commas, such as: 3 17 0");
}

std::vector<std::int32_t> read_line(const std::string& path, std::size_t number,
                                    const std::string& line) {
  constexpr const char* kBetween = " \t,\r";
  std::vector<std::int32_t> experts;
  std::size_t at = line.find_first_not_of(kBetween);
  while (at != std::string::npos) {
    const std::size_t end = std::min(line.find_first_of(kBetween, at), line.size());
    std::int32_t expert = 0;
    const auto [stop, error] = std::from_chars(line.data() + at, line.data() + end, expert);
    if (error != std::errc() || stop != line.data() + end || expert < -1 ||
        expert >= kMostExperts) {
      refuse(path, number, fmt::format("\"{}\" is not an expert", line.substr(at, end - at)));
    }
    experts.push_back(expert);
    at = line.find_first_not_of(kBetween, end);
  }
  return experts;
}

}  // namespace

std::vector<std::int32_t> draw_routing(const MoeCase& row, int rank) {
  if (row.routing == "file") {
    const std::size_t count = row.tokens * static_cast<std::size_t>(row.k);
    const auto first =
        row.chosen.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * count);
    return {first, first + static_cast<std::ptrdiff_t>(count)};
  }
  std::vector<double> odds(static_cast<std::size_t>(row.experts), 1.0);
  for (std::size_t expert = 0; row.routing == "zipf" && expert < odds.size(); ++expert) {
    odds[expert] = 1.0 / static_cast<double>(expert + 1);
  }
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::discrete_distribution<std::int32_t> one(odds.begin(), odds.end());
  std::vector<std::int32_t> chosen;
  for (std::size_t token = 0; token < row.tokens; ++token) {
    const auto first = static_cast<std::ptrdiff_t>(chosen.size());
    for (int slot = 0; slot < row.k;) {
      const std::int32_t expert = row.routing == "one" ? slot : one(random);
      if (std::find(chosen.begin() + first, chosen.end(), expert) == chosen.end()) {
        chosen.push_back(expert);
        ++slot;
      }
    }
  }
  return chosen;
}

MoeCase read_routing(const std::string& path, std::size_t hidden, int ranks) {
  std::istringstream file(read_text_file(path));
  MoeCase row{.hidden = hidden, .experts = ranks, .routing = "file"};
  std::string line;
  std::size_t tokens = 0;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    const std::vector<std::int32_t> experts = read_line(path, number, line);
    if (experts.empty()) {
      continue;
    }
    if (row.k != 0 && experts.size() != static_cast<std::size_t>(row.k)) {
      refuse(path, number,
             fmt::format("{} experts, but {} on the lines before", experts.size(), row.k));
    }
    row.k = static_cast<int>(experts.size());
    row.experts =
        std::max({row.experts, row.k, *std::max_element(experts.begin(), experts.end()) + 1});
    row.chosen.insert(row.chosen.end(), experts.begin(), experts.end());
    ++tokens;
  }
  row.tokens = tokens / static_cast<std::size_t>(ranks);
  row.left_out = tokens % static_cast<std::size_t>(ranks);
  if (row.tokens == 0) {
    throw UsageError(fmt::format("{} has {} tokens, but there are {} ranks", path, tokens, ranks),
                     "give at least one token per rank");
  }
  return row;
}

std::string left_out_text(const MoeCase& row, int ranks) {
  return row.left_out == 0
             ? ""
             : fmt::format(
                   "the last {} left out: {} ranks do not divide {}",
                   row.left_out == 1 ? "token is" : fmt::format("{} tokens are", row.left_out),
                   ranks, row.tokens * static_cast<std::size_t>(ranks) + row.left_out);
}

}  // namespace unisono::cli
