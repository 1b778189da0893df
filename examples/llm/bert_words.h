// The words into which BERT cuts a text (Devlin et al., 2019), before they are cut into pieces that
// are tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace llm {

// Returns the words between spaces; punctuation and ideographs are words of their own.
// `is_uncased`: in lower case and without accents.
std::vector<std::string> bert_words(std::string_view text, bool is_uncased);

}  // namespace llm
