#include "unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace llm {
namespace {

constexpr char32_t kNoCharacter = 0xFFFD;

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

// Unicode categories are numbered in the order of their first letters.
bool is_between(char32_t code, utf8proc_category_t first, utf8proc_category_t last) {
  return category(code) >= first && category(code) <= last;
}

}  // namespace

char32_t code_of(std::string_view character) {
  utf8proc_int32_t code = -1;
  const auto size = static_cast<utf8proc_ssize_t>(character.size());
  const utf8proc_ssize_t read =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(character.data()), size, &code);
  return read == size ? static_cast<char32_t>(code) : kNoCharacter;
}

std::string utf8(char32_t code) {
  std::array<utf8proc_uint8_t, 4> bytes = {};
  const utf8proc_ssize_t size =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  return {bytes.begin(), bytes.begin() + size};
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x85 ||
         is_between(code, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

bool is_letter(char32_t code) {
  return is_between(code, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}

bool is_number(char32_t code) {
  return is_between(code, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool is_punctuation(char32_t code) {
  const bool is_sign = code > 0x20 && code < 0x7F && !is_letter(code) && !is_number(code);
  return is_sign || is_between(code, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool is_unseen(char32_t code) {
  const utf8proc_category_t kind = category(code);
  return code == kNoCharacter || kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_CO;
}

bool is_ideograph(char32_t code) {
  struct Block {
    char32_t first, last;
  };
  static constexpr Block kIdeographs[] = {
      {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
      {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return std::ranges::any_of(
      kIdeographs, [&](const Block& one) { return code >= one.first && code <= one.last; });
}

std::u32string plain_letters(char32_t code) {
  // No character has more parts in its canonical decomposition.
  std::array<utf8proc_int32_t, 8> parts = {};
  int before = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(code), parts.data(),
      static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_DECOMPOSE, &before);
  std::u32string letters;
  for (utf8proc_ssize_t i = 0; i < std::min<utf8proc_ssize_t>(count, parts.size()); ++i) {
    if (category(static_cast<char32_t>(parts[static_cast<std::size_t>(i)])) !=
        UTF8PROC_CATEGORY_MN) {
      letters += static_cast<char32_t>(utf8proc_tolower(parts[static_cast<std::size_t>(i)]));
    }
  }
  return letters;
}

}  // namespace llm
