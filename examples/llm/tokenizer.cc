#include "tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "bert_words.h"
#include "pieces.h"

namespace llm {
namespace {

using Kind = Vocabulary::Kind;

const std::string kSpace = "\xE2\x96\x81";  // SentencePiece writes U+2581 for a space

constexpr std::size_t kMostCharacters = 100;  // longer words are unknown

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  while (!text.empty()) {
    const bool here = text.starts_with(from);
    result += here ? to : text.substr(0, 1);
    text.remove_prefix(here ? from.size() : 1);
  }
  return result;
}

bool is_named(Kind kind) {
  return kind == Kind::control || kind == Kind::user_defined;
}

}  // namespace

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)), symbol_of_byte_(byte_symbols()) {
  for (std::size_t i = 0; i < vocabulary_.words.size(); ++i) {
    index_.emplace(vocabulary_.words[i], static_cast<std::int32_t>(i));
    if (is_named(vocabulary_.kinds[i]) && !vocabulary_.words[i].empty()) {
      lengths_.insert(vocabulary_.words[i].size());
    }
  }
  for (std::size_t i = 0; i < vocabulary_.merges.size(); ++i) {
    ranks_.emplace(vocabulary_.merges[i], i);
  }
  for (std::size_t byte = 0; byte < symbol_of_byte_.size(); ++byte) {
    byte_of_symbol_.emplace(symbol_of_byte_[byte], static_cast<char>(byte));
  }
  for (const char* name : {"<|im_end|>", "<end_of_turn>"}) {
    if (const auto found = index_.find(name); found != index_.end()) {
      vocabulary_.ends.push_back(found->second);
    }
  }
}

// Returns the longest control or user-defined token at the start of the text, or -1.
std::int32_t Tokenizer::named_at(std::string_view text) const {
  for (const std::size_t length : lengths_) {
    const auto found =
        length > text.size() ? index_.end() : index_.find(std::string(text.substr(0, length)));
    if (found != index_.end() &&
        is_named(vocabulary_.kinds[static_cast<std::size_t>(found->second)])) {
      return found->second;
    }
  }
  return -1;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> out = vocabulary_.begin;
  std::size_t plain = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::int32_t named = named_at(text.substr(at));
    if (named < 0) {
      ++at;
      continue;
    }
    encode_plain(text.substr(plain, at - plain), out);
    out.push_back(named);
    at += vocabulary_.words[static_cast<std::size_t>(named)].size();
    plain = at;
  }
  encode_plain(text.substr(plain), out);
  out.insert(out.end(), vocabulary_.behind.begin(), vocabulary_.behind.end());
  return out;
}

void Tokenizer::encode_plain(std::string_view text, std::vector<std::int32_t>& out) const {
  if (text.empty()) {
    return;
  }
  if (vocabulary_.by_score) {
    merge(characters(replaced(text, " ", kSpace)), out);
    return;
  }
  if (vocabulary_.is_word_piece) {
    for (const std::string& word : bert_words(text, vocabulary_.is_uncased)) {
      encode_word(word, out);
    }
    return;
  }
  for (const std::string_view piece : cut_words(text, vocabulary_.single_digits)) {
    std::vector<std::string> symbols;
    for (const char byte : piece) {
      symbols.push_back(symbol_of_byte_[static_cast<unsigned char>(byte)]);
    }
    merge(std::move(symbols), out);
  }
}

// Repeatedly takes the longest token at the start of the rest of the word.
void Tokenizer::encode_word(const std::string& word, std::vector<std::int32_t>& out) const {
  std::vector<std::string> rest = characters(word);
  std::vector<std::int32_t> found;
  bool is_known = rest.size() <= kMostCharacters;
  for (std::size_t first = 0; is_known && first < rest.size();) {
    std::string piece = first == 0 ? "" : "##";
    std::size_t end = first;  // end of the longest token
    std::int32_t token = 0;
    for (std::size_t i = first; i < rest.size(); ++i) {
      piece += rest[i];
      if (const auto known = index_.find(piece); known != index_.end()) {
        end = i + 1;
        token = known->second;
      }
    }
    found.push_back(token);
    is_known = end > first;
    first = end;
  }
  if (!is_known) {
    found = {index_.at(vocabulary_.unknown)};
  }
  out.insert(out.end(), found.begin(), found.end());
}

// Repeatedly joins the best pair of neighbours: the pair of the earliest merge, or of the token
// with the highest score.
void Tokenizer::merge(std::vector<std::string> pieces, std::vector<std::int32_t>& out) const {
  const auto worth = [this](const std::string& left, const std::string& right) {
    if (vocabulary_.by_score) {
      const auto found = index_.find(left + right);
      return found == index_.end() ? -std::numeric_limits<double>::infinity()
                                   : vocabulary_.scores[static_cast<std::size_t>(found->second)];
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
  if (token < 0 || i >= vocabulary_.words.size() || vocabulary_.kinds[i] == Kind::control) {
    return {};
  }
  if (vocabulary_.by_score) {
    const std::string& word = vocabulary_.words[i];
    if (unsigned byte = 0; vocabulary_.kinds[i] == Kind::byte && word.size() == 6 &&
                           std::sscanf(word.c_str(), "<0x%2x>", &byte) == 1) {
      return std::string(1, static_cast<char>(byte));
    }
    return replaced(vocabulary_.words[i], kSpace, " ");
  }
  std::string bytes;
  for (const std::string& symbol : characters(vocabulary_.words[i])) {
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
  return std::ranges::find(vocabulary_.ends, token) != vocabulary_.ends.end();
}

}  // namespace llm
