// unisono.expert: dispatch and combine of mixtures of experts.
#pragma once

#include "communicator.h"

namespace unisono_python {

void define_experts(py::module_& module);
void define_expert_places(py::module_& module);

}  // namespace unisono_python
