#include "base/json_reader.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_limits.h"
#include "base/json_text.h"
#include "base/private.h"
#include "base/words.h"

namespace unisono {
namespace {

constexpr std::size_t kMostDepth = 16;
constexpr std::size_t kMostText = 4096;

}  // namespace

// Callbacks for nlohmann::json's parser.
class JsonReader::Events : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Events(JsonReader& reader) : reader_(reader) {}

  bool null() override {
    return value([this] { reader_.null(); });
  }
  bool boolean(bool truth) override {
    return value([this, truth] { reader_.truth(truth); });
  }
  bool number_integer(number_integer_t number) override {
    return value([this, number] { reader_.whole(number); });
  }
  bool number_unsigned(number_unsigned_t number) override {
    constexpr auto kMost = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    return value([this, number] {
      number <= kMost ? reader_.whole(static_cast<std::int64_t>(number))
                      : reader_.number(static_cast<double>(number));
    });
  }
  bool number_float(number_float_t number, const string_t&) override {
    return value([this, number] { reader_.number(number); });
  }
  bool binary(binary_t&) override { reader_.fail("binary data"); }
  bool string(string_t& text) override {
    if (text.size() > kMostText) {
      reader_.fail("a string of more than 4096 bytes");
    }
    return value([this, &text] { reader_.text(std::move(text)); });
  }

  bool start_object(std::size_t) override { return begin(false); }
  bool start_array(std::size_t) override { return begin(true); }
  bool end_object() override {
    return end([this] { reader_.end_object(); });
  }
  bool end_array() override {
    return end([this] { reader_.end_array(); });
  }

  bool key(string_t& name) override {
    if (name.size() > kMostText) {
      reader_.fail("a key of more than 4096 bytes");
    }
    Open& object = reader_.open_.back();
    if (!object.keys.insert(name).second) {
      reader_.fail("key " + in_quotes(name) + " comes twice");
    }
    if (!reader_.is_skipping()) {
      reader_.key(name);
    }
    object.key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    constexpr std::size_t kMostShown = 160;
    constexpr int kNumberOverflow = 406;
    std::string_view what = error.what();
    what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
    throw JsonProblem{error.id == kNumberOverflow
                          ? "a number is out of range"
                          : "not valid JSON: " + std::string(what.substr(0, kMostShown)),
                      "byte " + std::to_string(byte)};
  }

 private:
  template <typename Tell>
  bool value(Tell&& tell) {
    if (!reader_.is_skipping()) {
      tell();
    }
    reader_.finish_value();
    return true;
  }

  bool begin(bool is_array) {
    if (reader_.open_.size() == kMostDepth) {
      reader_.fail("nested more than 16 deep");
    }
    if (!reader_.is_skipping()) {
      is_array ? reader_.begin_array() : reader_.begin_object();
    }
    reader_.open_.push_back({.is_array = is_array, .index = 0, .key = {}, .keys = {}});
    return true;
  }

  template <typename Tell>
  bool end(Tell&& tell) {
    reader_.open_.pop_back();
    return value(tell);
  }

  JsonReader& reader_;
};

void JsonReader::read(std::string_view text) {
  open_.clear();
  skipped_at_.reset();
  // The parser allocates several times the size of a string before it reports the string.
  constexpr std::size_t kMostEscaped = 6 * kMostText;  // each byte as \u00XX
  if (const JsonExcess excess = json_excess(text, {.string_bytes = kMostEscaped});
      !excess.message.empty()) {
    throw JsonProblem{excess.message, "byte " + std::to_string(excess.byte)};
  }
  Events events(*this);
  nlohmann::json::sax_parse(text, &events);
}

void JsonReader::finish_value() {
  if (skipped_at_ == open_.size()) {
    skipped_at_.reset();
  }
  if (!open_.empty()) {
    ++open_.back().index;
    open_.back().key.reset();
  }
}

std::string JsonReader::path() const {
  std::string path;
  for (const Open& open : open_) {
    if (open.is_array) {
      path += "/" + std::to_string(open.index);
    } else if (open.key) {
      path += "/" + pointer_token(*open.key);
    }
  }
  return path;
}

void JsonReader::fail(std::string message) const {
  const std::string place = path();
  throw JsonProblem{std::move(message), place.empty() ? "/" : place};
}

std::string pointer_token(std::string_view key) {
  std::string token;
  for (const char c : key) {
    token += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return token;
}

// Defined here because only this file includes nlohmann::json.
UNISONO_PRIVATE std::string json_string(std::string_view text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
  });
  return is_plain
             ? '"' + std::string(text) + '"'
             : nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace unisono
