#include "msccl/xml_attributes.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace unisono::msccl {

void XmlFault::tell(std::string what) {
  if (!is_there()) {
    what_ = std::move(what);
    line_ = XML_GetCurrentLineNumber(parser_);
    XML_StopParser(parser_, XML_FALSE);
  }
}

Parsed<MscclProgram> XmlFault::failure() const {
  return Parsed<MscclProgram>::failure(what_, fmt::format("line {}", line_));
}

XmlAttributes::XmlAttributes(const char** list, XmlFault& fault) : fault_(fault) {
  for (; *list != nullptr; list += 2) {
    values_.emplace(list[0], list[1]);
  }
}

std::optional<std::string_view> XmlAttributes::text(const char* name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

int XmlAttributes::number(const char* name, int least, int most,
                          std::optional<int> fallback) const {
  const std::optional<std::string_view> word = text(name);
  if (!word && fallback) {
    return *fallback;
  }
  int value = 0;
  if (word) {
    const auto [end, error] = std::from_chars(word->data(), word->data() + word->size(), value);
    if (error == std::errc() && end == word->data() + word->size() && value >= least &&
        value <= most) {
      return value;
    }
  }
  fault_.tell(
      word ? fmt::format("{} cannot be \"{}\": a number from {} to {}", name, *word, least, most)
           : fmt::format("{} is missing", name));
  return least;
}

BufferPlace XmlAttributes::place(const char* buffer, const char* offset, int most,
                                 bool is_used) const {
  const std::string_view word = text(buffer).value_or("");
  const std::optional<Buffer> found = executors::buffer_called(word);
  if (!found) {
    if (is_used) {
      fault_.tell(fmt::format("{} cannot be \"{}\": i, o or s", buffer, word));
    }
    return {};
  }
  return {.buffer = *found, .offset = number(offset, is_used ? 0 : -1, most)};
}

}  // namespace unisono::msccl
