// unisono.pipeline: schedules of pipeline parallelism, and what runs them.
#pragma once

#include "communicator.h"

namespace unisono_python {

void define_pipelines(py::module_& module);

}  // namespace unisono_python
