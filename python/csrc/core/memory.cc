#include "memory.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "dlpack.h"

namespace unisono_python {
namespace {

constexpr const char* kRaw = "raw bytes";

[[noreturn]] void refuse_value(const char* name, const std::string& what) {
  throw py::value_error(std::string(name) + " " + what);
}

[[noreturn]] void refuse_strides(const char* name) {
  refuse_value(name, "is not C-contiguous; pass a copy, such as numpy.ascontiguousarray()");
}

std::ptrdiff_t elements_of_stride(py::ssize_t bytes, py::ssize_t item, const char* name) {
  if (item == 0 || bytes % item != 0) {
    refuse_value(name, "has strides that are not multiples of its element size; pass a copy");
  }
  return bytes / item;
}

[[noreturn]] void refuse_read_only(const char* name) {
  refuse_value(name, "is read-only, but the result is written to it; pass writable memory");
}

// Returns an owner that acquires the GIL to release `what`, because C++ may drop the last reference
// without the GIL.
template <typename Release>
std::shared_ptr<void> owner(void* what, Release release) {
  return {what, [release](void* pointer) {
            const py::gil_scoped_acquire locked;
            release(pointer);
          }};
}

}  // namespace

void Memory::take_type(const std::optional<Elements>& own, std::size_t item_bytes,
                       const std::optional<Elements>& asked, const char* name,
                       const std::string& shown) {
  if (!asked.has_value()) {
    if (!own.has_value()) {
      throw py::type_error(std::string(name) + " has elements of type '" + shown +
                           "', which unisono does not know; pass dtype= to say how to treat them");
    }
    elements_ = *own;
    return;
  }
  const bool raw = (item_bytes == 1 || asked->name == kRaw) && bytes_ % asked->bytes() == 0;
  if (item_bytes != asked->bytes() && !raw) {
    throw py::type_error(std::string(name) + ": elements of " + std::to_string(item_bytes) +
                         " bytes cannot be treated as " + asked->name);
  }
  elements_ = *asked;
}

std::optional<Memory> Memory::of_buffer(py::handle object, Use use, const char* name,
                                        const std::optional<Elements>& dtype, Layout* layout) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    return std::nullopt;
  }
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), view.get(), PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();  // numpy arrays with dtypes of other libraries
    return std::nullopt;
  }
  Memory memory;
  Py_buffer& got = *view;
  memory.owner_ = owner(view.release(), [](void* pointer) {
    const std::unique_ptr<Py_buffer> mine(static_cast<Py_buffer*>(pointer));
    PyBuffer_Release(mine.get());
  });
  if (layout != nullptr) {
    for (int i = 0; i < got.ndim; ++i) {
      layout->shape.push_back(static_cast<std::size_t>(got.shape[i]));
      layout->strides.push_back(elements_of_stride(got.strides[i], got.itemsize, name));
    }
  } else if (PyBuffer_IsContiguous(&got, 'C') == 0) {
    refuse_strides(name);
  }
  if (use == Use::write && got.readonly != 0) {
    refuse_read_only(name);
  }
  memory.data_ = static_cast<std::byte*>(got.buf);
  memory.bytes_ = static_cast<std::size_t>(got.len);
  const auto item = static_cast<std::size_t>(got.itemsize);
  memory.take_type(elements_of_format(got.format, item), item, dtype, name,
                   got.format == nullptr ? "B" : got.format);
  return memory;
}

// Handles numpy arrays of types that the buffer protocol cannot name, such as those of ml_dtypes.
std::optional<Memory> Memory::of_array(py::handle object, Use use, const char* name,
                                       const std::optional<Elements>& dtype, Layout* layout) {
  if (!py::hasattr(object, "__array_interface__") || !py::hasattr(object, "dtype")) {
    return std::nullopt;
  }
  const py::dict interface = object.attr("__array_interface__");
  const py::tuple data = interface["data"];
  if (layout != nullptr) {
    layout->shape = object.attr("shape").cast<std::vector<std::size_t>>();
    const auto item = object.attr("itemsize").cast<py::ssize_t>();
    for (const auto stride : object.attr("strides").cast<std::vector<py::ssize_t>>()) {
      layout->strides.push_back(elements_of_stride(stride, item, name));
    }
  } else if (interface.contains("strides") && !interface["strides"].is_none()) {
    refuse_strides(name);
  }
  if (use == Use::write && data[1].cast<bool>()) {
    refuse_read_only(name);
  }
  const std::string type = py::str(object.attr("dtype").attr("name"));
  if (py::str(object.attr("dtype").attr("byteorder")).cast<std::string>() == ">") {
    throw py::type_error(std::string(name) + " has another byte order than this machine");
  }
  Memory memory;
  memory.data_ = reinterpret_cast<std::byte*>(data[0].cast<std::uintptr_t>());
  memory.bytes_ = object.attr("nbytes").cast<std::size_t>();
  memory.owner_ = owner(object.inc_ref().ptr(),
                        [](void* pointer) { Py_DECREF(static_cast<PyObject*>(pointer)); });
  memory.take_type(find_elements(type), object.attr("itemsize").cast<std::size_t>(), dtype, name,
                   type);
  return memory;
}

