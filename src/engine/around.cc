#include "engine/around.h"

#include <algorithm>

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

// The operation is passed as the divisor.
template <Dtype D>
void fill_identity(void* target, const void* /*source*/, std::size_t count, double op) {
  std::fill_n(static_cast<TypeOf<D>*>(target), count,
              identity_of<D>(static_cast<ReduceOp>(static_cast<int>(op))));
}

int count_terms(Collective collective, int rank, int ranks) {
  int terms = 0;
  for (int from = 0; from < ranks; ++from) {
    terms += contributes(collective, from, rank) ? 1 : 0;
  }
  return terms;
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
  } else if (logical && count_terms(collective, rank, ranks) == 1) {
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
