// The types of elements, by the names and codes that Python's libraries have for them.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <optional>
#include <string>

#include "unisono/unisono.hpp"

namespace unisono_python {

namespace py = pybind11;

// The form in which elements of a type are sent: `units` elements of `dtype` each.
struct Elements {
  unisono::Dtype dtype = unisono::Dtype::u8;
  std::size_t units = 1;
  bool reduces = true;  // otherwise they can only be moved, as integers of 16 bits
  std::string name = "uint8";
  std::size_t bytes() const { return unisono::size_of(dtype) * units; }
  bool is_complex() const { return name == "complex64" || name == "complex128"; }
};

// One of the names that Python's libraries have, or unisono's.
std::optional<Elements> find_elements(const std::string& name);
// Returns the buffer protocol's format of the type; nullptr: it has none.
const char* format_of(unisono::Dtype dtype);
// By a format character of the module `struct`; nullptr: bytes.
std::optional<Elements> elements_of_format(const char* format, std::size_t item_bytes);
// "bf16", "bfloat16", numpy's and torch's dtypes; None: nullopt. Throws TypeError.
std::optional<Elements> elements_of_dtype(py::handle dtype);

namespace dlpack {
struct DataType;
}
std::optional<Elements> elements_of_dlpack(const dlpack::DataType& type);
dlpack::DataType dlpack_type_of(const Elements& elements);

}  // namespace unisono_python
