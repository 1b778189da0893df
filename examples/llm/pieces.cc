#include "pieces.h"

#include "unicode.h"

namespace llm {
namespace {

std::size_t length_at(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length > text.size()) {
    return 1;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      return 1;
    }
  }
  return length;
}

enum class Kind : unsigned char { letter, digit, space, other };

Kind kind_of(std::string_view character) {
  const char32_t code = code_of(character);
  return is_number(code)   ? Kind::digit
         : is_space(code)  ? Kind::space
         : is_letter(code) ? Kind::letter
                           : Kind::other;
}

std::size_t contraction(std::string_view text) {
  for (const std::string_view end : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(end)) {
      return end.size();
    }
  }
  return 0;
}

// A character, and the position of the next character.
struct Character {
  Kind kind;
  std::size_t end;
};

std::size_t piece_length(std::string_view text) {
  if (const std::size_t length = contraction(text); length != 0) {
    return length;
  }
  const auto at = [&](std::size_t from) -> Character {
    const std::size_t length = length_at(text.substr(from));
    return {.kind = kind_of(text.substr(from, length)), .end = from + length};
  };
  const auto run_end = [&](std::size_t from) {
    const Kind kind = at(from).kind;
    std::size_t last = from;  // where the last character of the run begins
    std::size_t end = from;
    while (end < text.size() && at(end).kind == kind) {
      last = end;
      end = at(end).end;
    }
    // The last space of a run of spaces belongs to the following word.
    return kind == Kind::space && end < text.size() && last > from ? last : end;
  };
  const bool leads = text[0] == ' ' && text.size() > 1 && at(1).kind != Kind::space;
  return run_end(leads ? 1 : 0);
}

}  // namespace

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const std::size_t length = length_at(text);
    result.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return result;
}

std::vector<std::string> byte_symbols() {
  std::vector<std::string> symbols;
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool prints =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    symbols.push_back(utf8(prints ? byte : next++));
  }
  return symbols;
}

std::vector<std::string_view> cut_words(std::string_view text, bool single_digits) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    std::size_t part = 0;  // end of the text before the next digit, which is split off first
    while (single_digits && part < text.size() && (text[part] < '0' || text[part] > '9')) {
      ++part;
    }
    std::string_view rest = text.substr(0, single_digits ? part : text.size());
    text.remove_prefix(rest.size());
    while (!rest.empty()) {
      pieces.push_back(rest.substr(0, piece_length(rest)));
      rest.remove_prefix(pieces.back().size());
    }
    if (!text.empty()) {
      pieces.push_back(text.substr(0, 1));
      text.remove_prefix(1);
    }
  }
  return pieces;
}

}  // namespace llm
