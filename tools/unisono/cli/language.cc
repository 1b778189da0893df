#include "cli/language.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/env.h"
#include "cli/chinese.h"

namespace unisono::cli {
namespace {

constexpr std::string_view kWord = "{}";    // a hole for a word without spaces
constexpr std::string_view kWords = "{*}";  // a hole for any words of the line

// Matches `text` with `pattern`; each placeholder takes as little text as possible.
bool fit(std::string_view pattern, std::string_view text, std::vector<std::string_view>& found) {
  const std::size_t literal = pattern.find('{');
  if (literal == std::string_view::npos) {
    return pattern == text;
  }
  if (!text.starts_with(pattern.substr(0, literal))) {
    return false;
  }
  const bool one_word = pattern.substr(literal).starts_with(kWord);
  const std::string_view behind = pattern.substr(literal + (one_word ? kWord : kWords).size());
  text.remove_prefix(literal);
  for (std::size_t length = 1; length <= text.size(); ++length) {
    if (one_word && text[length - 1] == ' ') {
      return false;
    }
    found.push_back(text.substr(0, length));
    if (fit(behind, text.substr(length), found)) {
      return true;
    }
    found.pop_back();
  }
  return false;
}

std::string fill(std::string_view pattern, const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) {
    const std::size_t hole = pattern.find('{');
    text.append(pattern.substr(0, hole)).append(word);
    pattern.remove_prefix(pattern.find('}', hole) + 1);
  }
  return text.append(pattern);
}

std::optional<std::string> line_in_chinese(std::string_view line) {
  if (line.empty()) {
    return std::string{};
  }
  for (const Phrase& phrase : chinese_phrases()) {
    std::vector<std::string_view> words;
    if (fit(phrase.english, line, words)) {
      return fill(phrase.chinese, words);
    }
  }
  return std::nullopt;
}

}  // namespace

Language asked_language() {
  static constexpr std::array<std::string_view, 4> kVariables = {"UNISONO_LANG", "LC_ALL",
                                                                 "LC_MESSAGES", "LANG"};
  for (const std::string_view variable : kVariables) {
    const std::string value = read_env(variable).value_or("");
    if (value.empty()) {
      continue;
    }
    // The Chinese texts are UTF-8, which a terminal with another encoding cannot show. A locale
    // without a named encoding uses another one: zh_CN is GB2312, zh_TW is Big5.
    const std::size_t dot = value.find('.');
    const std::string encoding = dot != std::string::npos     ? value.substr(dot + 1, 5)
                                 : variable == "UNISONO_LANG" ? "UTF-8"
                                                              : "";
    const bool utf8 = encoding == "UTF-8" || encoding == "utf8" || encoding == "utf-8";
    return value.starts_with("zh") && utf8 ? Language::chinese : Language::english;
  }
  return Language::english;
}

std::optional<std::string> in_chinese(std::string_view english) {
  std::string text;
  for (;;) {
    const std::size_t end = english.find('\n');
    const auto line = line_in_chinese(english.substr(0, end));
    if (!line) {
      return std::nullopt;
    }
    text += *line;
    if (end == std::string_view::npos) {
      return text;
    }
    text += '\n';
    english.remove_prefix(end + 1);
  }
}

void localize_all(std::span<std::string> texts) {
  if (asked_language() == Language::english) {
    return;
  }
  std::vector<std::string> chinese;
  for (const std::string& text : texts) {
    auto translated = in_chinese(text);
    if (!translated) {
      return;
    }
    chinese.push_back(std::move(*translated));
  }
  std::move(chinese.begin(), chinese.end(), texts.begin());
}

std::string localized(std::string_view english) {
  std::array<std::string, 1> text = {std::string(english)};
  localize_all(text);
  return text.front();
}

std::string spoken(const Text& text) {
  return asked_language() == Language::chinese ? text.chinese : text.english;
}

}  // namespace unisono::cli
