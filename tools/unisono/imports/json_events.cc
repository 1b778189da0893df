// Uses simdjson's DOM parser, which checks the whole text. simdjson's On Demand parser does not
// check skipped values, and a damaged dump must be refused wherever the damage is.
#include "imports/json_events.h"

#include <simdjson.h>

#include <cstddef>
#include <string_view>

#include "cli/json_document.h"

namespace unisono::cli {
namespace {

using simdjson::dom::element_type;

constexpr std::size_t kTooDeep = kDocumentLimits.depth + 1;  // an empty container may be as deep

// Returns false if the sink ends the reading.
bool send(const simdjson::dom::element& value, ValueSink& sink) {
  switch (value.type()) {
    case element_type::OBJECT:
      if (!sink.start_object()) {
        return false;
      }
      for (const auto [key, member] : simdjson::dom::object(value)) {
        if (!sink.key(key) || (!sink.skips_next() && !send(member, sink))) {
          return false;
        }
      }
      return sink.end_object();
    case element_type::ARRAY:
      if (!sink.start_array()) {
        return false;
      }
      for (const auto item : simdjson::dom::array(value)) {
        if (!sink.skips_next() && !send(item, sink)) {
          return false;
        }
      }
      return sink.end_array();
    case element_type::STRING:
      return sink.text(std::string_view(value));
    case element_type::BOOL:
      return sink.boolean(bool(value));
    case element_type::NULL_VALUE:
      return sink.null();
    default:
      return sink.number(double(value));
  }
}

}  // namespace

bool read_json(std::string_view text, ValueSink& sink) {
  thread_local simdjson::dom::parser parser;  // keeps its memory for the thread's next file
  simdjson::dom::element document;
  const bool has_memory =
      parser.max_depth() == kTooDeep || parser.allocate(text.size(), kTooDeep) == simdjson::SUCCESS;
  return has_memory && parser.parse(text.data(), text.size()).get(document) == simdjson::SUCCESS &&
         send(document, sink);
}

}  // namespace unisono::cli
