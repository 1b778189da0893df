// Reductions of 8-bit integers, and of bool, which uses them.
#include "kernels/reduce_tables.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_bytes.cc"
#include "hwy/foreach_target.h"  // must come first: includes this file again
#include "hwy/highway.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {

ReduceFunction find_bytes(ReduceOp op, bool is_signed) {
  return find_integer<std::uint8_t>(op, is_signed);
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::kernels {
namespace {
HWY_EXPORT(find_bytes);
}  // namespace

ReduceFunction find_reduce_i8(ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(find_bytes)(op, true);
}
ReduceFunction find_reduce_u8(ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(find_bytes)(op, false);
}

// For bool, sum is "or" and product is "and"; any nonzero byte counts as true.
ReduceFunction find_reduce_bool(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::lor:
    case ReduceOp::bor:
      return find_reduce_u8(ReduceOp::lor);
    case ReduceOp::prod:
    case ReduceOp::min:
    case ReduceOp::land:
    case ReduceOp::band:
      return find_reduce_u8(ReduceOp::land);
    case ReduceOp::lxor:
    case ReduceOp::bxor:
      return find_reduce_u8(ReduceOp::lxor);
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
    case ReduceOp::user:
      return nullptr;
  }
  return nullptr;
}

}  // namespace unisono::kernels
#endif
