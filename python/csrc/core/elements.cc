#include "elements.h"

#include <cstdint>
#include <cstring>
#include <map>

#include "dlpack.h"

namespace unisono_python {
namespace {

using unisono::Dtype;

struct Named {
  const char* name;
  Elements elements;
};
const Named* table() {
  static const Named kTable[] = {{"bool", {Dtype::boolean, 1, true, "bool"}},
                                 {"int8", {Dtype::i8, 1, true, "int8"}},
                                 {"uint8", {Dtype::u8, 1, true, "uint8"}},
                                 {"int16", {Dtype::u8, 2, false, "int16"}},
                                 {"uint16", {Dtype::u8, 2, false, "uint16"}},
                                 {"int32", {Dtype::i32, 1, true, "int32"}},
                                 {"uint32", {Dtype::u32, 1, true, "uint32"}},
                                 {"int64", {Dtype::i64, 1, true, "int64"}},
                                 {"uint64", {Dtype::u64, 1, true, "uint64"}},
                                 {"float16", {Dtype::f16, 1, true, "float16"}},
                                 {"bfloat16", {Dtype::bf16, 1, true, "bfloat16"}},
                                 {"float8_e4m3fn", {Dtype::f8e4m3, 1, true, "float8_e4m3fn"}},
                                 {"float8_e5m2", {Dtype::f8e5m2, 1, true, "float8_e5m2"}},
                                 {"float32", {Dtype::f32, 1, true, "float32"}},
                                 {"float64", {Dtype::f64, 1, true, "float64"}},
                                 {"complex64", {Dtype::f32, 2, true, "complex64"}},
                                 {"complex128", {Dtype::f64, 2, true, "complex128"}},
                                 {nullptr, {}}};
  return kTable;
}

std::string name_of_dtype(py::handle dtype) {
  if (py::isinstance<py::str>(dtype)) {
    return dtype.cast<std::string>();
  }
  for (const char* attribute : {"name", "__name__"}) {
    if (py::hasattr(dtype, attribute)) {
      return py::str(dtype.attr(attribute));
    }
  }
  const std::string text = py::str(dtype);
  return text.substr(text.rfind('.') + 1);  // "torch.bfloat16"
}

std::optional<Elements> find_integer(bool is_signed, std::size_t bytes) {
  return find_elements((is_signed ? "int" : "uint") + std::to_string(8 * bytes));
}

}  // namespace

std::optional<Elements> find_elements(const std::string& name) {
  for (const Named* row = table(); row->name != nullptr; ++row) {
    if (name == row->name) {
      return row->elements;
    }
  }
  if (const auto dtype = unisono::parse_dtype(name)) {
    for (const Named* row = table(); row->name != nullptr; ++row) {
      if (row->elements.dtype == *dtype && row->elements.units == 1) {
        return row->elements;
      }
    }
  }
  return std::nullopt;
}

std::optional<Elements> elements_of_format(const char* format, std::size_t item_bytes) {
  const char* text = format == nullptr ? "B" : format;
  text += *text == '@' || *text == '=' || *text == '<' ? 1 : 0;
  if (std::strcmp(text, "Zf") == 0 || std::strcmp(text, "Zd") == 0) {
    return find_elements(text[1] == 'f' ? "complex64" : "complex128");
  }
  if (*text == '\0' || text[1] != '\0') {
    return std::nullopt;
  }
  if (std::strchr("bhilqn", *text) != nullptr) {
    return find_integer(true, item_bytes);
  }
  if (std::strchr("BHILQNc", *text) != nullptr) {
    return find_integer(false, item_bytes);
  }
  switch (*text) {
    case '?':
      return find_elements("bool");
    case 'e':
      return find_elements("float16");
    case 'f':
      return find_elements("float32");
    case 'd':
      return find_elements("float64");
    default:
      return std::nullopt;
  }
}

std::optional<Elements> elements_of_dlpack(const dlpack::DataType& type) {
  if (type.lanes != 1) {
    return std::nullopt;
  }
  switch (type.code) {
    case dlpack::kInt:
    case dlpack::kUint:
      return find_integer(type.code == dlpack::kInt, type.bits / 8U);
    case dlpack::kFloat:
      return find_elements("float" + std::to_string(type.bits));
    case dlpack::kBfloat:
      return find_elements("bfloat16");
    case dlpack::kComplex:
      return find_elements("complex" + std::to_string(type.bits));
    case dlpack::kBool:
      return find_elements("bool");
    case dlpack::kFloat8E4m3fn:
      return find_elements("float8_e4m3fn");
    case dlpack::kFloat8E5m2:
      return find_elements("float8_e5m2");
    default:
      return std::nullopt;
  }
}

std::optional<Elements> elements_of_dtype(py::handle dtype) {
  if (dtype.is_none()) {
    return std::nullopt;
  }
  const std::string name = name_of_dtype(dtype);
  if (auto found = find_elements(name)) {
    return found;
  }
  throw py::type_error("unknown dtype '" + name +
                       "'; known are bool, int8 to int64, uint8 to uint64, float16, bfloat16, "
                       "float8_e4m3fn, float8_e5m2, float32, float64, complex64, complex128");
}

dlpack::DataType dlpack_type_of(const Elements& elements) {
  const std::string kind = elements.name.substr(0, elements.name.find_first_of("0123456789"));
  const std::map<std::string, std::uint8_t> codes{
      {"int", dlpack::kInt},       {"uint", dlpack::kUint},       {"float", dlpack::kFloat},
      {"bfloat", dlpack::kBfloat}, {"complex", dlpack::kComplex}, {"bool", dlpack::kBool}};
  const bool narrow = elements.name.starts_with("float8_");
  const std::uint8_t code = !narrow                          ? codes.at(kind)
                            : elements.name == "float8_e5m2" ? dlpack::kFloat8E5m2
                                                             : dlpack::kFloat8E4m3fn;
  return {.code = code, .bits = static_cast<std::uint8_t>(8 * elements.bytes()), .lanes = 1};
}

}  // namespace unisono_python
