#include "base/words.h"

#include <algorithm>
#include <vector>

namespace unisono {
namespace {

// Edit distance in which swapping two neighbours counts once.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * columns);
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      std::size_t& cell = cost[i * columns + j];
      if (i == 0 || j == 0) {
        cell = i + j;
        continue;
      }
      const std::size_t changed = a[i - 1] == b[j - 1] ? 0 : 1;
      cell = std::min({cost[(i - 1) * columns + j] + 1, cost[i * columns + j - 1] + 1,
                       cost[(i - 1) * columns + j - 1] + changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cell = std::min(cell, cost[(i - 2) * columns + j - 2] + 1);
      }
    }
  }
  return cost.back();
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos
             ? std::string_view{}
             : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMostShown = 40;
  std::string result = "\"";
  for (const char c : text.substr(0, kMostShown)) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return result + (text.size() > kMostShown ? "...\"" : "\"");
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates) {
  // One slip in three letters is a typing error; more is another word.
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string_view nearest;
  for (const std::string_view candidate : candidates) {
    if (const std::size_t distance = edit_distance(word, candidate); distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view near = nearest_word(word, candidates);
  return near.empty() ? std::string() : ", did you mean " + in_quotes(near) + "?";
}

}  // namespace unisono
