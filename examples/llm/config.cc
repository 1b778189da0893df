#include "config.h"

#include <fstream>
#include <stdexcept>

namespace llm {

using nlohmann::json;

json read_json(const std::string& path) {
  std::ifstream in(path);
  if (!in) {
    throw std::runtime_error(path + " cannot be read");
  }
  json value = json::parse(in, nullptr, false);
  if (!value.is_object()) {
    throw std::runtime_error(path + " is not a JSON object");
  }
  return value;
}

void Config::fail(const std::string& what) const {
  throw std::runtime_error(path_ + " " + what);
}

std::size_t Config::count(const char* key) const {
  if (!has(key) || !value_[key].is_number_unsigned() || value_[key] < 1 ||
      value_[key] > (1U << 30)) {
    fail(std::string("has no '") + key + "' of 1 or more");
  }
  return value_[key].get<std::size_t>();
}

std::size_t Config::count_or(const char* key, std::size_t otherwise) const {
  return has(key) ? count(key) : otherwise;
}

float Config::number_or(const char* key, float otherwise) const {
  return has(key) && value_[key].is_number() ? value_[key].get<float>() : otherwise;
}

std::string Config::text(const char* key) const {
  return has(key) && value_[key].is_string() ? value_[key].get<std::string>() : std::string();
}

void Config::must_be_off(const char* key) const {
  if (is_on(key)) {
    fail(std::string("has '") + key + "', which is not done here");
  }
}

}  // namespace llm
