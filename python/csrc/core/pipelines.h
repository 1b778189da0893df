// unisono.pipeline: schedules of pipeline parallelism, and their runner.
#pragma once

#include "communicator.h"

namespace unisono_python {

void define_pipelines(py::module_& module);

}  // namespace unisono_python
