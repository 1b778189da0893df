// Reads with expat, which checks that the text is XML; ElementReader checks its meaning.
#include <expat.h>
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <string>

#include "msccl/read_elements.h"
#include "msccl/xml.h"
#include "msccl/xml_attributes.h"

namespace unisono::msccl {
namespace {

class Reader {
 public:
  explicit Reader(XML_Parser parser) : fault_(parser) {}

  void start(std::string_view element, const char** list) {
    if (is_wrong()) {
      return;
    }
    const XmlAttributes attributes(list, fault_);
    path_ += fmt::format("/{}", element);
    if (path_ == "/algo") {
      elements_.algorithm(attributes);
    } else if (path_ == "/algo/gpu") {
      elements_.gpu(attributes);
    } else if (path_ == "/algo/gpu/tb") {
      elements_.block(attributes);
    } else if (path_ == "/algo/gpu/tb/step") {
      elements_.step(attributes);
    } else {
      fault_.tell(fmt::format("<{}> is not allowed here", element));
    }
  }
  // Only a document type can declare entities, which may grow without bound.
  void document_type() { fault_.tell("a document type is not allowed in a program"); }
  void end() { path_.resize(path_.rfind('/')); }

  bool is_wrong() const { return fault_.is_there(); }
  Parsed<MscclProgram> finish() && {
    if (is_wrong()) {
      return fault_.failure();
    }
    MscclProgram program = std::move(elements_).finish();
    return is_wrong() ? fault_.failure() : Parsed<MscclProgram>::success(std::move(program));
  }

 private:
  XmlFault fault_;
  ElementReader elements_{fault_};
  std::string path_ = {};
};

}  // namespace

Parsed<MscclProgram> parse_xml(std::string_view text) {
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), &XML_ParserFree);
  Reader reader(parser.get());
  XML_SetUserData(parser.get(), &reader);
  XML_SetElementHandler(
      parser.get(),
      [](void* to, const XML_Char* name, const XML_Char** attributes) {
        static_cast<Reader*>(to)->start(name, attributes);
      },
      [](void* to, const XML_Char* /*name*/) { static_cast<Reader*>(to)->end(); });
  XML_SetStartDoctypeDeclHandler(
      parser.get(),
      [](void* to, const XML_Char* /*name*/, const XML_Char* /*system*/, const XML_Char* /*public*/,
         int /*has_internal*/) { static_cast<Reader*>(to)->document_type(); });
  // Expat takes the length as an int; no program is that long.
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return Parsed<MscclProgram>::failure("larger than 2 GiB", "line 1");
  }
  const XML_Status status =
      XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
  if (status != XML_STATUS_OK && !reader.is_wrong()) {
    return Parsed<MscclProgram>::failure(
        XML_ErrorString(XML_GetErrorCode(parser.get())),
        fmt::format("line {}", XML_GetCurrentLineNumber(parser.get())));
  }
  return std::move(reader).finish();
}

}  // namespace unisono::msccl
