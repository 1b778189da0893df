// Characters, and the pieces into which text is cut before tokens are merged.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace llm {

// The characters of UTF-8 text; a byte that is no UTF-8 is a character of its own.
std::vector<std::string> characters(std::string_view text);
// By byte, the printable character that stands for it in the words of byte-level BPE.
std::vector<std::string> byte_symbols();
// The pieces of GPT-2: contractions, and runs of letters, digits or other signs with a space before
// them. single_digits: each digit is a piece, and cuts the text first.
std::vector<std::string_view> cut_words(std::string_view text, bool single_digits);

}  // namespace llm
