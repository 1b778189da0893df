// The information that ranks exchange before a redistribution: their tensors, and where each tensor
// can be read. Ranks detect disagreements here, before anything is written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "unisono/parallel/placement.hpp"

namespace unisono::parallel {

// A tensor and its placement as plain data.
struct TensorDescriptor {
  std::array<std::uint64_t, kMostDims> whole = {};  // shape of the tensor that all parts belong to
  std::array<std::int64_t, kMostDims> strides = {};
  std::array<std::uint64_t, kMostDims> shape = {};  // of `in`
  SharedPlace place = {};
  std::int64_t before = 0;  // bytes of `in` before its first element
  std::uint8_t dims = 0;
  std::uint8_t dtype = 0;
  std::uint8_t from = 0;  // a placement packed into one byte
  std::uint8_t to = 0;
  std::uint32_t wrong = 0;  // this rank's own call is invalid
};
static_assert(std::is_trivially_copyable_v<TensorDescriptor>);

// Returns the shape of the tensor that `in` and `out` are parts of, as far as this rank knows it.
// Throws usage.
std::vector<std::size_t> whole_shape(const Communicator& communicator, const Tensor& in,
                                     const Placement& from, const Tensor& out, const Placement& to);

// Exchanges the descriptors. `wrong`: why this rank's call is invalid; empty if it is valid. Throws
// the error of this rank or of another one, the same on all ranks.
std::vector<TensorDescriptor> exchange_descriptors(Communicator& communicator, const Tensor& in,
                                                   const Conversion& conversion,
                                                   const std::vector<std::size_t>& whole,
                                                   const std::string& wrong, int timeout_ms);

// Returns rank `peer`'s `in` if it can be read here; otherwise a tensor whose data is nullptr.
Tensor tensor_of(const Communicator& communicator, int peer, const TensorDescriptor& descriptor);

}  // namespace unisono::parallel
