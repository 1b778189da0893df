#include "base/words.h"

#include <algorithm>

#include "base/private.h"

namespace unisono {
namespace {

// Returns the edit distance; swapping two adjacent characters counts as one edit.
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

// Returns the length of the first character in bytes, or 0 if it is not valid UTF-8 (RFC 3629).
std::size_t sign_bytes(std::string_view text) {
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  const std::size_t bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) {
    return 0;
  }
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) {
      return 0;
    }
  }
  // Overlong forms, surrogates, and code points beyond U+10FFFF.
  const bool is_none = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                       (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return is_none ? 0 : bytes;
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::string without_escapes(std::string_view text) {
  constexpr char kEscape = '\x1b';
  std::string kept;
  kept.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != kEscape) {
      kept += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '[') {
      // Skips parameters between the bracket and the final letter (ECMA-48).
      std::size_t end = i + 2;
      while (end < text.size() && text[end] >= ' ' && text[end] < '@') {
        ++end;
      }
      i = end < text.size() && text[end] >= '@' ? end : end - 1;
    }
  }
  return kept;
}

UNISONO_PRIVATE std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos
             ? std::string_view{}
             : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

UNISONO_PRIVATE std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMostShown = 40;
  std::string result = "\"";
  std::string_view left = text;
  while (!left.empty() && result.size() <= kMostShown) {
    const std::size_t bytes = sign_bytes(left);
    const bool is_shown =
        bytes > 0 && left.front() != 0x7f && static_cast<unsigned char>(left.front()) >= 0x20;
    result += is_shown ? left.substr(0, bytes) : "?";
    left.remove_prefix(std::max<std::size_t>(1, bytes));
  }
  return result + (left.empty() ? "\"" : "...\"");
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates) {
  // Up to one edit per three letters counts as a typing error.
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
