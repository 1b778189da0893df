#include "vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace llm {
namespace {

using nlohmann::json;

constexpr std::size_t kMostTokens = 1U << 24;
constexpr int kDeepest = 16;  // nesting of parts

// Converts GGUF's number of a kind.
Vocabulary::Kind kind_of(double number) {
  using Kind = Vocabulary::Kind;
  return number == 3   ? Kind::control
         : number == 4 ? Kind::user_defined
         : number == 6 ? Kind::byte
                       : Kind::ordinary;
}

std::string text_at(const json& from, const char* key) {
  return from.is_object() && from.contains(key) && from[key].is_string()
             ? from[key].get<std::string>()
             : std::string();
}

bool flag_at(const json& from, const char* key, bool otherwise) {
  return from.contains(key) && from[key].is_boolean() ? from[key].get<bool>() : otherwise;
}

[[noreturn]] void refuse(const std::string& what) {
  throw std::runtime_error("no tokenizer " + what);
}

// Adds a word. `most`: exclusive limit of word numbers, given the number of words.
void put_word(Vocabulary& vocabulary, const std::string& word, const json& number,
              Vocabulary::Kind kind, std::size_t most) {
  if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= most) {
    refuse("whose token '" + word + "' has no number, or one beyond the vocabulary");
  }
  const auto token = number.get<std::size_t>();
  if (token >= vocabulary.words.size()) {
    vocabulary.words.resize(token + 1);
    vocabulary.kinds.resize(token + 1);
  }
  if (!vocabulary.words[token].empty() && vocabulary.words[token] != word) {
    refuse("in which '" + word + "' and '" + vocabulary.words[token] + "' are both token " +
           std::to_string(token));
  }
  vocabulary.words[token] = word;
  vocabulary.kinds[token] = kind;
}

// Appends the parts of nested Sequences under `key`, in order.
void flatten(const json& part, const char* key, int depth, std::vector<const json*>& parts) {
  if (depth > kDeepest) {
    refuse("with '" + std::string(key) + "' nested deeper than " + std::to_string(kDeepest));
  }
  if (text_at(part, "type") != "Sequence" || !part.contains(key) || !part[key].is_array()) {
    parts.push_back(&part);
    return;
  }
  for (const json& one : part[key]) {
    flatten(one, key, depth + 1, parts);
  }
}

// Reads how to split text: optionally at digits, then as in GPT-2.
void read_cuts(Vocabulary& vocabulary, const json& all) {
  std::vector<const json*> cuts;
  flatten(all, "pretokenizers", 0, cuts);
  bool is_cut = false;
  for (const json* cut : cuts) {
    const std::string type = text_at(*cut, "type");
    if (type == "Digits" && flag_at(*cut, "individual_digits", false) && !is_cut) {
      vocabulary.single_digits = true;
    } else if (type == "ByteLevel" && !flag_at(*cut, "add_prefix_space", true) &&
               flag_at(*cut, "use_regex", true) && !is_cut) {
      is_cut = true;
    } else {
      refuse("that cuts text by '" + type + "'; supported are single digits and the rule of GPT-2");
    }
  }
  if (!is_cut) {
    refuse("that does not cut text by 'ByteLevel' after single digits");
  }
}

// Reads the tokens that a template puts around a text.
void read_template(Vocabulary& vocabulary, const json& single) {
  std::vector<std::int32_t>* side = &vocabulary.begin;
  for (const json& part : single) {
    if (!part.is_object() || !part.contains("SpecialToken")) {
      side = &vocabulary.behind;
      continue;
    }
    const std::string name = text_at(part["SpecialToken"], "id");
    const auto word = std::ranges::find(vocabulary.words, name);
    if (name.empty() || word == vocabulary.words.end()) {
      refuse("whose template has '" + name + "', which is not a token");
    }
    if (side == &vocabulary.behind && !vocabulary.is_word_piece) {
      refuse("whose template puts '" + name + "' after a text");
    }
    side->push_back(static_cast<std::int32_t>(word - vocabulary.words.begin()));
  }
}

