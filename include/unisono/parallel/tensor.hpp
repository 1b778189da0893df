// Tensor: the address, type, shape and strides of memory that the caller owns. All functions are
// local. They neither allocate nor copy elements.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "unisono/export.hpp"
#include "unisono/typed_call.hpp"
#include "unisono/types.hpp"

namespace unisono::parallel {

// The largest number of dimensions of a tensor.
inline constexpr std::size_t kMostDims = 8;

struct UNISONO_EXPORT Tensor {
  void* data = nullptr;
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape = {};
  std::vector<std::ptrdiff_t> strides = {};  // in elements, one per dimension; may be negative

  // Describes row-major data: the last dimension is contiguous.
  static Tensor packed(void* data, Dtype dtype, std::vector<std::size_t> shape);
  // Describes a row-major buffer.
  // Errors: usage if the shape and the buffer have different numbers of elements.
  template <OutBuffer Data>
  static Tensor of(Data&& data, std::vector<std::size_t> shape) {
    const auto view = unisono::detail::out_view(data);
    Tensor tensor =
        packed(view.data(), unisono::detail::dtype_of<ElementOf<Data>>(), std::move(shape));
    tensor.expect_count(view.size());
    return tensor;
  }
  // Describes a row-major buffer that is only read.
  // Errors: as for of().
  template <InBuffer Data>
  static Tensor of_const(Data&& data, std::vector<std::size_t> shape) {
    const auto view = unisono::detail::view(data);
    Tensor tensor = packed(const_cast<ElementOf<Data>*>(view.data()),
                           unisono::detail::dtype_of<ElementOf<Data>>(), std::move(shape));
    tensor.expect_count(view.size());
    return tensor;
  }

  std::size_t dims() const { return shape.size(); }  // number of dimensions
  std::size_t count() const;                         // elements
  bool is_packed() const;                            // row-major without gaps
  // Returns the part of the tensor with the indices [first, first + count) in dimension `dim`.
  // Errors: usage.
  Tensor slice(std::size_t dim, std::size_t first, std::size_t count) const;
  Tensor transposed(std::size_t a, std::size_t b) const;  // with dimensions a and b exchanged
  std::string text() const;                               // such as "f32 [4, 256]"

 private:
  void expect_count(std::size_t elements) const;
  void check_dim(std::size_t dim) const;
};

}  // namespace unisono::parallel
