#include "config.h"

#include <cstdint>
#include <fstream>
#include <stdexcept>

namespace llm {

using nlohmann::json;

namespace {

// Larger than every known tokenizer.json. Each value takes about 100 bytes of memory.
constexpr std::uintmax_t kMostBytes = 200'000'000;
constexpr std::size_t kMostValues = 5'000'000;
constexpr int kDeepest = 64;

}  // namespace

json parse_object(std::string_view text) {
  std::size_t values = 0;
  const auto count = [&values](int depth, json::parse_event_t, const json&) {
    if (depth > kDeepest || ++values > 2 * kMostValues) {  // ends are counted too
      throw std::runtime_error(depth > kDeepest ? "is nested too deep" : "has too many values");
    }
    return true;
  };
  try {
    json value = json::parse(text, count);
    if (!value.is_object()) {
      throw std::runtime_error("is not a JSON object");
    }
    return value;
  } catch (const json::parse_error& error) {
    throw std::runtime_error("is not valid JSON at byte " + std::to_string(error.byte));
  } catch (const json::exception&) {
    throw std::runtime_error("has a number outside the range of a double");
  }
}

json read_json(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const auto bytes = static_cast<std::streamoff>(in.tellg());
  if (!in || bytes < 0) {
    throw std::runtime_error(path + " cannot be read");
  }
  if (static_cast<std::uintmax_t>(bytes) > kMostBytes) {
    throw std::runtime_error(path + " is larger than any model's JSON");
  }
  std::string text(static_cast<std::size_t>(bytes), '\0');
  in.seekg(0);
  in.read(text.data(), bytes);
  if (!in) {
    throw std::runtime_error(path + " cannot be read");
  }
  try {
    return parse_object(text);
  } catch (const std::exception& error) {
    throw std::runtime_error(path + " " + error.what());
  }
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
    fail(std::string("has '") + key + "', which is not supported here");
  }
}

}  // namespace llm
