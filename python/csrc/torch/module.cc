// The Python module unisono.torch._C, which creates backends for torch.distributed.
#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "backend.h"
#include "flight_recorder.h"
#include "symmetric_memory.h"

namespace py = pybind11;
using unisono_torch::Backend;

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  py::module_::import("torch.distributed");  // registers the base classes
  module.attr("built_for") = UNISONO_TORCH_VERSION;
  module.attr("tested") = py::str(UNISONO_TORCH_TESTED).attr("split")();
  py::class_<Backend::Options, c10::intrusive_ptr<Backend::Options>, c10d::Backend::Options>(
      module, "Options")
      .def(py::init<std::chrono::milliseconds>(), py::arg("timeout") = kBackendDefaultTimeout)
      // PyTorch copies a group's options for groups derived from it.
      .def("__deepcopy__", [](const Backend::Options& options, const py::dict&) {
        return c10::make_intrusive<Backend::Options>(options);
      });
  py::class_<Backend, c10::intrusive_ptr<Backend>, c10d::Backend>(
      module, "Backend", "The unisono backend of one process group.")
      .def(py::init([](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                       std::chrono::milliseconds timeout, const std::vector<int>& members,
                       const std::string& shown_as, bool enable_reconfigure) {
             const py::gil_scoped_release unlocked;
             return c10::make_intrusive<Backend>(
                 store,
                 unisono_torch::Meeting{.rank = rank,
                                        .size = size,
                                        .timeout = timeout,
                                        .members = members,
                                        .later = enable_reconfigure},
                 shown_as);
           }),
           py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
           py::arg("members") = std::vector<int>(), py::arg("shown_as") = "unisono",
           py::arg("enable_reconfigure") = false,
           "Waits for all ranks of the group; returns at once if reconfigure() will name them.")
      .def_property_readonly("options", &Backend::getBackendOptions)
      .def("_is_failed",
           [](Backend& backend) { return backend.getError() != c10d::ErrorType::SUCCESS; })
      .def(
          "perform_nocolor_split", [](Backend&, const py::object&) {}, py::arg("device"),
          "Called by PyTorch, if device_id was given, on ranks that a new group leaves out: does "
          "nothing, because only members make the group.")
      .def("_set_default_timeout", &Backend::setTimeout, py::arg("timeout"));
  module.def(
      "leave_all", &Backend::leave_all, py::arg("finish_owed"),
      py::call_guard<py::gil_scoped_release>(),
      "Leaves all groups in order, so that peers do not treat the end of this process as a crash.");
  module.def(
      "dump_flights",
      [](bool operations, bool stacks, bool only_active) {
        return py::bytes(unisono_torch::dump_flights(operations, stacks, only_active));
      },
      py::arg("operations"), py::arg("stacks"), py::arg("only_active"),
      "Returns the pickled flight recorder of unisono's groups, like "
      "torch._C._distributed_c10d._dump_fr_trace().");
  module.def(
      "dump_flights_json",
      [](bool operations, bool only_active) {
        return py::bytes(unisono_torch::dump_flights_json(operations, only_active));
      },
      py::arg("operations"), py::arg("only_active"), "Returns the same as JSON, without stacks.");
  module.def("register_symmetric_memory", &unisono_torch::register_symmetric_memory,
             "Makes torch.distributed._symmetric_memory work on the CPU.");
  module.def("host_identity", &unisono_torch::host_identity,
             "Returns the value that must be equal for two processes to share memory.");
}
