// Reductions of f64.
#include "kernels/reduce_tables.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_f64.cc"
#include "hwy/foreach_target.h"  // must come first: includes this file again
#include "hwy/highway.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {

ReduceFunction find_f64(ReduceOp op) {
  return find_float<Native<double>>(op);
}
ScaledSumFunction find_scaled_f64() {
  return scaled_sum<Native<double>>;
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::kernels {
namespace {
HWY_EXPORT(find_f64);
HWY_EXPORT(find_scaled_f64);
}  // namespace

ReduceFunction find_reduce_f64(ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(find_f64)(op);
}
ScaledSumFunction find_scaled_sum_f64() {
  return HWY_DYNAMIC_DISPATCH(find_scaled_f64)();
}

}  // namespace unisono::kernels
#endif
