#include "bert_words.h"

#include "pieces.h"
#include "unicode.h"

namespace llm {
namespace {

// A character as it stands in words: none, where it is left out.
std::u32string folded(const Characters& all, char32_t code, bool is_uncased) {
  if (!is_uncased) {
    return {code};
  }
  std::u32string kept;
  for (const char32_t one : without_marks(all.lower(code))) {
    if (!is_mark(one)) {
      kept += one;
    }
  }
  return kept;
}

}  // namespace

std::vector<std::string> bert_words(std::string_view text, bool is_uncased) {
  const Characters all;
  std::vector<std::string> words;
  bool is_open = false;  // the last word may go on
  for (const std::string& character : characters(text)) {
    const char32_t given = code_of(character);
    const bool ends_line = given == '\t' || given == '\n' || given == '\r';
    if (is_unseen(given) && !ends_line) {  // also where it is a space
      continue;
    }
    if (all.is_space(given)) {
      is_open = false;
      continue;
    }
    for (const char32_t code : folded(all, given, is_uncased)) {
      const bool is_alone = is_punctuation(code) || is_ideograph(code);
      if (is_alone || !is_open) {
        words.emplace_back();
      }
      words.back() += utf8(code);
      is_open = !is_alone;
    }
  }
  return words;
}

}  // namespace llm
