#include "unicode.h"

#include <algorithm>
#include <cwctype>
#include <iterator>

#include "unicode_tables.h"

namespace llm {
namespace {

constexpr char32_t kNoCharacter = 0xFFFD;

template <std::size_t N>
bool is_in(const CodeRange (&ranges)[N], char32_t code) {
  const auto* const found = std::ranges::lower_bound(ranges, code, {}, &CodeRange::last);
  return found != std::end(ranges) && found->first <= code;
}

}  // namespace

char32_t code_of(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) {
    return first < 0x80 ? first : kNoCharacter;
  }
  char32_t code = first & (0xFFU >> (character.size() + 1));
  for (const char byte : character.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return code;
}

std::string utf8(char32_t code) {
  const auto tail = [code](unsigned shift) {
    return static_cast<char>(0x80 | (code >> shift & 0x3F));
  };
  if (code < 0x80) {
    return std::string(1, static_cast<char>(code));
  }
  if (code < 0x800) {
    return {static_cast<char>(0xC0 | code >> 6), tail(0)};
  }
  if (code < 0x10000) {
    return {static_cast<char>(0xE0 | code >> 12), tail(6), tail(0)};
  }
  return {static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0)};
}

bool Characters::is_space(char32_t code) const {
  // The C library leaves the first four out.
  return code == 0x85 || code == 0xA0 || code == 0x2007 || code == 0x202F ||
         ::iswspace_l(static_cast<std::wint_t>(code), locale_.get()) != 0;
}

bool Characters::is_letter(char32_t code) const {
  return ::iswalpha_l(static_cast<std::wint_t>(code), locale_.get()) != 0;
}

char32_t Characters::lower(char32_t code) const {
  return static_cast<char32_t>(::towlower_l(static_cast<std::wint_t>(code), locale_.get()));
}

bool is_punctuation(char32_t code) {
  const bool is_sign = code > 0x20 && code < 0x7F && !(code >= '0' && code <= '9') &&
                       !(code >= 'A' && code <= 'Z') && !(code >= 'a' && code <= 'z');
  return is_sign || is_in(kPunctuation, code);
}

bool is_mark(char32_t code) {
  return is_in(kMarks, code);
}

bool is_unseen(char32_t code) {
  return code == kNoCharacter || is_in(kUnseen, code);
}

bool is_ideograph(char32_t code) {
  static constexpr CodeRange kIdeographs[] = {
      {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
      {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return is_in(kIdeographs, code);
}

std::u32string without_marks(char32_t code) {
  if (code >= 0xAC00 && code <= 0xD7A3) {  // the composition of Hangul, Unicode 3.12
    const char32_t syllable = code - 0xAC00;
    std::u32string letters = {0x1100 + syllable / 588, 0x1161 + syllable % 588 / 28};
    if (syllable % 28 != 0) {
      letters += 0x11A7 + syllable % 28;
    }
    return letters;
  }
  const auto* const found = std::ranges::lower_bound(kBare, code, {}, &Bare::letter);
  const bool is_found = found != std::end(kBare) && found->letter == code;
  return {is_found ? found->without_marks : code};
}

}  // namespace llm
