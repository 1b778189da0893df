// Accesses the memory of Python objects: through the buffer protocol (numpy, bytearray, array) or
// __dlpack__ (every tensor library); on a GPU through __dlpack__ or __cuda_array_interface__.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elements.h"

namespace unisono_python {

// Layout of an array. Strides are in elements, and may be negative.
struct Layout {
  std::vector<std::size_t> shape = {};
  std::vector<std::ptrdiff_t> strides = {};
};

// Memory that stays in place during this object's lifetime. Create and destroy it with the GIL.
class Memory {
 public:
  enum class Use { read, write };
  // Returns an object's contiguous memory. `dtype`, if given, is the type as which the bytes are
  // interpreted. Throws TypeError for objects without memory or with another type, and ValueError
  // for memory that is not contiguous or is read-only.
  static Memory of(py::handle object, Use use, const char* name,
                   const std::optional<Elements>& dtype);
  // Does the same for arrays with any strides.
  static Memory strided(py::handle object, Use use, const char* name, Layout& layout);
  // Returns memory with elements of any type, even an unknown type, as bytes.
  static Memory bytes_of(py::handle object, Use use, const char* name);
  // Does the same as of() for GPU memory. Does not wait for streams.
  static Memory on_device(py::handle object, Use use, const char* name,
                          const std::optional<Elements>& dtype);

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t count() const { return bytes_ / elements_.bytes(); }
  const Elements& elements() const { return elements_; }

 private:
  static std::optional<Memory> of_buffer(py::handle object, Use use, const char* name,
                                         const std::optional<Elements>& dtype, Layout* layout);
  static std::optional<Memory> of_array(py::handle object, Use use, const char* name,
                                        const std::optional<Elements>& dtype, Layout* layout);
  static std::optional<Memory> of_dlpack(py::handle object, Use use, const char* name,
                                         const std::optional<Elements>& dtype, Layout* layout);
  static std::optional<Memory> of_cuda_array(py::handle object, Use use, const char* name,
                                             const std::optional<Elements>& dtype);
  static Memory of_capsule(const py::object& capsule, Use use, const char* name,
                           const std::optional<Elements>& dtype, Layout* layout);
  static Memory any(py::handle object, Use use, const char* name,
                    const std::optional<Elements>& dtype, Layout* layout);
  void take_type(const std::optional<Elements>& own, std::size_t item_bytes,
                 const std::optional<Elements>& asked, const char* name, const std::string& shown);

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Elements elements_;
  std::shared_ptr<void> owner_;  // shared_ptr because a Request may be moved
};

}  // namespace unisono_python
