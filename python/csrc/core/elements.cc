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
  const char* dtype;  // unisono's name
  std::size_t units;
  const char* format;  // format character of the module `struct`, or nullptr
};
constexpr Named kTable[] = {{"bool", "bool", 1, "?"},
                            {"int8", "i8", 1, "b"},
                            {"uint8", "u8", 1, "B"},
                            {"int16", "i16", 1, "h"},
                            {"uint16", "u16", 1, "H"},
                            {"int32", "i32", 1, "i"},
                            {"uint32", "u32", 1, "I"},
                            {"int64", "i64", 1, "q"},
                            {"uint64", "u64", 1, "Q"},
                            {"float16", "f16", 1, "e"},
                            {"bfloat16", "bf16", 1, nullptr},
                            {"float8_e4m3fn", "f8e4m3", 1, nullptr},
                            {"float8_e5m2", "f8e5m2", 1, nullptr},
                            {"float32", "f32", 1, "f"},
                            {"float64", "f64", 1, "d"},
                            {"complex64", "f32", 2, nullptr},
                            {"complex128", "f64", 2, nullptr}};

// 16-bit integers, which unisono does not have, can only be moved, as two bytes.
Elements elements_of_row(const Named& row) {
  if (const auto dtype = unisono::parse_dtype(row.dtype)) {
    return {*dtype, row.units, true, row.name};
  }
  return {Dtype::u8, 2, false, row.name};
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
  for (const Named& row : kTable) {
    if (name == row.name || (name == row.dtype && row.units == 1 && unisono::parse_dtype(name))) {
      return elements_of_row(row);
    }
  }
  return std::nullopt;
}

const char* format_of(Dtype dtype) {
  for (const Named& row : kTable) {
    if (unisono::to_string(dtype) == row.dtype) {
      return row.format;
    }
  }
  return nullptr;
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