namespace {

template <typename... Stream>
py::object capsule_of(py::handle object, const Stream&... stream) {
  try {
    return object.attr("__dlpack__")(stream..., py::arg("max_version") = py::make_tuple(1, 1));
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) {
      throw;
    }
    return object.attr("__dlpack__")(stream...);  // DLPack before version 1
  }
}

struct Exported {
  dlpack::Tensor* tensor = nullptr;
  bool read_only = false;
  std::shared_ptr<void> owner = nullptr;
};

Exported take_capsule(const py::object& capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0) {
    auto* managed = static_cast<dlpack::ManagedVersioned*>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (managed->version.major != 1) {
      throw py::type_error("a tensor of DLPack " + std::to_string(managed->version.major) +
                           "; unisono knows version 1");
    }
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    return {&managed->tensor, (managed->flags & dlpack::kReadOnly) != 0,
            owner(managed, [](void* pointer) {
              auto* mine = static_cast<dlpack::ManagedVersioned*>(pointer);
              if (mine->deleter != nullptr) {
                mine->deleter(mine);
              }
            })};
  }
  auto* managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (managed == nullptr) {
    throw py::error_already_set();
  }
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  return {&managed->tensor, false, owner(managed, [](void* pointer) {
            auto* mine = static_cast<dlpack::Managed*>(pointer);
            if (mine->deleter != nullptr) {
              mine->deleter(mine);
            }
          })};
}

bool is_packed(const dlpack::Tensor& tensor) {
  std::int64_t expected = 1;
  for (int i = tensor.dimensions; tensor.strides != nullptr && i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) {
      return false;
    }
    expected *= tensor.shape[i];
  }
  return true;
}

void take_layout(const dlpack::Tensor& tensor, Layout& layout) {
  std::ptrdiff_t packed = 1;
  layout.strides.resize(static_cast<std::size_t>(tensor.dimensions));
  layout.shape.assign(tensor.shape, tensor.shape + tensor.dimensions);
  for (int i = tensor.dimensions; i-- > 0;) {
    layout.strides[static_cast<std::size_t>(i)] =
        tensor.strides == nullptr ? packed : tensor.strides[i];
    packed *= tensor.shape[i];
  }
}

}  // namespace

std::optional<Memory> Memory::of_dlpack(py::handle object, Use use, const char* name,
                                        const std::optional<Elements>& dtype, Layout* layout) {
  if (!py::hasattr(object, "__dlpack__")) {
    return std::nullopt;
  }
  if (py::hasattr(object, "__dlpack_device__")) {  // checked before copying or waiting
    const py::tuple device = object.attr("__dlpack_device__")();
    const int type = device[0].cast<int>();
    if (type != dlpack::kCpu && type != dlpack::kCudaHost) {
      refuse_value(name, "is not in CPU memory; copy it there first");
    }
  }
  return of_capsule(capsule_of(object), use, name, dtype, layout);
}

