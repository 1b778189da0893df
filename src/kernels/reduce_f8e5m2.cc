// Reductions of f8e5m2, in f32.
#include "kernels/reduce_tables.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_f8e5m2.cc"
#include "hwy/foreach_target.h"  // must come first: includes this file again
#include "hwy/highway.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {

ReduceFunction find_f8e5m2(ReduceOp op) {
  return find_float<F8e5m2>(op);
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::kernels {
namespace {
HWY_EXPORT(find_f8e5m2);
}  // namespace

ReduceFunction find_reduce_f8e5m2(ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(find_f8e5m2)(op);
}

}  // namespace unisono::kernels
#endif
