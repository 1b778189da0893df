// The table of the reductions, and which SIMD target they use.
#include "kernels/kernels.h"

#include "kernels/reduce_tables.h"
#include "kernels/simd_targets.h"

// After simd_targets.h, which it depends on.
#include "hwy/targets.h"

namespace unisono::kernels {
namespace {

// With 0 and 1 the sum is "or" and the product "and"; nonzero bytes other than 1 count as true.
ReduceFunction find_boolean(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::lor:
    case ReduceOp::bor:
      return find_reduce_bytes(ReduceOp::lor, false);
    case ReduceOp::prod:
    case ReduceOp::min:
    case ReduceOp::land:
    case ReduceOp::band:
      return find_reduce_bytes(ReduceOp::land, false);
    case ReduceOp::lxor:
    case ReduceOp::bxor:
      return find_reduce_bytes(ReduceOp::lxor, false);
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
    case ReduceOp::user:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

ReduceFunction find_reduce(Dtype dtype, ReduceOp op) {
  switch (dtype) {
    case Dtype::i8:
    case Dtype::u8:
      return find_reduce_bytes(op, dtype == Dtype::i8);
    case Dtype::i32:
    case Dtype::u32:
      return find_reduce_words(op, dtype == Dtype::i32);
    case Dtype::i64:
    case Dtype::u64:
      return find_reduce_quads(op, dtype == Dtype::i64);
    case Dtype::f16:
      return find_reduce_f16(op);
    case Dtype::bf16:
      return find_reduce_bf16(op);
    case Dtype::f8e4m3:
      return find_reduce_f8e4m3(op);
    case Dtype::f8e5m2:
      return find_reduce_f8e5m2(op);
    case Dtype::f32:
      return find_reduce_f32(op);
    case Dtype::f64:
      return find_reduce_f64(op);
    case Dtype::boolean:
      return find_boolean(op);
  }
  return nullptr;
}

const char* target_name() {
  const auto targets = HWY_SUPPORTED_TARGETS & HWY_TARGETS;
  return hwy::TargetName(targets & -targets);  // the lowest bit is the best target
}

}  // namespace unisono::kernels
