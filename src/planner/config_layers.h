// Reads from a config.json which layers have experts, and which have a window.
#pragma once

#include "planner/config_family.h"
#include "planner/config_keys.h"
#include "planner/shape.h"

namespace unisono::planner {

// Fills the kinds of the layers, and the window. REQUIRES: the shape has its layers and experts.
// Errors: JsonProblem.
void read_layer_kinds(ConfigKeys& keys, const ConfigFamily& family, ModelShape& shape);

}  // namespace unisono::planner
