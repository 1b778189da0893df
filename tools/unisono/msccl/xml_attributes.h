// The attributes of one XML element, and what is wrong first in a text.
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

// The first thing that is wrong ends the parsing. The parser must live as long.
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
  // Names and values in turn, then nullptr.
  XmlAttributes(const char** list, XmlFault& fault);

  std::optional<std::string_view> text(const char* name) const;
  // Without a fallback it must be there.
  int number(const char* name, int least, int most,
             std::optional<int> fallback = std::nullopt) const;
  // A step that does not use the place, and has none, may have anything there.
  BufferPlace place(const char* buffer, const char* offset, int most, bool is_used) const;

 private:
  std::map<std::string, std::string, std::less<>> values_ = {};
  XmlFault& fault_;
};

}  // namespace unisono::msccl
