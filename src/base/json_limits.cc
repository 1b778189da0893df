#include "base/json_limits.h"

#include <algorithm>
#include <set>

#include "base/words.h"

namespace unisono {
namespace {

// Returns the position of the quote that closes the string starting at `begin`, or the end of the
// text.
std::size_t string_end(std::string_view text, std::size_t begin) {
  for (std::size_t at = text.find('"', begin); at != std::string_view::npos;
       at = text.find('"', at + 1)) {
    std::size_t slashes = 0;
    while (slashes < at - begin && text[at - 1 - slashes] == '\\') {
      ++slashes;
    }
    if (slashes % 2 == 0) {
      return at;
    }
  }
  return text.size();
}

// Returns true if a colon follows the quote that ends a string.
bool is_key(std::string_view text, std::size_t quote) {
  const std::size_t next = text.find_first_not_of(" \t\r\n", quote + 1);
  return next != std::string_view::npos && text[next] == ':';
}

}  // namespace

JsonExcess json_excess(std::string_view text, const JsonLimits& limits) {
  std::size_t depth = 0;
  std::size_t values = 1;
  std::set<std::string_view> keys;
  for (std::size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '"': {
        const std::size_t end = string_end(text, at + 1);
        if (end - at - 1 > limits.string_bytes) {
          return {
              .message = "a string of more than " + std::to_string(limits.string_bytes) + " bytes",
              .byte = at};
        }
        if (limits.has_unique_keys && depth == 1 && is_key(text, end)) {
          const std::string_view key = text.substr(at + 1, end - at - 1);
          if (!keys.insert(key).second) {
            return {.message = "key " + in_quotes(key) + " comes twice",
                    .byte = at,
                    .is_too_much = false};
          }
        }
        at = end;
        break;
      }
      case '[':
      case '{':
        if (++depth > limits.depth) {
          return {.message = "nested more than " + std::to_string(limits.depth) + " deep",
                  .byte = at};
        }
        ++values;
        break;
      case ']':
      case '}':
        depth -= depth > 0 ? 1 : 0;
        break;
      case ',':
        if (++values > limits.values) {
          return {.message = "more than " + std::to_string(limits.values) + " values", .byte = at};
        }
        break;
      default:
        break;
    }
  }
  return {};
}

}  // namespace unisono
