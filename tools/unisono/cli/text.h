// A sentence in English and in Chinese, written at the same place in the source.
#pragma once

#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <vector>

#include "base/rank_list.h"

namespace unisono::cli {

struct Text {
  std::string english = {};
  std::string chinese = {};
  bool empty() const { return english.empty(); }
  auto operator<=>(const Text&) const = default;
};

// Makes a text that is the same in all languages: a name, a command, a program's output.
inline Text plain(const std::string& words) {
  return {words, words};
}

namespace detail {
template <class Part>
using Said = std::conditional_t<std::is_same_v<Part, Text>, std::string, Part>;

inline const std::string& english(const Text& part) {
  return part.english;
}
inline const std::string& chinese(const Text& part) {
  return part.chinese;
}
template <class Part>
const Part& english(const Part& part) {
  return part;
}
template <class Part>
const Part& chinese(const Part& part) {
  return part;
}
}  // namespace detail

// say("{} is gone", "{} 已不存在", who): if a part is a Text, each sentence uses the part's text in
// its own language.
template <class... Parts>
Text say(fmt::format_string<detail::Said<Parts>...> in_english,
         fmt::format_string<detail::Said<Parts>...> in_chinese, const Parts&... parts) {
  return {fmt::vformat(in_english, fmt::make_format_args(detail::english(parts)...)),
          fmt::vformat(in_chinese, fmt::make_format_args(detail::chinese(parts)...))};
}

// "ranks 0-2,5".
inline Text say_ranks(const std::vector<int>& ranks) {
  return {ranks_text(ranks), "rank " + rank_list(ranks)};
}

}  // namespace unisono::cli