// Reads the post-processors. ByteLevel only moves offsets.
void read_processors(Vocabulary& vocabulary, const json& all) {
  std::vector<const json*> processors;
  flatten(all, "processors", 0, processors);
  bool has_template = false;
  for (const json* one : processors) {
    const std::string type = text_at(*one, "type");
    if (type == "TemplateProcessing" && one->contains("single") && !has_template) {
      has_template = true;
      read_template(vocabulary, (*one)["single"]);
    } else if (type != "ByteLevel") {
      refuse("with the post-processor '" + type + "'; only one template is supported");
    }
  }
}

// Reads BERT's word pieces, cased or uncased.
void read_word_pieces(Vocabulary& vocabulary, const json& tokenizer) {
  const json none = json::object();
  const auto part = [&](const char* key) { return tokenizer.value(key, none); };
  const json normalizer = part("normalizer");
  if (text_at(normalizer, "type") != "BertNormalizer" ||
      text_at(part("pre_tokenizer"), "type") != "BertPreTokenizer") {
    refuse("of word pieces without BERT's normalizer and pre-tokenizer");
  }
  vocabulary.is_word_piece = true;
  vocabulary.is_uncased = flag_at(normalizer, "lowercase", true);
  for (const char* key : {"clean_text", "handle_chinese_chars"}) {
    if (!flag_at(normalizer, key, true)) {
      refuse("whose normalizer is without '" + std::string(key) + "'");
    }
  }
  if (flag_at(normalizer, "strip_accents", vocabulary.is_uncased) != vocabulary.is_uncased) {
    refuse("that does not fold both case and accents");
  }
  const json& model = tokenizer["model"];
  if (text_at(model, "continuing_subword_prefix") != "##") {
    refuse("whose pieces inside of words do not begin with '##'");
  }
  if (const char* key = "max_input_chars_per_word"; model.contains(key) && model[key] != 100) {
    refuse("in which '" + std::string(key) + "' is not 100");
  }
  vocabulary.unknown = text_at(model, "unk_token");
  if (!model.contains("vocab") || !model["vocab"].contains(vocabulary.unknown)) {
    refuse("without a token for unknown words");
  }
}

// Throws for settings that would change merging.
void must_merge_plainly(const json& model) {
  for (const char* key : {"ignore_merges", "byte_fallback"}) {
    if (flag_at(model, key, false)) {
      refuse("with '" + std::string(key) + "'");
    }
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!text_at(model, key).empty()) {
      refuse("with a '" + std::string(key) + "'");
    }
  }
  if (model.contains("dropout") && !model["dropout"].is_null() && model["dropout"] != 0) {
    refuse("with 'dropout'");
  }
}

void put_added(Vocabulary& vocabulary, const json& added, const json& words, std::size_t most) {
  const std::string word = text_at(added, "content");
  if (word.empty() || !added.contains("id")) {
    refuse("with an added token that has no text or no number");
  }
  for (const char* key : {"single_word", "lstrip", "rstrip"}) {
    if (flag_at(added, key, false)) {
      refuse("whose added token '" + word + "' has '" + key + "'");
    }
  }
  if (words.contains(word) && words[word] != added["id"]) {
    refuse("whose added token '" + word + "' has two numbers");
  }
  put_word(
      vocabulary, word, added["id"],
      flag_at(added, "special", false) ? Vocabulary::Kind::control : Vocabulary::Kind::user_defined,
      most);
}

std::string merge_text(const json& merge) {
  if (merge.is_string()) {
    return merge.get<std::string>();
  }
  if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string()) {
    refuse("with merges that are not pairs of words");
  }
  return merge[0].get<std::string>() + " " + merge[1].get<std::string>();
}

}  // namespace