Memory Memory::of_capsule(const py::object& capsule, Use use, const char* name,
                          const std::optional<Elements>& dtype, Layout* layout) {
  Exported got = take_capsule(capsule);
  const dlpack::Tensor& tensor = *got.tensor;
  std::size_t count = 1;
  for (int i = 0; i < tensor.dimensions; ++i) {
    count *= static_cast<std::size_t>(tensor.shape[i]);
  }
  if (layout != nullptr) {
    take_layout(tensor, *layout);
  } else if (count > 0 && !is_packed(tensor)) {
    refuse_strides(name);
  }
  if (use == Use::write && got.read_only) {
    refuse_read_only(name);
  }
  const std::size_t item = std::size_t{tensor.type.bits} * tensor.type.lanes / 8;
  Memory memory;
  memory.data_ = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  memory.bytes_ = count * item;
  memory.owner_ = std::move(got.owner);
  memory.take_type(
      elements_of_dlpack(tensor.type), item, dtype, name,
      "DLPack " + std::to_string(tensor.type.code) + "/" + std::to_string(tensor.type.bits));
  return memory;
}

Memory Memory::bytes_of(py::handle object, Use use, const char* name) {
  return of(object, use, name, Elements{.name = kRaw});
}

Memory Memory::of(py::handle object, Use use, const char* name,
                  const std::optional<Elements>& dtype) {
  return any(object, use, name, dtype, nullptr);
}

Memory Memory::strided(py::handle object, Use use, const char* name, Layout& layout) {
  return any(object, use, name, std::nullopt, &layout);
}

// https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
std::optional<Memory> Memory::of_cuda_array(py::handle object, Use use, const char* name,
                                            const std::optional<Elements>& dtype) {
  if (!py::hasattr(object, "__cuda_array_interface__")) {
    return std::nullopt;
  }
  const py::dict interface = object.attr("__cuda_array_interface__");
  const py::tuple data = interface["data"];
  if (interface.contains("strides") && !interface["strides"].is_none()) {
    refuse_strides(name);
  }
  if (use == Use::write && data[1].cast<bool>()) {
    refuse_read_only(name);
  }
  const auto type = interface["typestr"].cast<std::string>();  // "<f4"
  const auto item = static_cast<std::size_t>(std::stoul(type.substr(2)));
  std::size_t count = 1;
  for (const std::size_t extent : interface["shape"].cast<std::vector<std::size_t>>()) {
    count *= extent;
  }
  const std::string bits = std::to_string(8 * item);
  const std::map<char, std::string> names{{'b', "bool"},
                                          {'i', "int" + bits},
                                          {'u', "uint" + bits},
                                          {'f', "float" + bits},
                                          {'c', "complex" + bits}};
  const auto named = names.find(type[1]);
  Memory memory;
  memory.data_ = reinterpret_cast<std::byte*>(data[0].cast<std::uintptr_t>());
  memory.bytes_ = count * item;
  memory.owner_ = owner(object.inc_ref().ptr(),
                        [](void* pointer) { Py_DECREF(static_cast<PyObject*>(pointer)); });
  memory.take_type(named == names.end() ? std::nullopt : find_elements(named->second), item, dtype,
                   name, type);
  return memory;
}

Memory Memory::on_device(py::handle object, Use use, const char* name,
                         const std::optional<Elements>& dtype) {
  if (py::hasattr(object, "__dlpack_device__")) {
    const py::tuple device = object.attr("__dlpack_device__")();
    const int type = device[0].cast<int>();
    if (type != dlpack::kCuda && type != dlpack::kCudaManaged) {
      refuse_value(name, "is not in GPU memory; pass CPU memory to the communicator instead");
    }
    // -1: no synchronisation is needed, because the call runs on the caller's stream after earlier
    // work.
    return of_capsule(capsule_of(object, py::arg("stream") = -1), use, name, dtype, nullptr);
  }
  if (auto memory = of_cuda_array(object, use, name, dtype)) {
    return std::move(*memory);
  }
  throw py::type_error(std::string(name) + " is a " +
                       py::str(py::type::of(object).attr("__name__")).cast<std::string>() +
                       ", which has no GPU memory; pass a tensor with __dlpack__ or "
                       "__cuda_array_interface__");
}

Memory Memory::any(py::handle object, Use use, const char* name,
                   const std::optional<Elements>& dtype, Layout* layout) {
  for (const auto read : {of_buffer, of_array, of_dlpack}) {
    if (auto memory = read(object, use, name, dtype, layout)) {
      return std::move(*memory);
    }
  }
  throw py::type_error(std::string(name) + " is a " +
                       py::str(py::type::of(object).attr("__name__")).cast<std::string>() +
                       ", which has no memory to share; pass an array (numpy, bytearray, or "
                       "anything with __dlpack__)");
}

}  // namespace unisono_python
