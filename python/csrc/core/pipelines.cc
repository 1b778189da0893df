#include "pipelines.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <atomic>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "unisono/parallel/pipeline.hpp"

namespace unisono_python {
namespace {

using py::arg;
using unisono::parallel::Pipeline;
using unisono::parallel::PipelineCallbacks;
using unisono::parallel::PipelinePass;
using unisono::parallel::PipelineSchedule;
using unisono::parallel::PipelineStage;
using unisono::parallel::TensorSpec;

// Returns a view with the type and shape, or of plain bytes if the buffer protocol has no such
// type; None if there is no memory.
template <typename Byte>
py::object view_of(std::span<Byte> bytes, const TensorSpec* spec) {
  if (spec == nullptr) {
    return py::none();
  }
  const char* format = format_of(spec->dtype);
  if (format == nullptr) {
    return py::memoryview::from_buffer(
        reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(bytes.data())), {bytes.size()}, {1},
        std::is_const_v<Byte>);
  }
  const auto item = static_cast<py::ssize_t>(size_of(spec->dtype));
  std::vector<py::ssize_t> shape(spec->shape.begin(), spec->shape.end());
  std::vector<py::ssize_t> strides(shape.size());
  py::ssize_t stride = item;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return py::memoryview::from_buffer(const_cast<std::byte*>(bytes.data()), item, format, shape,
                                     strides, std::is_const_v<Byte>);
}

// Converts (dtype, shape) or None.
std::optional<TensorSpec> spec_of(const py::object& given) {
  if (given.is_none()) {
    return std::nullopt;
  }
  const auto [dtype, shape] = given.cast<std::pair<py::object, std::vector<std::size_t>>>();
  const std::optional<Elements> elements = elements_of_dtype(dtype);
  if (!elements || elements->units != 1) {
    throw py::type_error(
        "pass (dtype, shape) for a tensor between stages, with a dtype such as 'float32'");
  }
  return TensorSpec{.dtype = elements->dtype, .shape = shape};
}

struct Functions {
  py::object forward = py::none();
  py::object backward = py::none();
  py::object backward_input = py::none();
  py::object backward_weight = py::none();
  py::object reduce_grad = py::none();
  py::object unshard = py::none();
  py::object reshard = py::none();
  py::object overlap = py::none();
};

// Prevents other threads from using the runner during the object's lifetime.
class Turn {
 public:
  explicit Turn(std::atomic_flag& is_used) : is_used_(is_used) {
    // Must not wait, because a callback that calls the runner again would wait for ever.
    if (is_used.test_and_set(std::memory_order_acquire)) {
      throw unisono::Error(unisono::ErrorCode::usage,
                           "pipeline: a step is in progress\na callback cannot use its own "
                           "pipeline, and other threads cannot until the step has ended");
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { is_used_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& is_used_;
};

// Runs steps on one thread at a time, which holds the GIL only during callbacks.
class Runner {
 public:
  Runner(std::shared_ptr<Comm> comm, const PipelineSchedule& schedule,
         const std::map<int, std::pair<py::object, py::object>>& stages, Functions functions,
         int timeout_ms, bool record)
      : functions_(std::move(functions)) {
    std::vector<PipelineStage> list;
    for (const auto& [stage, shapes] : stages) {
      list.push_back(
          {.stage = stage, .input = spec_of(shapes.first), .output = spec_of(shapes.second)});
    }
    const PipelineCallbacks callbacks = this->callbacks();
    comm->alone([&](unisono::Communicator& open) {
      pipeline_.emplace(
          open, schedule, list, callbacks,
          unisono::parallel::PipelineOptions{.timeout_ms = timeout_ms, .record = record});
    });
  }
  ~Runner() { close(); }

  void run_step() {
    const py::gil_scoped_release unlocked;
    const Turn turn(is_used_);
    open().run_step();
  }
  std::string times_json() {
    const py::gil_scoped_release unlocked;
    const Turn turn(is_used_);
    return open().times_json();
  }
  std::size_t most_bytes_held() { return open().most_bytes_held(); }
  void close() {
    const py::gil_scoped_release unlocked;
    const Turn turn(is_used_);
    pipeline_.reset();
  }

 private:
  Pipeline& open() {
    if (!pipeline_) {
      throw unisono::Error(unisono::ErrorCode::usage, "the pipeline is closed\nmake a new one");
    }
    return *pipeline_;
  }
  std::function<void(int)> on_stage(const py::object& function) {
    if (function.is_none()) {
      return nullptr;
    }
    return [&function](int stage) {
      const py::gil_scoped_acquire locked;
      function(stage);
    };
  }
  // Wraps a Python function. `which`: number of the pass's tensors that the function takes.
  std::function<void(const PipelinePass&)> on_pass(const py::object& function, int which) {
    if (function.is_none()) {
      return nullptr;
    }
    return [&function, which](const PipelinePass& pass) {
      const py::gil_scoped_acquire locked;
      const py::object input = view_of(pass.input, pass.input_spec);
      if (which == 0) {
        function(pass.stage, pass.microbatch, input, view_of(pass.output, pass.output_spec));
        return;
      }
      const py::object gradient = view_of(pass.output_gradient, pass.output_spec);
      if (which == 1) {
        function(pass.stage, pass.microbatch, input, gradient,
                 view_of(pass.input_gradient, pass.input_spec));
      } else {
        function(pass.stage, pass.microbatch, input, gradient);
      }
    };
  }
  PipelineCallbacks callbacks() {
    PipelineCallbacks callbacks{.forward = on_pass(functions_.forward, 0),
                                .backward = on_pass(functions_.backward, 1),
                                .backward_input = on_pass(functions_.backward_input, 1),
                                .backward_weight = on_pass(functions_.backward_weight, 2),
                                .reduce_grad = on_stage(functions_.reduce_grad),
                                .unshard = on_stage(functions_.unshard),
                                .reshard = on_stage(functions_.reshard)};
    if (!functions_.overlap.is_none()) {
      callbacks.overlap = [this](std::span<const std::function<void()>> parts) {
        const py::gil_scoped_acquire locked;
        functions_.overlap(std::vector<std::function<void()>>(parts.begin(), parts.end()));
      };
    }
    return callbacks;
  }

  Functions functions_;
  std::optional<Pipeline> pipeline_;
  std::atomic_flag is_used_;  // in a step or in close()
};

}  // namespace

void define_pipelines(py::module_& module) {
  py::class_<PipelineSchedule>(
      module, "PipelineSchedule",
      "The order in which each rank computes its stages and microbatches; proved across the ranks.")
      .def_static(
          "by_name",
          [](const std::string& name, int ranks, int microbatches, int chunks) {
            return PipelineSchedule::by_name(
                name, {.ranks = ranks, .microbatches = microbatches, .chunks = chunks});
          },
          arg("name"), arg("ranks"), arg("microbatches"), arg("chunks") = 0,
          "Makes a schedule of `unisono pipeline list`.")
      .def_static("parse", &PipelineSchedule::parse, arg("text"),
                  "Reads the text of a file: unisono.pipeline/1, or torch's CSV.")
      .def_property_readonly("ranks", &PipelineSchedule::ranks)
      .def_property_readonly("stages", &PipelineSchedule::stages)
      .def_property_readonly("microbatches", &PipelineSchedule::microbatches)
      .def_property_readonly("capacity", &PipelineSchedule::capacity)
      .def("rank_of", &PipelineSchedule::rank_of, arg("stage"), "Returns the rank of a stage.")
      .def("stages_of", &PipelineSchedule::stages_of, arg("rank"), "Returns the stages of a rank.")
      .def("chains", &PipelineSchedule::chains,
           "The stages that a microbatch passes, in order: one sequence, or two if the ranks hold "
           "the model twice (DualPipe).")
      .def("actions_of", &PipelineSchedule::actions_of, arg("rank"),
           "Returns the actions of a rank in order: '0F0', '0SEND_F0', ...")
      .def("text", &PipelineSchedule::text, "As unisono.pipeline/1.");
  py::class_<Runner>(module, "PipelineRunner",
                     "Runs a pipeline schedule on the ranks of a communicator.")
      .def(py::init([](std::shared_ptr<Comm> comm, const PipelineSchedule& schedule,
                       const std::map<int, std::pair<py::object, py::object>>& stages,
                       const py::object& forward, const py::object& backward,
                       const py::object& backward_input, const py::object& backward_weight,
                       const py::object& reduce_grad, const py::object& unshard,
                       const py::object& reshard, const py::object& overlap, int timeout_ms,
                       bool record) {
             return std::make_unique<Runner>(
                 std::move(comm), schedule, stages,
                 Functions{forward, backward, backward_input, backward_weight, reduce_grad, unshard,
                           reshard, overlap},
                 timeout_ms, record);
           }),
           arg("comm"), arg("schedule"), arg("stages"), py::kw_only(), arg("forward"),
           arg("backward") = py::none(), arg("backward_input") = py::none(),
           arg("backward_weight") = py::none(), arg("reduce_grad") = py::none(),
           arg("unshard") = py::none(), arg("reshard") = py::none(), arg("overlap") = py::none(),
           arg("timeout_ms") = -1, arg("record") = false, "See unisono.pipeline.Pipeline.")
      .def("run_step", &Runner::run_step, "Runs all microbatches forward and backward. Collective.")
      .def("times_json", &Runner::times_json,
           "Returns the last step of all ranks as unisono.pipeline_times/1; needs record. "
           "Collective.")
      .def("close", &Runner::close, "Leaves the groups of the pipeline.")
      .def_property_readonly("most_bytes_held", &Runner::most_bytes_held);
}

}  // namespace unisono_python
