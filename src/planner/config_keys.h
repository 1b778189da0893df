// The keys of a config.json while it is read: which were used, which have no part in what is
// estimated, and which nobody understood.
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
  std::string most_tokens_key = {};  // "max_position_embeddings"; empty: the file gives no limit
  double most_tokens = 0;            // of a request
  std::vector<std::string> used = {};
  std::vector<std::string> assumed = {};         // "tie_word_embeddings=true", as it is not there
  std::vector<std::string> left_out = {};        // "vision_config (the vision tower)"
  std::vector<std::string> not_understood = {};  // "window_dim=64"

  // A line for each that is not empty.
  std::vector<std::string> lines() const;
};

// Python writes Infinity, -Infinity and NaN, which JSON has not: as strings of that name.
std::string with_quoted_infinities(std::string_view text);

// An object, of which it remembers what was asked for. A key that is null counts as missing, as
// transformers takes it.
class ConfigKeys {
 public:
  // Defaults may stand for the sizes of a model only if `is_part`: of a larger config.json, as
  // transformers writes no key of a part that has its default.
  ConfigKeys(const JsonNode& config, ConfigAccount& account, bool is_part)
      : config_(config), account_(account), is_part_(is_part) {}

  const JsonNode& node() const { return config_; }
  std::optional<JsonNode> find(std::string_view key);
  bool has(std::string_view key) const;
  // Returns true if find() has been called for the key, present or not.
  bool was_requested(std::string_view key) const { return requested_.contains(key); }

  // A size of 1 or more. Errors: JsonProblem, which names the key, where it is missing.
  std::int64_t size(std::string_view key);
  // The same; `fallback` stands for it where it is missing, which the account then says.
  std::int64_t size_or(std::string_view key, std::int64_t fallback);
  // The same where it may be missing only in a part of a larger config.json.
  std::int64_t size_of_part(std::string_view key, std::int64_t fallback);
  // 0 or more; 0 also where it is missing, in silence.
  std::int64_t count(std::string_view key);
  bool truth(std::string_view key, bool fallback);
  // The first of the names that is there. Errors: JsonProblem where two of them contradict.
  std::string_view one_of(std::initializer_list<std::string_view> keys);

  void assume(std::string_view key, const std::string& value);
  void leave_out(std::string_view key, const std::string& why);
  // Drops a key that another place repeats.
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

// Returns whether the key has no effect on an estimate: token ids, dropout, positions, ...
bool is_of_no_matter(std::string_view key);
// "64", "true", "[3 values]"
std::string value_text(const JsonNode& value);
// Also if they list the same.
bool are_equal(const JsonNode& one, const JsonNode& other);

}  // namespace unisono::planner
