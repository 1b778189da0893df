#include "devices.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "collective_calls.h"
#include "communicator.h"
#include "dlpack.h"
#include "unisono/device.hpp"

namespace unisono_python {
namespace {

using py::arg;
using Object = const py::object&;

// Returns the number of bytes. If it cannot be represented, returns a size larger than any device's
// memory, so that all ranks get the error.
std::size_t bytes_of(const std::vector<std::size_t>& shape, std::size_t element) {
  constexpr std::size_t kTooMany = std::numeric_limits<std::size_t>::max();
  std::size_t bytes = element;
  for (const std::size_t size : shape) {
    bytes = size != 0 && bytes > kTooMany / size ? kTooMany : bytes * size;
  }
  return bytes;
}

// A group, which lives as long as it or one of its arrays is used. Created and destroyed without
// the GIL.
struct Shared {
  Shared(std::shared_ptr<unisono::Communicator> comm, const unisono::DeviceOptions& options)
      : ranks(std::move(comm)), device(options.device), group(*ranks, options) {}
  std::shared_ptr<unisono::Communicator> ranks;
  int device;
  std::mutex calling;
  unisono::DeviceGroup group;
};

std::shared_ptr<Shared> share(std::unique_ptr<Shared> group) {
  return {group.release(), [](Shared* mine) {
            const py::gil_scoped_release unlocked;
            delete mine;
          }};
}

// Accepts a number, or a stream of torch, CuPy or any library with __cuda_stream__. None: torch's
// current stream if the program uses CUDA through torch; otherwise the legacy default stream.
void* stream_of(Object stream, int device) {
  const auto at = [](Object number) {
    return reinterpret_cast<void*>(number.cast<std::uintptr_t>());
  };
  if (stream.is_none()) {
    const py::dict modules = py::module_::import("sys").attr("modules");
    if (!modules.contains("torch")) {
      return nullptr;
    }
    const py::object cuda = modules["torch"].attr("cuda");
    return cuda.attr("is_initialized")().cast<bool>()
               ? at(cuda.attr("current_stream")(device).attr("cuda_stream"))
               : nullptr;
  }
  if (py::isinstance<py::int_>(stream)) {
    return at(stream);
  }
  if (py::hasattr(stream, "__cuda_stream__")) {
    const py::object told = stream.attr("__cuda_stream__");
    const py::tuple of_stream = PyCallable_Check(told.ptr()) != 0 ? told() : told;
    return at(of_stream[1]);
  }
  for (const char* name : {"cuda_stream", "ptr"}) {
    if (py::hasattr(stream, name)) {
      return at(stream.attr(name));
    }
  }
  throw py::type_error(
      "stream is a " + py::str(py::type::of(stream).attr("__name__")).cast<std::string>() +
      "; give a stream of torch or CuPy, one with __cuda_stream__, its number, or None");
}

// Device memory that all ranks can access.
class Array {
 public:
  Array(std::shared_ptr<Shared> group, std::vector<std::size_t> shape, Elements elements,
        void* data)
      : group_(std::move(group)),
        shape_(std::move(shape)),
        elements_(std::move(elements)),
        data_(data) {}

  const std::vector<std::size_t>& shape() const { return shape_; }
  const std::string& dtype() const { return elements_.name; }

  py::dict cuda_array_interface() const {
    const std::string kind = elements_.name.substr(0, elements_.name.find_first_of("0123456789"));
    const bool said = kind == "bool" || kind == "int" || kind == "uint" || kind == "complex" ||
                      elements_.name == "float16" || elements_.name == "float32" ||
                      elements_.name == "float64";
    if (!said) {
      throw py::attribute_error("__cuda_array_interface__ has no " + elements_.name +
                                "; __dlpack__ has");
    }
    py::dict told;
    told["shape"] = py::tuple(py::cast(shape_));
    told["typestr"] = (elements_.bytes() == 1 ? "|" : "<") + kind.substr(0, 1) +
                      std::to_string(elements_.bytes());
    told["data"] = py::make_tuple(reinterpret_cast<std::uintptr_t>(data_), false);
    told["version"] = 3;
    told["strides"] = py::none();
    return told;
  }
  std::pair<int, int> dlpack_device() const { return {dlpack::kCuda, group_->device}; }
  py::capsule dlpack() const;

 private:
  std::shared_ptr<Shared> group_;
  std::vector<std::size_t> shape_;
  Elements elements_;
  void* data_;
};

struct Export {
  dlpack::Managed managed = {};
  std::vector<std::int64_t> shape = {};
  std::shared_ptr<Shared> group = nullptr;
};

py::capsule Array::dlpack() const {
  auto made = std::make_unique<Export>();
  made->shape.assign(shape_.begin(), shape_.end());
  made->group = group_;
  made->managed.tensor = {.data = data_,
                          .device = {.type = dlpack::kCuda, .id = group_->device},
                          .dimensions = static_cast<std::int32_t>(shape_.size()),
                          .type = dlpack_type_of(elements_),
                          .shape = made->shape.data(),
                          .strides = nullptr,
                          .byte_offset = 0};
  made->managed.context = made.get();
  made->managed.deleter = [](dlpack::Managed* self) {
    const py::gil_scoped_acquire locked;
    delete static_cast<Export*>(self->context);
  };
  return py::capsule(&made.release()->managed, "dltensor", [](PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor") != 0) {  // not consumed
      auto* self = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, "dltensor"));
      self->deleter(self);
    }
  });
}

