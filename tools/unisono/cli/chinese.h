// English texts of the command line and their Chinese, line by line. `{}` is a hole for one word,
// `{*}` for any words; the holes of both are in the same order. The first row that fits is taken.
// Commands to type stay as they are.
#pragma once

#include <span>
#include <string_view>

namespace unisono::cli {

struct Phrase {
  std::string_view english;
  std::string_view chinese;
};

std::span<const Phrase> chinese_phrases();

}  // namespace unisono::cli
