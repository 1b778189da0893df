// The choices in `unisono.machine/1` (machine_json.h).
#pragma once

#include <string>

#include "base/json.h"
#include "cost/choices.h"

namespace unisono::cost {

// Returns the text that follows the document's other keys; empty if there is nothing to write.
std::string choices_text(const Choices& choices);
// Throws JsonProblem.
Choices read_choices(const JsonNode& document);

}  // namespace unisono::cost
