#include "peers/check.h"

#include <stdexcept>

namespace unisono::bench {
namespace {

// In longer outputs, about one element per cache line is checked; the prime stride reaches all
// positions within a line.
constexpr std::size_t kCheckAll = std::size_t{1} << 18;
constexpr std::size_t kLargeStride = 13;

// Returns the largest m such that a sum of `ranks` numbers below m is exact in the dtype.
std::size_t modulus(Dtype dtype, int ranks) {
  std::size_t exact = 1024;
  if (dtype == Dtype::bf16) {
    exact = 256;
  } else if (dtype == Dtype::f8e4m3) {
    exact = 16;
  } else if (dtype == Dtype::f8e5m2) {
    exact = 8;
  }
  const std::size_t largest = exact / static_cast<std::size_t>(ranks);
  return largest < 1 ? 1 : largest + 1;
}

std::size_t input_value(std::size_t index, int rank, std::size_t modulo) {
  return (index + 3 * static_cast<std::size_t>(rank)) % modulo;
}

void store(Dtype dtype, void* data, std::size_t index, float value) {
  switch (dtype) {
    case Dtype::f32:
      static_cast<float*>(data)[index] = value;
      return;
    case Dtype::f16:
      static_cast<f16*>(data)[index] = to_f16(value);
      return;
    case Dtype::bf16:
      static_cast<bf16*>(data)[index] = to_bf16(value);
      return;
    case Dtype::f8e4m3:
      static_cast<f8e4m3*>(data)[index] = to_f8e4m3(value);
      return;
    case Dtype::f8e5m2:
      static_cast<f8e5m2*>(data)[index] = to_f8e5m2(value);
      return;
    default:
      throw std::runtime_error("dtype is not in the benchmark");
  }
}

float load(Dtype dtype, const void* data, std::size_t index) {
  switch (dtype) {
    case Dtype::f32:
      return static_cast<const float*>(data)[index];
    case Dtype::f16:
      return to_float(static_cast<const f16*>(data)[index]);
    case Dtype::bf16:
      return to_float(static_cast<const bf16*>(data)[index]);
    case Dtype::f8e4m3:
      return to_float(static_cast<const f8e4m3*>(data)[index]);
    case Dtype::f8e5m2:
      return to_float(static_cast<const f8e5m2*>(data)[index]);
    default:
      throw std::runtime_error("dtype is not in the benchmark");
  }
}

// Returns the expected element `index` of the output of `rank`.
std::size_t expected(const Operation& operation, std::size_t index, int rank, int ranks,
                     std::size_t modulo) {
  const std::size_t count = operation.count;
  const auto sum = [ranks, modulo](std::size_t element) {
    std::size_t total = 0;
    for (int from = 0; from < ranks; ++from) {
      total += input_value(element, from, modulo);
    }
    return total;
  };
  const auto me = static_cast<std::size_t>(rank);
  switch (operation.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
      return sum(index);
    case Kind::reduce_scatter:
      return sum(me * count + index);
    case Kind::all_gather:
    case Kind::gather:
      return input_value(index % count, static_cast<int>(index / count), modulo);
    case Kind::all_to_all:
      return input_value(me * count + index % count, static_cast<int>(index / count), modulo);
    case Kind::exchange:
      return input_value(index, rank ^ 1, modulo);
    case Kind::window:
      return input_value(index % count, rank ^ 1, modulo);
    case Kind::broadcast:
      return input_value(index, kRoot, modulo);
    case Kind::scatter:
      return input_value(me * count + index, kRoot, modulo);
    case Kind::barrier:
      return 0;
  }
  return 0;
}

bool has_output(Kind kind, int rank) {
  if (kind == Kind::barrier) {
    return false;
  }
  return rank == kRoot || (kind != Kind::reduce && kind != Kind::gather);
}

}  // namespace

std::size_t input_elements(const Operation& operation, int ranks) {
  const bool parts = operation.kind == Kind::reduce_scatter || operation.kind == Kind::all_to_all ||
                     operation.kind == Kind::scatter;
  return operation.count * (parts ? static_cast<std::size_t>(ranks) : 1);
}

std::size_t output_elements(const Operation& operation, int ranks) {
  const bool parts = operation.kind == Kind::all_gather || operation.kind == Kind::all_to_all ||
                     operation.kind == Kind::gather;
  return operation.count * (parts                            ? static_cast<std::size_t>(ranks)
                            : operation.kind == Kind::window ? kWindow
                                                             : 1);
}

void fill_input(const Operation& operation, int rank, int ranks) {
  const std::size_t modulo = modulus(operation.dtype, ranks);
  // If input and output are one buffer, ranks that only receive start with other values.
  const bool silent = operation.kind == Kind::broadcast && rank != kRoot;
  const std::size_t elements = input_elements(operation, ranks);
  for (std::size_t i = 0; i < elements; ++i) {
    const auto value = static_cast<float>(input_value(i, rank, modulo));
    store(operation.dtype, operation.in, i, silent ? -1.0F : value);
  }
}

std::uint64_t count_wrong(const Operation& operation, int rank, int ranks) {
  if (!has_output(operation.kind, rank)) {
    return 0;
  }
  const std::size_t modulo = modulus(operation.dtype, ranks);
  const std::size_t elements = output_elements(operation, ranks);
  const std::size_t stride = elements > kCheckAll ? kLargeStride : 1;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < elements; i += stride) {
    const auto want = static_cast<float>(expected(operation, i, rank, ranks, modulo));
    wrong += load(operation.dtype, operation.out, i) != want ? 1U : 0U;
  }
  return wrong;
}

}  // namespace unisono::bench
