#include "engine/around.h"

#include <cstddef>
#include <cstring>

#include "base/collectives.h"
#include "base/dtypes.h"
#include "base/identity.h"

namespace unisono::engine {
namespace {

// Sets target[i] to 1 if source[i] is not 0, else to 0.
template <Dtype D>
void make_logical(void* target, const void* source, std::size_t count, double /*factor*/) {
  const void* const twice[] = {source, source};
  kernels::find_reduce(D, ReduceOp::land)(&target, 1, twice, 2, count, kernels::Store::cached);
}

// Floats have no logical operations, and bool values are already 0 or 1.
kernels::ScaleFunction find_make_logical(Dtype dtype) {
  return with_dtype(dtype, [](auto type) -> kernels::ScaleFunction {
    if constexpr (is_integer(type.value)) {
      return make_logical<type.value>;
    }
    return nullptr;
  });
}

// Returns the number of ranks whose inputs are in this rank's result.
int contributions(Collective collective, int rank, int ranks) {
  return is_scan(collective) ? rank + (contributes(collective, rank, rank) ? 1 : 0) : ranks;
}

// `op`: a ReduceOp, which Around::divisor passes.
template <Dtype D>
void fill_identity(void* target, const void* /*source*/, std::size_t count, double op) {
  const auto identity = identity_of<D>(static_cast<ReduceOp>(static_cast<int>(op)));
  auto* byte = static_cast<std::byte*>(target);
  for (std::size_t i = 0; i < count; ++i, byte += sizeof identity) {
    std::memcpy(byte, &identity, sizeof identity);  // the output may be misaligned
  }
}

}  // namespace

bool fills_output(Collective collective, ReduceOp op, int rank) {
  return collective == Collective::exclusive_scan && rank == 0 && op != ReduceOp::user;
}

Around around(Collective collective, Dtype dtype, ReduceOp op, int rank, int ranks) {
  Around result{.moved = moved_dtype(collective, dtype, op), .divisor = 1.0 * ranks};
  if (!reduces(collective)) {
    return result;
  }
  const bool logical = op == ReduceOp::land || op == ReduceOp::lor || op == ReduceOp::lxor;
  if (op == ReduceOp::premul_sum) {
    result.before = kernels::find_multiply(dtype);
  } else if (result.moved != dtype) {
    result.before = kernels::find_widen(dtype);
    result.after = kernels::find_average(dtype);
  } else if (op == ReduceOp::avg) {
    result.scaled_sum = kernels::find_scaled_sum(dtype);
    result.after = kernels::find_divide(dtype);
  } else if (logical && contributions(collective, rank, ranks) == 1) {
    result.after = find_make_logical(dtype);
  }
  if (op == ReduceOp::avg && is_float(dtype)) {
    const kernels::AverageScale scale = kernels::average_scale(ranks);
    result.scale = scale.factor;
    result.divisor = scale.divisor;
  }
  if (result.scaled_sum != nullptr && result.divisor == 1) {
    result.after = nullptr;
  }
  if (fills_output(collective, op, rank)) {
    result.after = with_dtype(
        dtype, [](auto type) -> kernels::ScaleFunction { return fill_identity<type.value>; });
    result.divisor = static_cast<double>(op);
  }
  return result;
}

Reducer reducer_of(Collective collective, ReduceOp op, const Around& around) {
  if (collective == Collective::barrier) {
    return {.kernel = kernels::find_reduce(Dtype::u8, ReduceOp::bor)};
  }
  if (!reduces(collective)) {
    return {};
  }
  return {.kernel = kernels::find_reduce(around.moved, op),
          .scaled_sum = around.scaled_sum,
          .scale = around.scale};
}

}  // namespace unisono::engine
