// Leaves the rare strings with escapes or letters beyond ASCII to nlohmann::json.
#include "imports/json_events.h"

#include <charconv>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace unisono::cli {
namespace {

constexpr int kDeepestJson = 128;  // as kDocumentLimits of cli/json_document.h

bool is_digit(char sign) {
  return sign >= '0' && sign <= '9';
}

class JsonReader {
 public:
  JsonReader(std::string_view text, ValueSink& sink) : text_(text), sink_(sink) {}

  bool read() {
    if (!value(0, true)) {
      return false;
    }
    skip_space();
    return sign() == '\0';
  }

 private:
  // The end of the text reads as 0. A byte of 0 ends the text, as for nlohmann::json.
  char sign() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (sign() == ' ' || sign() == '\n' || sign() == '\t' || sign() == '\r') {
      ++at_;
    }
  }
  bool take(char expected) {
    skip_space();
    if (sign() != expected) {
      return false;
    }
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) {
      return false;
    }
    at_ += word.size();
    return true;
  }

  // Sends events of a value that counts.
  bool value(int depth, bool counts) {
    skip_space();
    switch (sign()) {
      case '{':
        return depth < kDeepestJson && object(depth, counts);
      case '[':
        return depth < kDeepestJson && array(depth, counts);
      case '"': {
        const std::optional<std::string_view> read = string(counts);
        return read && (!counts || sink_.text(*read));
      }
      case 't':
        return take_word("true") && (!counts || sink_.boolean(true));
      case 'f':
        return take_word("false") && (!counts || sink_.boolean(false));
      case 'n':
        return take_word("null") && (!counts || sink_.null());
      default:
        return number(counts);
    }
  }

  bool object(int depth, bool counts) {
    ++at_;
    if (counts && !sink_.start_object()) {
      return false;
    }
    for (bool is_first = true; !take('}'); is_first = false) {
      if (!is_first && !take(',')) {
        return false;
      }
      skip_space();
      const std::optional<std::string_view> key =
          sign() == '"' ? string(counts) : std::optional<std::string_view>();
      if (!key || (counts && !sink_.key(*key)) || !take(':') ||
          !value(depth + 1, counts && !sink_.skips_next())) {
        return false;
      }
    }
    return !counts || sink_.end_object();
  }

  bool array(int depth, bool counts) {
    ++at_;
    if (counts && !sink_.start_array()) {
      return false;
    }
    for (bool is_first = true; !take(']'); is_first = false) {
      if ((!is_first && !take(',')) || !value(depth + 1, counts && !sink_.skips_next())) {
        return false;
      }
    }
    return !counts || sink_.end_array();
  }

  std::optional<std::string_view> string(bool counts) {
    const std::size_t begin = ++at_;
    bool is_plain = true;
    for (; sign() != '"'; ++at_) {
      const char sign = this->sign();
      if (static_cast<unsigned char>(sign) < ' ') {  // also the end of the text
        return std::nullopt;
      }
      is_plain = is_plain && sign != '\\' && static_cast<unsigned char>(sign) < 0x80;
      if (sign == '\\') {
        ++at_;
      }
    }
    ++at_;
    if (is_plain) {
      return text_.substr(begin, at_ - 1 - begin);
    }
    const auto read =
        nlohmann::json::parse(text_.substr(begin - 1, at_ - (begin - 1)), nullptr, false);
    if (!read.is_string()) {
      return std::nullopt;
    }
    return counts ? decoded_.emplace_back(read.get<std::string>()) : std::string_view();
  }

  // Returns true if there is a digit at least.
  bool take_digits() {
    const std::size_t begin = at_;
    while (is_digit(sign())) {
      ++at_;
    }
    return at_ > begin;
  }
  bool take_number() {
    at_ += sign() == '-' ? 1U : 0U;
    const bool is_zero = sign() == '0';
    at_ += is_zero ? 1U : 0U;
    if (!is_zero && !take_digits()) {
      return false;
    }
    if (sign() == '.') {
      ++at_;
      if (!take_digits()) {
        return false;
      }
    }
    if (sign() == 'e' || sign() == 'E') {
      ++at_;
      at_ += sign() == '+' || sign() == '-' ? 1U : 0U;
      return take_digits();
    }
    return true;
  }

  bool number(bool counts) {
    const std::size_t begin = at_;
    if (!take_number()) {
      return false;
    }
    double read = 0;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (counts && std::from_chars(digits.data(), digits.data() + digits.size(), read).ec !=
                      std::errc()) {  // below or beyond a double
      const auto other = nlohmann::json::parse(digits, nullptr, false);
      if (!other.is_number()) {
        return false;
      }
      read = other.get<double>();
    }
    return !counts || sink_.number(read);
  }

  std::string_view text_;
  ValueSink& sink_;
  std::size_t at_ = 0;
  std::deque<std::string> decoded_;  // strings with escapes
};

}  // namespace

bool read_json(std::string_view text, ValueSink& sink) {
  return JsonReader(text, sink).read();
}

}  // namespace unisono::cli
