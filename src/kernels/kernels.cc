// Finds the kernels, and names the SIMD target that they use.
#include "kernels/kernels.h"

#include "base/private.h"
#include "kernels/reduce_tables.h"
#include "kernels/simd_targets.h"

// After simd_targets.h, which it depends on.
#include "hwy/targets.h"

namespace unisono::kernels {

UNISONO_PRIVATE ReduceFunction find_reduce(Dtype dtype, ReduceOp op) {
  return kReductions.at(static_cast<std::size_t>(dtype)).find(op);
}

UNISONO_PRIVATE ScaledSumFunction find_scaled_sum(Dtype dtype) {
  return dtype == Dtype::f32   ? find_scaled_sum_f32()
         : dtype == Dtype::f64 ? find_scaled_sum_f64()
                               : nullptr;
}

const char* target_name() {
  const auto targets = HWY_SUPPORTED_TARGETS & HWY_TARGETS;
  return hwy::TargetName(targets & -targets);  // the lowest bit stands for the best target
}

}  // namespace unisono::kernels
