// Layouts of whole models, for Python.
#pragma once

#include "memory.h"

namespace unisono_python {

void define_model_plans(py::module_& module);

}  // namespace unisono_python
