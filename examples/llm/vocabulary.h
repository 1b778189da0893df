// The tables of a tokenizer, from a GGUF file or from the tokenizer.json of Hugging Face.
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
  bool by_score = false;       // SentencePiece; else byte-level BPE
  bool single_digits = false;  // each digit is a piece of its own
  // BERT's words, each cut into the longest tokens; `unknown` if that fails. Tokens after the first
  // one begin with "##".
  bool is_word_piece = false;
  bool is_uncased = false;
  std::string unknown = {};
  std::vector<std::string> words = {};
  std::vector<Kind> kinds = {};           // of each word
  std::vector<double> scores = {};        // of each word, by score
  std::vector<std::string> merges = {};   // "left right", the first one first
  std::vector<std::int32_t> begin = {};   // tokens before every text
  std::vector<std::int32_t> behind = {};  // tokens behind every text
  std::vector<std::int32_t> ends = {};    // tokens that end an answer
};

// Errors: std::runtime_error, for a kind of tokenizer that is not known here.
Vocabulary vocabulary_of(const Gguf& file);
Vocabulary vocabulary_of(const nlohmann::json& tokenizer);

// A model may have more tokens than its vocabulary, not less. Errors: std::runtime_error.
void must_fit(const Vocabulary& vocabulary, std::size_t tokens, const std::string& model);

}  // namespace llm
