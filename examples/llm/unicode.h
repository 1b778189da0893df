// What characters are, as far as text is cut by it.
#pragma once

#include <clocale>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace llm {

// `character`: one, in UTF-8; a byte that is no UTF-8 is U+FFFD.
char32_t code_of(std::string_view character);
std::string utf8(char32_t code);

// Knows all scripts, without regard to the locale of the process.
class Characters {
 public:
  bool is_space(char32_t code) const;
  bool is_letter(char32_t code) const;
  char32_t lower(char32_t code) const;

 private:
  struct Free {
    void operator()(locale_t locale) const { ::freelocale(locale); }
  };
  std::unique_ptr<std::remove_pointer_t<locale_t>, Free> locale_{
      ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)};
};

bool is_punctuation(char32_t code);
bool is_mark(char32_t code);    // that takes no place of its own, as an accent
bool is_unseen(char32_t code);  // a control, a format, or U+FFFD
bool is_ideograph(char32_t code);
// A letter in lower case without its marks; of Hangul the two or three letters of a syllable.
std::u32string without_marks(char32_t code);

}  // namespace llm
