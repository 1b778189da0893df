// Splits text into BERT's words (Devlin et al., 2019), which are then split into tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace llm {

// Splits at spaces; each punctuation mark and ideograph is a separate word. `is_uncased`: converts
// to lower case and removes accents.
std::vector<std::string> bert_words(std::string_view text, bool is_uncased);

}  // namespace llm
