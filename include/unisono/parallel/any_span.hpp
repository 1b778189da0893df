// Spans whose element type is known at run time. The parallel layer accepts f32, bf16, f16, f8e4m3
// and f8e5m2.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "unisono/error.hpp"
#include "unisono/export.hpp"
#include "unisono/typed_call.hpp"
#include "unisono/types.hpp"

namespace unisono::parallel {

namespace detail {
[[noreturn]] UNISONO_EXPORT void refuse_element_type(Dtype is, Dtype asked);
}

// Refers to packed elements that the caller owns. Converts from everything that a std::span can be
// constructed from: a vector, an array, a span. All members are local.
template <typename Data>
class BasicAnySpan {
 public:
  BasicAnySpan() = default;
  // Refers to `count` elements, or to all elements of a buffer.
  BasicAnySpan(Data* data, std::size_t count, Dtype dtype)
      : data_(data), count_(count), dtype_(dtype) {}
  template <typename B>
    requires(InBuffer<B> && (std::is_const_v<Data> || OutBuffer<B>))
  BasicAnySpan(B&& buffer)  // NOLINT(google-explicit-constructor)
      : data_(std::span(buffer).data()),
        count_(std::span(buffer).size()),
        dtype_(unisono::detail::dtype_of<ElementOf<B>>()) {}
  // Converts from a writable span.
  template <typename Other>
    requires(std::is_same_v<const Other, Data>)
  BasicAnySpan(const BasicAnySpan<Other>& other)  // NOLINT(google-explicit-constructor)
      : data_(other.data()), count_(other.size()), dtype_(other.dtype()) {}

  Data* data() const { return data_; }         // the first element
  std::size_t size() const { return count_; }  // number of elements
  Dtype dtype() const { return dtype_; }       // type of the elements
  // Returns the elements as a std::span.
  // Errors: usage if the elements have another type.
  template <typename T>
  auto as() const {
    using Element = std::conditional_t<std::is_const_v<Data>, const T, T>;
    if (dtype_ != unisono::detail::dtype_of<T>()) {
      detail::refuse_element_type(dtype_, unisono::detail::dtype_of<T>());
    }
    return std::span<Element>(static_cast<Element*>(data_), count_);
  }

 private:
  Data* data_ = nullptr;
  std::size_t count_ = 0;
  Dtype dtype_ = Dtype::f32;
};
using AnySpan = BasicAnySpan<void>;
using ConstAnySpan = BasicAnySpan<const void>;

// Local. Converts between f32 and a float type of 8, 16 or 32 bits, rounding to the nearest value,
// ties to even.
// Shapes: both spans have the same length.
// Threads: any.
// Errors: usage for other types or different lengths.
UNISONO_EXPORT void convert(ConstAnySpan in, AnySpan out);

}  // namespace unisono::parallel
