// Tables of a tokenizer, from a GGUF file or from Hugging Face's tokenizer.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gguf.h"

namespace llm {

struct Vocabulary {
  enum class Kind : std::uint8_t { ordinary, control, user_defined, byte };
  bool by_score = false;       // SentencePiece; false: byte-level BPE
  bool single_digits = false;  // each digit is a separate piece
  // Splits BERT's words into the longest tokens, or replaces a word by `unknown` if that fails.
  // Tokens after a word's first token begin with "##".
  bool is_word_piece = false;
  bool is_uncased = false;
  std::string unknown = {};
  std::vector<std::string> words = {};
  std::vector<Kind> kinds = {};           // per word
  std::vector<double> scores = {};        // per word, if by_score
  std::vector<std::string> merges = {};   // "left right", in order of priority
  std::vector<std::int32_t> begin = {};   // tokens before every text
  std::vector<std::int32_t> behind = {};  // tokens after every text
  std::vector<std::int32_t> ends = {};    // tokens that end an answer
};

// Errors: std::runtime_error for an unknown kind of tokenizer.
Vocabulary vocabulary_of(const Gguf& file);
Vocabulary vocabulary_of(const nlohmann::json& tokenizer);

// Checks that the model has at least as many tokens as its vocabulary. Errors: std::runtime_error.
void must_fit(const Vocabulary& vocabulary, std::size_t tokens, const std::string& model);

}  // namespace llm
