// Streaming JSON reader, for documents of which only a part should stay in memory. json.h uses this
// reader to build trees.
//
// Every error has a position: "byte N" if the text is not valid JSON, otherwise a JSON pointer.
// Nesting, string length and number range are limited, and keys must be unique.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace unisono {

struct JsonProblem {
  std::string message;
  std::string position;
};

class JsonReader {
 public:
  virtual ~JsonReader() = default;
  void read(std::string_view text);  // throws JsonProblem

 protected:
  // Called for each value of the document, in order. May call fail().
  virtual void null() = 0;
  virtual void truth(bool value) = 0;
  virtual void whole(std::int64_t value) { number(static_cast<double>(value)); }
  virtual void number(double value) = 0;  // fractional, or beyond 64 bits
  virtual void text(std::string value) = 0;
  virtual void begin_object() = 0;
  virtual void key(const std::string& name) = 0;  // path() is still the path of the object
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;

  // Throws JsonProblem with the position of the current value.
  [[noreturn]] void fail(std::string message) const;
  std::string path() const;  // JSON pointer of the current value
  std::size_t depth() const { return open_.size(); }
  // Skips the value of the current key. REQUIRES: called from key().
  void skip_value() { skipped_at_ = open_.size(); }

 private:
  class Events;
  // An array or object that is still open.
  struct Open {
    bool is_array = false;
    std::size_t index = 0;           // arrays: index of the current value
    std::optional<std::string> key;  // objects: key of the current value
    std::unordered_set<std::string> keys;
  };

  bool is_skipping() const { return skipped_at_.has_value(); }
  void finish_value();

  std::vector<Open> open_;
  std::optional<std::size_t> skipped_at_;  // depth of the object whose value is being skipped
};

// Returns the part of a JSON pointer that selects `key`.
std::string pointer_token(std::string_view key);

}  // namespace unisono
