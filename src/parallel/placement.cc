// Placements, and the transpose of each conversion.
#include "unisono/parallel/placement.hpp"

#include "parallel/strided.h"
#include "unisono/error.hpp"

namespace unisono::parallel {
namespace {

Placement dual(const Placement& placement) {
  using Kind = Placement::Kind;
  if (placement.kind == Kind::partial && placement.op != ReduceOp::sum) {
    throw Error(ErrorCode::usage, "conjugate: " + to_string(placement) +
                                      " is not linear\nonly sums have a transpose");
  }
  return placement.kind == Kind::replicate ? Partial()
         : placement.kind == Kind::partial ? Replicate()
                                           : placement;
}

}  // namespace

Conversion conjugate(const Conversion& conversion) {
  return {.from = dual(conversion.to), .to = dual(conversion.from)};
}

void copy(const Tensor& in, const Tensor& out) {
  if (in.shape != out.shape || in.dtype != out.dtype) {
    throw Error(ErrorCode::usage, "copy: " + in.text() + " to " + out.text() +
                                      "\ngive both the same shape and dtype");
  }
  copy_elements(in, out, kernels::Store::cached);
}

}  // namespace unisono::parallel
