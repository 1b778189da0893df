// Converts text to tokens and back with the tables in the model's file: byte-level BPE (Sennrich et
// al., 2016; Radford et al., 2019), merges by score (SentencePiece), or word pieces (Wu et al.,
// 2016).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vocabulary.h"

namespace llm {

class Tokenizer {
 public:
  explicit Tokenizer(Vocabulary vocabulary);

  // Converts text to tokens. Names of control tokens ("<|im_end|>") and user-defined tokens in the
  // text become these tokens; the longest name wins.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // Returns the bytes of a token, which may be part of a character. Control tokens have no bytes.
  std::string decode(std::int32_t token) const;
  // Formats a question in the model's chat format.
  std::string chat(const std::string& question) const;
  bool ends_answer(std::int32_t token) const;

 private:
  std::int32_t named_at(std::string_view text) const;
  void encode_plain(std::string_view text, std::vector<std::int32_t>& out) const;
  void encode_word(const std::string& word, std::vector<std::int32_t>& out) const;
  void merge(std::vector<std::string> pieces, std::vector<std::int32_t>& out) const;

  Vocabulary vocabulary_;
  std::unordered_map<std::string, std::int32_t> index_;
  std::set<std::size_t, std::greater<>> lengths_;       // lengths of token names to search for
  std::unordered_map<std::string, std::size_t> ranks_;  // rank of each merge "left right"
  std::vector<std::string> symbol_of_byte_;
  std::unordered_map<std::string, char> byte_of_symbol_;
};

}  // namespace llm
