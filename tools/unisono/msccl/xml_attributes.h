// The attributes of one XML element, and the first error in a text.
#pragma once

#include <expat.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/parsed.h"
#include "executors/buffers.h"
#include "msccl/program.h"

namespace unisono::msccl {

// The first error ends the parsing. The parser must outlive this object.
class XmlFault {
 public:
  explicit XmlFault(XML_Parser parser) : parser_(parser) {}
  void tell(std::string what);
  bool is_there() const { return !what_.empty(); }
  // REQUIRES: is_there().
  Parsed<MscclProgram> failure() const;

 private:
  XML_Parser parser_;
  std::string what_ = {};
  std::size_t line_ = 0;
};

// Reports invalid attributes to the fault, and returns a usable value instead.
class XmlAttributes {
 public:
  // `list`: names and values alternately, then nullptr.
  XmlAttributes(const char** list, XmlFault& fault);

  std::optional<std::string_view> text(const char* name) const;
  // Without a fallback the attribute is required.
  int number(const char* name, int least, int most,
             std::optional<int> fallback = std::nullopt) const;
  // The place of a step that does not use it may be missing or invalid.
  BufferPlace place(const char* buffer, const char* offset, int most, bool is_used) const;

 private:
  std::map<std::string, std::string, std::less<>> values_ = {};
  XmlFault& fault_;
};

}  // namespace unisono::msccl
