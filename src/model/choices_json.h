// The part of `unisono.machine/1` that chooses (machine_json.h).
#pragma once

#include "model/choices.h"
#include "model/json_place.h"

namespace unisono::model {

// Nothing where there is nothing to write.
void write_choices(const Choices& choices, json_place::Json& document);
// Throws Fault.
Choices read_choices(const json_place::Place& document);

}  // namespace unisono::model
