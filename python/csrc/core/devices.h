// Collectives on GPU memory.
#pragma once

#include <pybind11/pybind11.h>

namespace unisono_python {

void define_devices(pybind11::module_& module);

}  // namespace unisono_python
