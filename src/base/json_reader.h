// JSON as a stream of values, for documents of which only a part is to be kept in memory; json.h
// makes a tree of them.
//
// Every mistake has a place: "byte N" where the text is not JSON, else a JSON pointer. Nesting, the
// length of a string and the range of a number are bounded, and a key comes once.
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
  // The values of the document in their order. They may call fail().
  virtual void null() = 0;
  virtual void truth(bool value) = 0;
  virtual void whole(std::int64_t value) { number(static_cast<double>(value)); }
  virtual void number(double value) = 0;  // not whole, or beyond 64 bits
  virtual void text(std::string value) = 0;
  virtual void begin_object() = 0;
  virtual void key(const std::string& name) = 0;  // still at the place of the object
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;

  // Throws JsonProblem with the place of the value that is being read.
  [[noreturn]] void fail(std::string message) const;
  std::string path() const;  // of that value, as a JSON pointer
  std::size_t depth() const { return open_.size(); }
  // From key() only: passes over the value of this key.
  void skip_value() { skipped_at_ = open_.size(); }

 private:
  class Events;
  // An array or object that is not closed yet.
  struct Open {
    bool is_array = false;
    std::size_t index = 0;           // of an array: of the value that is being read
    std::optional<std::string> key;  // of an object: of the value that is being read
    std::unordered_set<std::string> keys;
  };

  bool is_skipping() const { return skipped_at_.has_value(); }
  void finish_value();

  std::vector<Open> open_;
  std::optional<std::size_t> skipped_at_;  // the depth of the object whose value is passed over
};

// The part of a JSON pointer that is for `key`.
std::string pointer_token(std::string_view key);

}  // namespace unisono
