// The part of `unisono.machine/1` that chooses (machine_json.h).
#pragma once

#include <string>

#include "base/json.h"
#include "cost/choices.h"

namespace unisono::cost {

// What follows other keys of the document; nothing where there is nothing to write.
std::string choices_text(const Choices& choices);
// Throws JsonProblem.
Choices read_choices(const JsonNode& document);

}  // namespace unisono::cost
