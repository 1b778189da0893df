// The config.json of a model's folder, as Hugging Face writes it.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace llm {

// Errors: std::runtime_error, for a file that cannot be read, is not a JSON object, or is larger
// than any of a model.
nlohmann::json read_json(const std::string& path);
// The same for a text. Errors: std::runtime_error with the mistake, without the file name.
nlohmann::json parse_object(std::string_view text);

// Errors of all that it gives: std::runtime_error, with the file.
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
  // Empty if it is not a text.
  std::string text(const char* key) const;
  bool is_on(const char* key) const { return has(key) && value_[key] == true; }
  // Refuses a feature that is not implemented here.
  void must_be_off(const char* key) const;

 private:
  std::string path_;
  nlohmann::json value_;
};

}  // namespace llm
