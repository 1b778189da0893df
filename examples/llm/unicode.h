// Classes of characters, for cutting text.
#pragma once

#include <string>
#include <string_view>

namespace llm {

// `character`: one, in UTF-8; a byte that is no UTF-8 is U+FFFD.
char32_t code_of(std::string_view character);
std::string utf8(char32_t code);

bool is_space(char32_t code);
bool is_letter(char32_t code);
bool is_number(char32_t code);
bool is_punctuation(char32_t code);
bool is_unseen(char32_t code);  // a control, a format, for private use, or U+FFFD
bool is_ideograph(char32_t code);
// In lower case, without the marks that take no place of their own, as an accent; of Hangul the two
// or three letters of a syllable.
std::u32string plain_letters(char32_t code);

}  // namespace llm
