// Converts PyTorch's element types, reduce operations and errors to unisono's, and back.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <exception>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include "unisono/unisono.hpp"

namespace unisono_torch {

// Encoding of elements that are only moved: their own type if unisono has it, so that differing
// types cause an error; otherwise `units` bytes each.
struct Elements {
  unisono::Dtype dtype = unisono::Dtype::u8;
  std::size_t units = 1;
};
Elements elements_of(at::ScalarType type);

// Describes a reduction. Complex numbers are pairs of reals. 16-bit integers and the fnuz kinds of
// fp8, which unisono cannot reduce, are converted to `as` during the operation.
struct Reducing {
  unisono::Dtype dtype = unisono::Dtype::f32;
  std::size_t units = 1;
  unisono::Reduction reduction = unisono::ReduceOp::sum;
  at::ScalarType as = at::ScalarType::Undefined;  // Undefined: no conversion
};
// Throws TypeError or ValueError for undefined combinations, such as bitwise operations on floats.
Reducing reducing_of(at::ScalarType type, const c10d::ReduceOp& op);

// Converts an error for Python: ValueError for a caller's mistake, otherwise
// torch.distributed.DistBackendError.
std::exception_ptr to_torch(const unisono::Error& error);
c10d::ErrorType to_error_type(unisono::ErrorCode code);

// Returns gloo's name for an operation, for programs that search for gloo's titles.
std::string name_in_gloo(const std::string& op);
// Returns the operation's name in flight recorder dumps, limited to the names that PyTorch's tools
// know.
std::string name_in_dumps(const std::string& op);

// Throws ValueError with the text "unisono:<op>: <what>".
[[noreturn]] void refuse(const std::string& op, const std::string& what);

}  // namespace unisono_torch
