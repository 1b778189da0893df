// Element types, by the names and codes of Python libraries.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <optional>
#include <string>

#include "unisono/unisono.hpp"

namespace unisono_python {

namespace py = pybind11;

// Encoding in which elements of a type are sent: `units` elements of `dtype` each.
struct Elements {
  unisono::Dtype dtype = unisono::Dtype::u8;
  std::size_t units = 1;
  bool reduces = true;  // false: elements can only be moved, such as 16-bit integers
  std::string name = "uint8";
  std::size_t bytes() const { return unisono::size_of(dtype) * units; }
  bool is_complex() const { return name == "complex64" || name == "complex128"; }
};

// Finds a type by a name from Python libraries, or by unisono's name.
std::optional<Elements> find_elements(const std::string& name);
// Returns the type's format in the buffer protocol, or nullptr.
const char* format_of(unisono::Dtype dtype);
// Finds a type by a format character of the module `struct`; nullptr means bytes.
std::optional<Elements> elements_of_format(const char* format, std::size_t item_bytes);
// Converts "bf16", "bfloat16", or a dtype of numpy or torch. Returns nullopt for None. Throws
// TypeError.
std::optional<Elements> elements_of_dtype(py::handle dtype);

namespace dlpack {
struct DataType;
}
std::optional<Elements> elements_of_dlpack(const dlpack::DataType& type);
dlpack::DataType dlpack_type_of(const Elements& elements);

}  // namespace unisono_python
