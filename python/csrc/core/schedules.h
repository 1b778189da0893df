// Schedules for Python: catalogue, builder, proofs and JSON.
#pragma once

#include <string>
#include "algorithms/catalog.h"

#include "memory.h"

namespace unisono_python {

// Parses "all_reduce/ring" or "broadcast/knomial:radix=4". Throws ValueError, which lists the valid
// names.
struct Target {
  const unisono::Algorithm* algorithm = nullptr;
  unisono::AlgorithmParameters parameters = {};
};
Target parse_target(const std::string& text);
unisono::Collective collective_named(const std::string& text);
// Throws ValueError if the algorithm cannot serve the shape.
unisono::Shape shape_for(const Target& target, int ranks, int root);

void define_schedules(py::module_& module);

}  // namespace unisono_python
