// Reductions of 32-bit integers.
#include "kernels/reduce_tables.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_words.cc"
#include "hwy/foreach_target.h"  // must come first: includes this file again
#include "hwy/highway.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {

ReduceFunction find_words(ReduceOp op, bool is_signed) {
  return find_integer<std::uint32_t>(op, is_signed);
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::kernels {
namespace {
HWY_EXPORT(find_words);
}  // namespace

ReduceFunction find_reduce_i32(ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(find_words)(op, true);
}
ReduceFunction find_reduce_u32(ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(find_words)(op, false);
}

}  // namespace unisono::kernels
#endif