class Group {
 public:
  Group(Comm& comm, const unisono::DeviceOptions& options) {
    auto ranks = comm.shared();
    group_ = share(comm.alone([&](unisono::Communicator&) {
      return std::make_unique<Shared>(std::move(ranks), options);
    }));
  }

  // Returns a copy, because another thread may close the group during the call.
  std::shared_ptr<Shared> open() const {
    if (group_ == nullptr) {
      throw unisono::Error(unisono::ErrorCode::usage, "the device group is closed\nmake a new one");
    }
    return group_;
  }
  void close() { group_.reset(); }
  bool is_closed() const { return group_ == nullptr; }
  int rank() const { return open()->ranks->rank(); }
  int size() const { return open()->ranks->size(); }
  int device() const { return open()->device; }

  std::shared_ptr<Job> job(Object dtype, const std::string& algorithm) const {
    return std::make_shared<Job>(rank(), size(),
                                 Common{.dtype = dtype, .algorithm = algorithm, .on_device = true});
  }
  py::object run(const std::shared_ptr<Job>& job, Object stream) {
    const std::shared_ptr<Shared> shared = open();
    void* const on = stream_of(stream, shared->device);
    {
      const py::gil_scoped_release unlocked;
      const std::lock_guard lock(shared->calling);
      shared->group.run(job->call, on);
    }
    return job->result;
  }
  std::unique_ptr<Array> allocate(std::vector<std::size_t> shape, Object dtype) {
    const Elements elements = elements_of_dtype(dtype).value();
    const std::size_t bytes = bytes_of(shape, elements.bytes());
    const std::shared_ptr<Shared> shared = open();
    void* data = nullptr;
    {
      const py::gil_scoped_release unlocked;
      const std::lock_guard lock(shared->calling);
      data = shared->group.allocate(bytes);
    }
    return std::make_unique<Array>(shared, std::move(shape), elements, data);
  }
  void check() const {
    const std::shared_ptr<Shared> shared = open();
    const py::gil_scoped_release unlocked;
    shared->group.check();
  }
  void synchronize(Object stream, int timeout_ms) const {
    const std::shared_ptr<Shared> shared = open();
    void* const on = stream_of(stream, shared->device);
    const py::gil_scoped_release unlocked;
    shared->group.synchronize(on, timeout_ms);
  }

 private:
  std::shared_ptr<Shared> group_;
};

template <typename... Inputs, typename... Extra>
void define(py::class_<Group>& group, const char* name, unisono::Collective collective,
            void (*fill)(Job&, Inputs...), const std::string& doc, const Extra&... extra) {
  group.def(
      name,
      [fill, collective](Group& self, Inputs... inputs, Object dtype, const std::string& algorithm,
                         Object stream) {
        auto job = self.job(dtype, algorithm);
        job->call.collective = collective;
        fill(*job, inputs...);
        return self.run(job, stream);
      },
      extra..., arg("dtype") = py::none(), arg("algorithm") = "", arg("stream") = py::none(),
      doc.c_str());
}

}  // namespace

void define_devices(py::module_& module) {
  py::class_<Array>(module, "DeviceArray", "Device memory that all ranks of a group can reach.")
      .def_property_readonly("shape",
                             [](const Array& self) { return py::tuple(py::cast(self.shape())); })
      .def_property_readonly("dtype", &Array::dtype)
      .def_property_readonly("__cuda_array_interface__", &Array::cuda_array_interface)
      .def("__dlpack_device__", &Array::dlpack_device)
      .def(
          "__dlpack__", [](const Array& self, const py::kwargs&) { return self.dlpack(); },
          "Does not wait: the caller passes the stream on which the memory was written.");
  py::class_<Group> group(module, "DeviceGroup", "See unisono.device.DeviceGroup.");
  group
      .def(py::init(
               [](Comm& comm, int device, int channels, int timeout_ms, std::size_t scratch_bytes) {
                 return std::make_unique<Group>(
                     comm, unisono::DeviceOptions{.device = device,
                                                  .channels = channels,
                                                  .timeout_ms = timeout_ms,
                                                  .scratch_bytes = scratch_bytes});
               }),
           arg("comm"), py::kw_only(), arg("device") = 0, arg("channels") = 0,
           arg("timeout_ms") = -1, arg("scratch_bytes") = unisono::DeviceOptions{}.scratch_bytes)
      .def_property_readonly("rank", &Group::rank)
      .def_property_readonly("size", &Group::size)
      .def_property_readonly("device", &Group::device)
      .def_property_readonly("closed", &Group::is_closed)
      .def("allocate", &Group::allocate, arg("shape"), arg("dtype") = "float32")
      .def("check", &Group::check)
      .def("synchronize", &Group::synchronize, arg("stream") = py::none(), arg("timeout_ms") = 0)
      .def("close", &Group::close);
  define_collective_calls([&group](const char* name, unisono::Collective collective, auto fill,
                                   const std::string& doc, const auto&... extra) {
    if (collective != unisono::Collective::scan &&
        collective != unisono::Collective::exclusive_scan) {  // not supported on device memory
      define(group, name, collective, fill, doc, extra...);
    }
  });
}

}  // namespace unisono_python
