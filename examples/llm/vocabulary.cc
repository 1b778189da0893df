#include "vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace llm {
namespace {

using nlohmann::json;

constexpr std::size_t kMostTokens = 1U << 24;

// As GGUF numbers them.
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

void put_word(Vocabulary& vocabulary, const std::string& word, const json& number,
              Vocabulary::Kind kind) {
  if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= kMostTokens) {
    refuse("whose token '" + word + "' has no number");
  }
  const auto token = number.get<std::size_t>();
  if (token >= vocabulary.words.size()) {
    vocabulary.words.resize(token + 1);
    vocabulary.kinds.resize(token + 1);
  }
  vocabulary.words[token] = word;
  vocabulary.kinds[token] = kind;
}

// How text is cut: digits alone, then as GPT-2 does.
void read_cuts(Vocabulary& vocabulary, const json& cut) {
  const std::string type = text_at(cut, "type");
  if (type == "Sequence" && cut.contains("pretokenizers") && cut["pretokenizers"].is_array()) {
    for (const json& one : cut["pretokenizers"]) {
      read_cuts(vocabulary, one);
    }
  } else if (type == "Digits" && flag_at(cut, "individual_digits", false)) {
    vocabulary.single_digits = true;
  } else if (type != "ByteLevel" || flag_at(cut, "add_prefix_space", true) ||
             !flag_at(cut, "use_regex", true)) {
    refuse("that cuts text by '" + type + "'; there are single digits and the rule of GPT-2");
  }
}

// The tokens that a template puts before a text.
void read_template(Vocabulary& vocabulary, const json& processor) {
  const std::string type = text_at(processor, "type");
  if (type == "Sequence" && processor.contains("processors")) {
    for (const json& one : processor["processors"]) {
      read_template(vocabulary, one);
    }
  } else if (type == "TemplateProcessing" && processor.contains("single")) {
    for (const json& part : processor["single"]) {
      if (!part.contains("SpecialToken")) {
        break;
      }
      const auto word = std::ranges::find(vocabulary.words, text_at(part["SpecialToken"], "id"));
      if (word != vocabulary.words.end()) {
        vocabulary.begin.push_back(static_cast<std::int32_t>(word - vocabulary.words.begin()));
      }
    }
  }
}

std::string merge_text(const json& merge) {
  if (merge.is_string()) {
    return merge.get<std::string>();
  }
  if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string()) {
    refuse("with merges that are no pairs of words");
  }
  return merge[0].get<std::string>() + " " + merge[1].get<std::string>();
}

}  // namespace

Vocabulary vocabulary_of(const Gguf& file) {
  const auto& model = file.meta<std::string>("tokenizer.ggml.model");
  if (model != "llama" && model != "gpt2") {
    refuse("for '" + model + "'; there are gpt2 and llama");
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
      refuse("that cuts text as '" + pre + "' does; there are smollm and gpt-2");
    }
    vocabulary.single_digits = pre == "smollm";
    vocabulary.merges = file.meta<std::vector<std::string>>("tokenizer.ggml.merges");
  }
  const auto id = [&](const char* key, std::vector<std::int32_t>& list) {
    if (file.has_meta(key)) {
      list.push_back(static_cast<std::int32_t>(file.meta<std::int64_t>(key)));
    }
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
  if (text_at(model, "type") != "BPE" || flag_at(model, "byte_fallback", false) ||
      !part(tokenizer, "normalizer").empty()) {
    refuse("but byte-level BPE of text as it is");
  }
  Vocabulary vocabulary;
  for (const auto& [word, number] : part(model, "vocab").items()) {
    put_word(vocabulary, word, number, Vocabulary::Kind::ordinary);
  }
  for (const json& added : part(tokenizer, "added_tokens")) {
    put_word(vocabulary, text_at(added, "content"), part(added, "id"),
             flag_at(added, "special", false) ? Vocabulary::Kind::control
                                              : Vocabulary::Kind::user_defined);
  }
  for (const json& merge : part(model, "merges")) {
    vocabulary.merges.push_back(merge_text(merge));
  }
  read_cuts(vocabulary, part(tokenizer, "pre_tokenizer"));
  read_template(vocabulary, part(tokenizer, "post_processor"));
  return vocabulary;
}

}  // namespace llm
