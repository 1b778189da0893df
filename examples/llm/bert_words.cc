#include "bert_words.h"

#include "pieces.h"
#include "unicode.h"

namespace llm {
std::vector<std::string> bert_words(std::string_view text, bool is_uncased) {
  std::vector<std::string> words;
  bool is_open = false;  // the last word may continue
  for (const std::string& character : characters(text)) {
    const char32_t given = code_of(character);
    const bool ends_line = given == '\t' || given == '\n' || given == '\r';
    if (is_unseen(given) && !ends_line) {  // even if it is a space
      continue;
    }
    if (is_space(given)) {
      is_open = false;
      continue;
    }
    for (const char32_t code : is_uncased ? plain_letters(given) : std::u32string{given}) {
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
