#include "parallel.h"

#include <string>

namespace unisono_python {
namespace {

Memory of_type(const py::handle& object, Memory::Use use, const char* name, unisono::Dtype dtype,
               const char* type) {
  Memory memory = Memory::of(object, use, name, std::nullopt);
  if (memory.elements().dtype != dtype || memory.elements().units != 1) {
    throw py::type_error(std::string(name) + " has elements of type " + memory.elements().name +
                         "; it must be " + type);
  }
  return memory;
}

}  // namespace

AnyFloats::AnyFloats(const py::handle& object, Memory::Use use, const char* name)
    : memory_(Memory::of(object, use, name, std::nullopt)) {
  using unisono::Dtype;
  const Dtype dtype = memory_.elements().dtype;
  const bool is_float = dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16 ||
                        dtype == Dtype::f8e4m3 || dtype == Dtype::f8e5m2;
  if (!is_float || memory_.elements().units != 1 || !memory_.elements().reduces) {
    throw py::type_error(std::string(name) + " has elements of type " + memory_.elements().name +
                         "; it must be float32, bfloat16, float16, float8_e4m3fn or float8_e5m2");
  }
}

Floats::Floats(const py::handle& object, Memory::Use use, const char* name)
    : memory_(of_type(object, use, name, unisono::Dtype::f32, "float32")) {}

Integers::Integers(const py::handle& object, const char* name)
    : memory_(of_type(object, Memory::Use::read, name, unisono::Dtype::i32, "int32")) {}

Array::Array(const py::handle& object, Memory::Use use, const char* name)
    : memory_(Memory::strided(object, use, name, layout_)),
      tensor_{.data = memory_.data(),
              .dtype = memory_.elements().dtype,
              .shape = layout_.shape,
              .strides = layout_.strides} {
  const std::size_t units = memory_.elements().units;
  if (units > 1) {
    for (std::ptrdiff_t& stride : tensor_.strides) {
      stride *= static_cast<std::ptrdiff_t>(units);
    }
    tensor_.shape.push_back(units);
    tensor_.strides.push_back(1);
  }
  if (tensor_.dims() > unisono::parallel::kMostDims) {
    throw py::value_error(std::string(name) + " has " + std::to_string(layout_.shape.size()) +
                          " dimensions; at most " + std::to_string(unisono::parallel::kMostDims) +
                          " are possible, one less of complex numbers");
  }
}

void define_parallel(py::module_& core) {
  py::module_ module = core.def_submodule("_parallel", "Use it through unisono.parallel.");
  define_mesh(module);
  define_redistribution(module);
  define_sharded_training(module);
  define_layers(module);
  define_context(module);
  define_reshard(module);
}

}  // namespace unisono_python
