// The config.json in a model's folder, as written by Hugging Face.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace llm {

// Reads a file. Errors: std::runtime_error if the file cannot be read, is not a JSON object, or is
// too large.
nlohmann::json read_json(const std::string& path);
// Parses a text. Errors: std::runtime_error with the mistake, without a file name.
nlohmann::json parse_object(std::string_view text);

// All getters throw std::runtime_error with the file name.
class Config {
 public:
  explicit Config(const std::string& folder, const std::string& name = "config.json")
      : path_(folder + "/" + name), value_(read_json(path_)) {}

  [[noreturn]] void fail(const std::string& what) const;
  bool has(const char* key) const { return value_.contains(key) && !value_[key].is_null(); }
  const nlohmann::json& at(const char* key) const { return value_[key]; }
  std::size_t count(const char* key) const;  // 1 or more
  std::size_t count_or(const char* key, std::size_t otherwise) const;
  float number_or(const char* key, float otherwise) const;
  // Returns "" if the value is not a string.
  std::string text(const char* key) const;
  bool is_on(const char* key) const { return has(key) && value_[key] == true; }
  // Throws if a feature that is not implemented here is on.
  void must_be_off(const char* key) const;

 private:
  std::string path_;
  nlohmann::json value_;
};

}  // namespace llm
