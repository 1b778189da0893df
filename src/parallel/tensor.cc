#include "unisono/parallel/tensor.hpp"

#include <algorithm>
#include <utility>

#include "unisono/error.hpp"

namespace unisono::parallel {

Tensor Tensor::packed(void* data, Dtype dtype, std::vector<std::size_t> shape) {
  if (shape.size() > kMostDims) {
    throw Error(ErrorCode::usage, "tensor: " + std::to_string(shape.size()) +
                                      " dimensions\nat most " + std::to_string(kMostDims) +
                                      " are possible; merge contiguous dimensions");
  }
  std::vector<std::ptrdiff_t> strides(shape.size());
  std::ptrdiff_t stride = 1;
  for (std::size_t dim = shape.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride *= static_cast<std::ptrdiff_t>(shape[dim]);
  }
  return {.data = data, .dtype = dtype, .shape = std::move(shape), .strides = std::move(strides)};
}

std::size_t Tensor::count() const {
  std::size_t all = 1;
  for (const std::size_t size : shape) {
    all *= size;
  }
  return all;
}

bool Tensor::is_packed() const {
  std::ptrdiff_t stride = 1;
  for (std::size_t dim = dims(); dim-- > 0;) {
    if (shape[dim] != 1 && strides[dim] != stride) {
      return count() == 0;
    }
    stride *= static_cast<std::ptrdiff_t>(shape[dim]);
  }
  return true;
}

void Tensor::check_dim(std::size_t dim) const {
  if (dim >= dims()) {
    throw Error(ErrorCode::usage, "tensor: dimension " + std::to_string(dim) + " of " + text() +
                                      " does not exist\ndimensions are numbered from 0");
  }
}

void Tensor::expect_count(std::size_t elements) const {
  if (elements != count()) {
    throw Error(ErrorCode::usage,
                "tensor: a buffer of " + std::to_string(elements) + " elements cannot be " +
                    text() + "\nmake the product of the shape equal to the length of the buffer");
  }
}

Tensor Tensor::slice(std::size_t dim, std::size_t first, std::size_t count) const {
  check_dim(dim);
  if (first > shape[dim] || count > shape[dim] - first) {
    throw Error(ErrorCode::usage, "tensor: there is no slice of " + std::to_string(count) +
                                      " from " + std::to_string(first) + " on in dimension " +
                                      std::to_string(dim) + " of " + text() +
                                      "\nstay within the dimension");
  }
  Tensor part = *this;
  part.shape[dim] = count;
  const auto bytes = static_cast<std::ptrdiff_t>(size_of(dtype));
  if (data != nullptr) {
    part.data =
        static_cast<std::byte*>(data) + static_cast<std::ptrdiff_t>(first) * strides[dim] * bytes;
  }
  return part;
}

Tensor Tensor::transposed(std::size_t a, std::size_t b) const {
  check_dim(a);
  check_dim(b);
  Tensor other = *this;
  std::swap(other.shape[a], other.shape[b]);
  std::swap(other.strides[a], other.strides[b]);
  return other;
}

std::string Tensor::text() const {
  std::string all = std::string(to_string(dtype)) + " [";
  for (std::size_t dim = 0; dim < dims(); ++dim) {
    all += (dim == 0 ? "" : ", ") + std::to_string(shape[dim]);
  }
  return all + "]";
}

}  // namespace unisono::parallel
