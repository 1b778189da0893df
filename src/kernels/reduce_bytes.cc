// Reductions of 8-bit integers, and of bool by way of them.
#include "kernels/reduce_tables.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_bytes.cc"
#include "hwy/foreach_target.h"  // first, as it includes this file again
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

ReduceFunction find_reduce_bytes(ReduceOp op, bool is_signed) {
  return HWY_DYNAMIC_DISPATCH(find_bytes)(op, is_signed);
}

}  // namespace unisono::kernels
#endif
