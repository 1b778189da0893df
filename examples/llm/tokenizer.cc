#include "tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <stdexcept>

#include "pieces.h"

namespace llm {
namespace {

constexpr double kControl = 3;  // kinds of tokens, as the file numbers them
constexpr double kUserDefined = 4;
constexpr double kByte = 6;
const std::string kSpace = "\xE2\x96\x81";  // SentencePiece writes U+2581 for a space

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  while (!text.empty()) {
    const bool here = text.starts_with(from);
    result += here ? to : text.substr(0, 1);
    text.remove_prefix(here ? from.size() : 1);
  }
  return result;
}

}  // namespace

Tokenizer::Tokenizer(const Gguf& file)
    : words_(file.meta<std::vector<std::string>>("tokenizer.ggml.tokens")),
      kinds_(file.meta<std::vector<double>>("tokenizer.ggml.token_type")) {
  const auto& model = file.meta<std::string>("tokenizer.ggml.model");
  by_score_ = model == "llama";
  if (model != "llama" && model != "gpt2") {
    throw std::runtime_error("no tokenizer for '" + model + "'; there are gpt2 and llama");
  }
  kinds_.resize(words_.size());
  for (std::size_t i = 0; i < words_.size(); ++i) {
    index_.emplace(words_[i], static_cast<std::int32_t>(i));
  }
  if (by_score_) {
    scores_ = file.meta<std::vector<double>>("tokenizer.ggml.scores");
    scores_.resize(words_.size());
  } else {
    const auto& pre = file.meta<std::string>("tokenizer.ggml.pre");
    if (pre != "smollm" && pre != "gpt-2" && pre != "default") {
      throw std::runtime_error("no rule to cut text as '" + pre +
                               "' does; there are smollm and gpt-2");
    }
    single_digits_ = pre == "smollm";
    const auto& merges = file.meta<std::vector<std::string>>("tokenizer.ggml.merges");
    for (std::size_t i = 0; i < merges.size(); ++i) {
      ranks_.emplace(merges[i], i);
    }
    symbol_of_byte_ = byte_symbols();
    for (std::size_t byte = 0; byte < symbol_of_byte_.size(); ++byte) {
      byte_of_symbol_.emplace(symbol_of_byte_[byte], static_cast<char>(byte));
    }
  }
  const auto id = [&](const char* key, std::vector<std::int32_t>& list) {
    if (file.has_meta(key)) {
      list.push_back(static_cast<std::int32_t>(file.meta<std::int64_t>(key)));
    }
  };
  const char* adds = "tokenizer.ggml.add_bos_token";
  if (file.has_meta(adds) ? file.meta<bool>(adds) : by_score_) {
    id("tokenizer.ggml.bos_token_id", begin_);
  }
  id("tokenizer.ggml.eos_token_id", ends_);
  id("tokenizer.ggml.eot_token_id", ends_);
  for (const char* name : {"<|im_end|>", "<end_of_turn>"}) {
    if (const auto found = index_.find(name); found != index_.end()) {
      ends_.push_back(found->second);
    }
  }
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> out = begin_;
  std::size_t plain = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t close = text[at] == '<' ? text.find('>', at) : std::string_view::npos;
    const auto found = close == std::string_view::npos
                           ? index_.end()
                           : index_.find(std::string(text.substr(at, close + 1 - at)));
    if (found == index_.end() ||
        (kinds_[static_cast<std::size_t>(found->second)] != kControl &&
         kinds_[static_cast<std::size_t>(found->second)] != kUserDefined)) {
      ++at;
      continue;
    }
    encode_plain(text.substr(plain, at - plain), out);
    out.push_back(found->second);
    at = close + 1;
    plain = at;
  }
  encode_plain(text.substr(plain), out);
  return out;
}

void Tokenizer::encode_plain(std::string_view text, std::vector<std::int32_t>& out) const {
  if (text.empty()) {
    return;
  }
  if (by_score_) {
    merge(characters(replaced(text, " ", kSpace)), out);
    return;
  }
  for (const std::string_view piece : cut_words(text, single_digits_)) {
    std::vector<std::string> symbols;
    for (const char byte : piece) {
      symbols.push_back(symbol_of_byte_[static_cast<unsigned char>(byte)]);
    }
    merge(std::move(symbols), out);
  }
}

// Joins the best pair of neighbours again and again: that of the earliest merge, or the token of
// the highest score.
void Tokenizer::merge(std::vector<std::string> pieces, std::vector<std::int32_t>& out) const {
  const auto worth = [this](const std::string& left, const std::string& right) {
    if (by_score_) {
      const auto found = index_.find(left + right);
      return found == index_.end() ? -std::numeric_limits<double>::infinity()
                                   : scores_[static_cast<std::size_t>(found->second)];
    }
    const auto found = ranks_.find(left + " " + right);
    return found == ranks_.end() ? -std::numeric_limits<double>::infinity()
                                 : -static_cast<double>(found->second);
  };
  while (true) {
    double best = -std::numeric_limits<double>::infinity();
    std::size_t where = 0;
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      const double value = worth(pieces[i], pieces[i + 1]);
      if (value > best) {
        best = value;
        where = i;
      }
    }
    if (best == -std::numeric_limits<double>::infinity()) {
      break;
    }
    pieces[where] += pieces[where + 1];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
  for (const std::string& piece : pieces) {
    if (const auto found = index_.find(piece); found != index_.end()) {
      out.push_back(found->second);
      continue;
    }
    for (const char byte : piece) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned char>(byte));
      if (const auto found = index_.find(name); found != index_.end()) {
        out.push_back(found->second);
      }
    }
  }
}

std::string Tokenizer::decode(std::int32_t token) const {
  const auto i = static_cast<std::size_t>(token);
  if (token < 0 || i >= words_.size() || kinds_[i] == kControl) {
    return {};
  }
  if (by_score_) {
    if (kinds_[i] == kByte && words_[i].size() == 6) {
      return std::string(1, static_cast<char>(std::stoi(words_[i].substr(3, 2), nullptr, 16)));
    }
    return replaced(words_[i], kSpace, " ");
  }
  std::string bytes;
  for (const std::string& symbol : characters(words_[i])) {
    const auto found = byte_of_symbol_.find(symbol);
    bytes += found == byte_of_symbol_.end() ? symbol : std::string(1, found->second);
  }
  return bytes;
}

std::string Tokenizer::chat(const std::string& question) const {
  if (index_.contains("<|im_start|>")) {
    return "<|im_start|>user\n" + question + "<|im_end|>\n<|im_start|>assistant\n";
  }
  if (index_.contains("<start_of_turn>")) {
    return "<start_of_turn>user\n" + question + "<end_of_turn>\n<start_of_turn>model\n";
  }
  return question;
}

bool Tokenizer::ends_answer(std::int32_t token) const {
  return std::ranges::find(ends_, token) != ends_.end();
}

}  // namespace llm
