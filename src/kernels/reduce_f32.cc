// Reductions of f32.
#include "kernels/reduce_tables.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_f32.cc"
#include "hwy/foreach_target.h"  // must come first: includes this file again
#include "hwy/highway.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {

ReduceFunction find_f32(ReduceOp op) {
  return find_float<Native<float>>(op);
}
ScaledSumFunction find_scaled_f32() {
  return scaled_sum<Native<float>>;
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::kernels {
namespace {
HWY_EXPORT(find_f32);
HWY_EXPORT(find_scaled_f32);
}  // namespace

ReduceFunction find_reduce_f32(ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(find_f32)(op);
}
ScaledSumFunction find_scaled_sum_f32() {
  return HWY_DYNAMIC_DISPATCH(find_scaled_f32)();
}

}  // namespace unisono::kernels
#endif
