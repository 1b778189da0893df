// English texts of the command line and their Chinese translations, line by line. `{}` is a
// placeholder for one word, `{*}` for several words; both texts have the placeholders in the same
// order. The first row that matches is used. Commands are not translated.
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