Vocabulary vocabulary_of(const Gguf& file) {
  const auto& model = file.meta<std::string>("tokenizer.ggml.model");
  if (model != "llama" && model != "gpt2") {
    refuse("for '" + model + "'; supported are gpt2 and llama");
  }
  Vocabulary vocabulary{.by_score = model == "llama",
                        .words = file.meta<std::vector<std::string>>("tokenizer.ggml.tokens")};
  for (const double kind : file.meta<std::vector<double>>("tokenizer.ggml.token_type")) {
    vocabulary.kinds.push_back(kind_of(kind));
  }
  vocabulary.kinds.resize(vocabulary.words.size());
  if (vocabulary.by_score) {
    vocabulary.scores = file.meta<std::vector<double>>("tokenizer.ggml.scores");
    vocabulary.scores.resize(vocabulary.words.size());
  } else {
    const auto& pre = file.meta<std::string>("tokenizer.ggml.pre");
    if (pre != "smollm" && pre != "gpt-2" && pre != "default") {
      refuse("that cuts text as '" + pre + "' does; supported are smollm and gpt-2");
    }
    vocabulary.single_digits = pre == "smollm";
    vocabulary.merges = file.meta<std::vector<std::string>>("tokenizer.ggml.merges");
  }
  const auto id = [&](const char* key, std::vector<std::int32_t>& list) {
    if (!file.has_meta(key)) {
      return;
    }
    const auto token = file.meta<std::int64_t>(key);
    if (token < 0 || token >= static_cast<std::int64_t>(vocabulary.words.size())) {
      refuse("whose '" + std::string(key) + "' is " + std::to_string(token) + " of " +
             std::to_string(vocabulary.words.size()));
    }
    list.push_back(static_cast<std::int32_t>(token));
  };
  const char* adds = "tokenizer.ggml.add_bos_token";
  if (file.has_meta(adds) ? file.meta<bool>(adds) : vocabulary.by_score) {
    id("tokenizer.ggml.bos_token_id", vocabulary.begin);
  }
  id("tokenizer.ggml.eos_token_id", vocabulary.ends);
  id("tokenizer.ggml.eot_token_id", vocabulary.ends);
  return vocabulary;
}

Vocabulary vocabulary_of(const json& tokenizer) {
  const json empty = json::object();
  const auto part = [&](const json& of, const char* key) -> const json& {
    return of.is_object() && of.contains(key) ? of[key] : empty;
  };
  const json& model = part(tokenizer, "model");
  Vocabulary vocabulary;
  if (text_at(model, "type") == "WordPiece") {
    read_word_pieces(vocabulary, tokenizer);
  } else if (text_at(model, "type") == "BPE" && part(tokenizer, "normalizer").empty()) {
    must_merge_plainly(model);
    read_cuts(vocabulary, part(tokenizer, "pre_tokenizer"));
  } else {
    refuse("but byte-level BPE of text as it is, and BERT's word pieces");
  }
  // Word numbers may have gaps.
  const json& words = part(model, "vocab");
  const json& all_added = part(tokenizer, "added_tokens");
  const std::size_t most = std::min(kMostTokens, 2 * (words.size() + all_added.size()) + 1024);
  for (const auto& [word, number] : words.items()) {
    put_word(vocabulary, word, number, Vocabulary::Kind::ordinary, most);
  }
  for (const json& added : all_added) {
    put_added(vocabulary, added, words, most);
  }
  for (const json& merge : part(model, "merges")) {
    vocabulary.merges.push_back(merge_text(merge));
  }
  if (const json& processor = part(tokenizer, "post_processor"); !processor.empty()) {
    read_processors(vocabulary, processor);
  }
  return vocabulary;
}

void must_fit(const Vocabulary& vocabulary, std::size_t tokens, const std::string& model) {
  std::size_t needed = vocabulary.words.size();
  for (const std::int32_t token : vocabulary.begin) {
    needed = std::max(needed, std::size_t{static_cast<std::uint32_t>(token)} + 1);
  }
  if (needed > tokens) {
    throw std::runtime_error(model + " has " + std::to_string(tokens) +
                             " tokens, but its tokenizer returns token " +
                             std::to_string(needed - 1));
  }
}

}  // namespace llm
