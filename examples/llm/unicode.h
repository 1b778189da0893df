// Character classes, for splitting text.
#pragma once

#include <string>
#include <string_view>

namespace llm {

// Returns the code of one UTF-8 character, or U+FFFD for an invalid byte.
char32_t code_of(std::string_view character);
std::string utf8(char32_t code);

bool is_space(char32_t code);
bool is_letter(char32_t code);
bool is_number(char32_t code);
bool is_punctuation(char32_t code);
bool is_unseen(char32_t code);  // control, format or private-use character, or U+FFFD
bool is_ideograph(char32_t code);
// Returns the lower-case letters of a character without non-spacing marks such as accents. A Hangul
// syllable gives two or three letters.
std::u32string plain_letters(char32_t code);

}  // namespace llm
