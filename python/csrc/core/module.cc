// The Python module unisono._core: the library without PyTorch.
#include "unisono/error.hpp"

#include "common/signals.h"
#include "communicator.h"
#include "devices.h"
#include "experts.h"
#include "model_plans.h"
#include "models.h"
#include "parallel.h"
#include "pipelines.h"
#include "schedules.h"

namespace unisono_python {
namespace {

void raise(const unisono::Error& error) {
  const py::object raised = to_python(error);
  PyErr_SetObject(py::type::of(raised).ptr(), raised.ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const unisono::Error& error) {
    try {
      if (error.code() == unisono::ErrorCode::aborted) {
        unisono_signals::throw_if_interrupted();
      }
      raise(error);
    } catch (py::error_already_set& other) {
      other.restore();
    }
  }
}

}  // namespace

// unisono._errors has a class for each code.
py::object to_python(const unisono::Error& error) {
  const py::object make = py::module_::import("unisono._errors").attr("make");
  const unisono::ErrorContext& where = error.context();
  return make(std::string(unisono::to_string(error.code())), error.what(), where.rank, where.peer,
              where.collective, where.op_seq, where.step);
}

}  // namespace unisono_python

PYBIND11_MODULE(_core, module) {
  using namespace unisono_python;  // NOLINT(google-build-using-namespace)
  module.doc() =
      "The core of unisono; use it through the packages unisono, unisono.schedule, "
      "unisono.model, unisono.parallel and unisono.pipeline.";
  py::register_exception_translator(&translate);
  define_communicator(module);
  define_schedules(module);
  define_models(module);
  define_model_plans(module);
  define_parallel(module);
  define_pipelines(module);
  define_experts(module);
  define_expert_places(module);
  define_devices(module);
}
