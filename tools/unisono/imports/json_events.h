// Reads JSON as events, several times faster than nlohmann::json does: dumps of 1,024 ranks have a
// gigabyte.
#pragma once

#include <string_view>

#include "imports/value_events.h"

namespace unisono::cli {

// Sends the value of a JSON text to a sink. Returns false if the text is not JSON, is nested deeper
// than kDocumentLimits allows, has a number beyond a double or an integer of more than 64 bits, or
// if the sink ends the reading. Accepts no text that nlohmann::json refuses.
bool read_json(std::string_view text, ValueSink& sink);

}  // namespace unisono::cli
