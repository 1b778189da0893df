// unisono.parallel: the parallel layer for Python. Arrays belong to the caller. C++ memory is never
// exposed to Python; data that a later call may move or free is copied.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "communicator.h"
#include "unisono/parallel/any_span.hpp"
#include "unisono/parallel/tensor.hpp"

namespace unisono_python {

// Contiguous memory of an array of floats of at most 32 bits. Throws TypeError for other types.
class AnyFloats {
 public:
  AnyFloats(const py::handle& object, Memory::Use use, const char* name);
  unisono::parallel::AnySpan span() const {
    return {memory_.data(), memory_.count(), memory_.elements().dtype};
  }

 private:
  Memory memory_;
};

// Contiguous memory of a float32 or int32 array. Throws TypeError for other types.
class Floats {
 public:
  Floats(const py::handle& object, Memory::Use use, const char* name);
  std::span<float> span() const {
    return {reinterpret_cast<float*>(memory_.data()), memory_.count()};
  }

 private:
  Memory memory_;
};
class Integers {
 public:
  Integers(const py::handle& object, const char* name);
  std::span<const std::int32_t> span() const {
    return {reinterpret_cast<const std::int32_t*>(memory_.data()), memory_.count()};
  }

 private:
  Memory memory_;
};

// An array with its shape and strides. Types sent as several elements (complex64, int16) have an
// additional last dimension.
class Array {
 public:
  Array(const py::handle& object, Memory::Use use, const char* name);
  const unisono::parallel::Tensor& tensor() const { return tensor_; }
  const Elements& elements() const { return memory_.elements(); }
  std::size_t dims() const { return layout_.shape.size(); }  // in the caller's array

 private:
  Layout layout_;
  Memory memory_;
  unisono::parallel::Tensor tensor_;
};

// A library object that refers to communicators, and keeps them alive.
template <typename Thing>
class Held {
 public:
  // Creates the object by make(communicators). Calls have exclusive use of the first communicator.
  template <typename Make>
  Held(const std::vector<std::shared_ptr<Comm>>& comms, const Make& make) : comm_(comms.front()) {
    for (const auto& comm : comms) {
      shared_.push_back(comm->shared());
    }
    comm_->alone([&](unisono::Communicator&) { thing_.emplace(make(shared_)); });
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { close(); }

  // Calls `call` without the GIL and with exclusive use of the communicator.
  template <typename Call>
  auto with(Call call) {
    return comm_->alone([&](unisono::Communicator&) {
      if (!thing_.has_value()) {
        throw unisono::Error(unisono::ErrorCode::usage, "this object is closed\nmake a new one");
      }
      return call(*thing_);
    });
  }
  void close() {
    comm_->locked([this] {
      thing_.reset();
      shared_.clear();
    });
  }

 private:
  std::shared_ptr<Comm> comm_;
  std::vector<std::shared_ptr<unisono::Communicator>> shared_;  // outlive `thing_`
  std::optional<Thing> thing_;
};

// Define the functions and classes of the module unisono._core._parallel.
void define_parallel(py::module_& core);
void define_mesh(py::module_& module);
void define_redistribution(py::module_& module);
void define_sharded_training(py::module_& module);
void define_layers(py::module_& module);
void define_context(py::module_& module);
void define_reshard(py::module_& module);

}  // namespace unisono_python
