// The property of any bytes given to examples/llm as a GGUF file.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "gguf.h"
#include "llm_files.h"
#include "tokenizer.h"
#include "vocabulary.h"
#include "weights.h"

namespace unisono::fuzz {

// Reads the tokens of a text, and the text of each possible token.
inline void use_tokenizer(const llm::Tokenizer& tokenizer) {
  constexpr std::int32_t kFew = 300;
  for (const std::int32_t token : tokenizer.encode("It's 2024, <|im_end|> caf\xC3\xA9 \xFF!\n")) {
    static_cast<void>(tokenizer.decode(token));
  }
  for (std::int32_t token = -1; token < kFew; ++token) {
    static_cast<void>(tokenizer.decode(token));
  }
  static_cast<void>(tokenizer.chat("?"));
}

// Returns an empty text if the property holds, otherwise the failure.
inline std::string llm_gguf_property(std::string_view bytes) {
  const FileOfBytes file(bytes);
  const auto vocabulary = [&file] {
    const llm::Gguf model(file.path());
    use_tokenizer(llm::Tokenizer(llm::vocabulary_of(model)));
    return std::string();
  };
  const auto weights = [&file] {
    const llm::Gguf model(file.path());
    const auto made = llm::file_weights(model);
    const llm::Shape shape = made->shape();
    const std::size_t rows = std::min<std::size_t>(shape.vocabulary, 2);
    return made->read("token_embd.weight", {.first = 0, .count = rows},
                      {.first = 0, .count = shape.width})
                       .size() == rows * shape.width
               ? std::string()
               : std::string("a part of another size");
  };
  const std::string problem = refusal_property(vocabulary);
  return problem.empty() ? refusal_property(weights) : problem;
}

}  // namespace unisono::fuzz
