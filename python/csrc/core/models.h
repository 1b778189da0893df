// Costs of schedules, for Python: the one-port model, the simulator, topologies.
#pragma once

#include "memory.h"

namespace unisono_python {

void define_models(py::module_& module);

}  // namespace unisono_python
