// The property of any bytes given to examples/llm as a tokenizer.json.
#pragma once

#include <string>
#include <string_view>

#include "config.h"
#include "llm_gguf_property.h"

namespace unisono::fuzz {

// Returns an empty text if the property holds, otherwise the failure.
inline std::string llm_tokenizer_property(std::string_view bytes) {
  return refusal_property([bytes] {
    llm::Vocabulary vocabulary = llm::vocabulary_of(llm::parse_object(bytes));
    must_fit(vocabulary, 1U << 24, "the model");
    use_tokenizer(llm::Tokenizer(std::move(vocabulary)));
    return std::string();
  });
}

}  // namespace unisono::fuzz
