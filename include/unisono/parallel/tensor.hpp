// A tensor of somebody else's: where it is, and how its elements lie. Nothing is owned or copied.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "unisono/export.hpp"
#include "unisono/typed_call.hpp"
#include "unisono/types.hpp"

namespace unisono::parallel {

// The most dimensions that a tensor can have here.
inline constexpr std::size_t kMostDims = 8;

struct UNISONO_EXPORT Tensor {
  void* data = nullptr;
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape = {};
  std::vector<std::ptrdiff_t> strides = {};  // in elements, one for each dimension; may be negative

  // Row-major: the last dimension is contiguous.
  static Tensor packed(void* data, Dtype dtype, std::vector<std::size_t> shape);
  // Errors: usage, where the shape has another number of elements than the buffer.
  template <OutBuffer Data>
  static Tensor of(Data&& data, std::vector<std::size_t> shape) {
    const auto view = unisono::detail::out_view(data);
    Tensor tensor =
        packed(view.data(), unisono::detail::dtype_of<ElementOf<Data>>(), std::move(shape));
    tensor.expect_count(view.size());
    return tensor;
  }
  // Over data that is only read.
  template <InBuffer Data>
  static Tensor of_const(Data&& data, std::vector<std::size_t> shape) {
    const auto view = unisono::detail::view(data);
    Tensor tensor = packed(const_cast<ElementOf<Data>*>(view.data()),
                           unisono::detail::dtype_of<ElementOf<Data>>(), std::move(shape));
    tensor.expect_count(view.size());
    return tensor;
  }

  std::size_t dims() const { return shape.size(); }
  std::size_t count() const;  // elements
  bool is_packed() const;     // row-major without gaps
  // Elements [first, first + count) of a dimension. Errors: usage.
  Tensor slice(std::size_t dim, std::size_t first, std::size_t count) const;
  Tensor transposed(std::size_t a, std::size_t b) const;
  std::string text() const;  // "f32 [4, 256]"

 private:
  void expect_count(std::size_t elements) const;
  void check_dim(std::size_t dim) const;
};

}  // namespace unisono::parallel
