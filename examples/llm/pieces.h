// Characters, and the pieces into which text is split before tokens are merged.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace llm {

// Returns the characters of UTF-8 text. Each invalid byte is a separate character.
std::vector<std::string> characters(std::string_view text);
// Returns the printable character that represents each byte in the words of byte-level BPE.
std::vector<std::string> byte_symbols();
// Splits text into GPT-2's pieces: contractions, and runs of letters, digits or other characters
// with a preceding space. single_digits: first splits the text at each digit, which is a separate
// piece.
std::vector<std::string_view> cut_words(std::string_view text, bool single_digits);

}  // namespace llm
