// Tracks the keys of a config.json while it is read: used, irrelevant to the estimate, or not
// understood.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace unisono::planner {

// Reports how each key of a config.json was used.
struct ConfigAccount {
  std::string model_type = {};
  std::string most_tokens_key = {};  // such as "max_position_embeddings"; empty: the file gives no
                                     // limit
  double most_tokens = 0;            // per request
  std::vector<std::string> used = {};
  std::vector<std::string> assumed = {};         // such as "tie_word_embeddings=true", because the
                                                 // key is missing
  std::vector<std::string> left_out = {};        // such as "vision_config (the vision tower)"
  std::vector<std::string> not_understood = {};  // such as "window_dim=64"

  // Returns one line for each non-empty list.
  std::vector<std::string> lines() const;
};

// Quotes Infinity, -Infinity and NaN, which Python writes but JSON does not have.
std::string with_quoted_infinities(std::string_view text);

// A JSON object that records which keys were requested. A null key counts as missing, as in
// transformers.
class ConfigKeys {
 public:
  // `is_part`: the object is a part of a larger config.json. Only then may defaults replace missing
  // sizes, because transformers omits keys of a part that have their default.
  ConfigKeys(const JsonNode& config, ConfigAccount& account, bool is_part)
      : config_(config), account_(account), is_part_(is_part) {}

  const JsonNode& node() const { return config_; }
  std::optional<JsonNode> find(std::string_view key);
  bool has(std::string_view key) const;
  // Returns true if find() has been called for the key, present or not.
  bool was_requested(std::string_view key) const { return requested_.contains(key); }

  // Returns a size of at least 1. Errors: JsonProblem, which names the key, if it is missing.
  std::int64_t size(std::string_view key);
  // Like size(), but returns `fallback` if the key is missing, and reports that in the account.
  std::int64_t size_or(std::string_view key, std::int64_t fallback);
  // Like size_or(), but the key may be missing only in a part of a larger config.json.
  std::int64_t size_of_part(std::string_view key, std::int64_t fallback);
  // Returns a number of at least 0; 0 if the key is missing, without a report.
  std::int64_t count(std::string_view key);
  bool truth(std::string_view key, bool fallback);
  // Returns the first of these keys that exists. Errors: JsonProblem if two of them contradict each
  // other.
  std::string_view one_of(std::initializer_list<std::string_view> keys);

  void assume(std::string_view key, const std::string& value);
  void leave_out(std::string_view key, const std::string& why);
  // Ignores a key that repeats information from elsewhere.
  void ignore(std::string_view key) { used_.emplace(key); }
  // Returns the keys that were neither requested nor known to be irrelevant, as "key=value".
  std::vector<std::string> rest();

 private:
  std::int64_t whole(const JsonNode& node, std::string_view key, std::int64_t least) const;

  JsonNode config_;
  ConfigAccount& account_;
  bool is_part_;
  std::set<std::string, std::less<>> used_;
  std::set<std::string, std::less<>> requested_;
};

// Returns true if the key does not affect an estimate: token ids, dropout, positions, ...
bool is_of_no_matter(std::string_view key);
// Returns a text such as "64", "true" or "[3 values]".
std::string value_text(const JsonNode& value);
// Compares values; lists with equal elements are equal.
bool are_equal(const JsonNode& one, const JsonNode& other);

}  // namespace unisono::planner
