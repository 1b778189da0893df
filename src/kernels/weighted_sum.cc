// Computes weighted sums of rows, and the inner products for their gradients.
#include "kernels/weighted_sum.h"

#include <cstring>
#include <type_traits>

#include "base/dtypes.h"
#include "base/private.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/weighted_sum.cc"
#include "hwy/foreach_target.h"  // must come first: includes this file again
#include "hwy/highway.h"
#include "kernels/f8-inl.h"
#include "kernels/formats-inl.h"
#include "kernels/memory-inl.h"
#include "kernels/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {

template <class Format, bool kFactors>
void weighted_sum_of(std::byte* to, const std::byte* addend, const void* const* rows,
                     const float* factors, int row_count, std::size_t count) {
  using D = typename Format::D;
  using Acc = typename Format::Acc;
  constexpr std::size_t kSize = sizeof(typename Format::Lane);
  constexpr std::size_t kVectors = 4;
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const auto add = [&](Acc acc, auto raw, int row) {
    const Acc term = Format::template decode<SumOp>(raw);
    if constexpr (kFactors) {
      const Acc factor = Format::broadcast(static_cast<double>(factors[row]));
      return Format::template combine<SumOp>(acc, Format::template combine<ProdOp>(term, factor));
    } else {
      return Format::template combine<SumOp>(acc, term);
    }
  };
  const auto begin_with = [&](std::size_t i) {
    return addend == nullptr ? Format::broadcast(0.0)
                             : Format::template decode<SumOp>(load(d, addend + i * kSize));
  };
  std::size_t i = 0;
  // Processes several vectors at once, so that their chains of additions overlap.
  for (; count - i >= kVectors * lanes; i += kVectors * lanes) {
    Acc a = begin_with(i);
    Acc b = begin_with(i + lanes);
    Acc c = begin_with(i + 2 * lanes);
    Acc e = begin_with(i + 3 * lanes);
    for (int row = 0; row < row_count; ++row) {
      const auto* from = static_cast<const std::byte*>(rows[row]) + i * kSize;
      a = add(a, load(d, from), row);
      b = add(b, load(d, from + lanes * kSize), row);
      c = add(c, load(d, from + 2 * lanes * kSize), row);
      e = add(e, load(d, from + 3 * lanes * kSize), row);
    }
    store(d, Format::template encode<SumOp>(a), to + i * kSize);
    store(d, Format::template encode<SumOp>(b), to + (i + lanes) * kSize);
    store(d, Format::template encode<SumOp>(c), to + (i + 2 * lanes) * kSize);
    store(d, Format::template encode<SumOp>(e), to + (i + 3 * lanes) * kSize);
  }
  while (i < count) {
    const std::size_t left = count - i < lanes ? count - i : lanes;
    const auto part = [&](const std::byte* from) {
      return left == lanes ? load(d, from + i * kSize) : load_first(d, from + i * kSize, left);
    };
    Acc acc =
        addend == nullptr ? Format::broadcast(0.0) : Format::template decode<SumOp>(part(addend));
    for (int row = 0; row < row_count; ++row) {
      acc = add(acc, part(static_cast<const std::byte*>(rows[row])), row);
    }
    const auto raw = Format::template encode<SumOp>(acc);
    if (left == lanes) {
      store(d, raw, to + i * kSize);
    } else {
      store_first(d, raw, to + i * kSize, left);
    }
    i += left;
  }
}

template <class Format>
void weighted_sum(void* target, const void* addend, const void* const* rows, const float* factors,
                  int row_count, std::size_t count) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(addend);
  if (factors != nullptr) {
    weighted_sum_of<Format, true>(to, from, rows, factors, row_count, count);
  } else {
    weighted_sum_of<Format, false>(to, from, rows, factors, row_count, count);
  }
}

template <class Acc>
float total(Acc acc) {
  if constexpr (requires { acc.even; }) {
    return hn::GetLane(hn::SumOfLanes(FloatTag(), hn::Add(acc.even, acc.odd)));
  } else {
    using T = hn::TFromV<Acc>;
    return static_cast<float>(hn::GetLane(hn::SumOfLanes(hn::ScalableTag<T>(), acc)));
  }
}

template <class Format>
float dot(const void* a, const void* b, std::size_t count) {
  using D = typename Format::D;
  constexpr std::size_t kSize = sizeof(typename Format::Lane);
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const auto* left = static_cast<const std::byte*>(a);
  const auto* right = static_cast<const std::byte*>(b);
  auto acc = Format::broadcast(0.0);
  const auto add = [&](auto x, auto y) {
    acc = Format::template combine<SumOp>(
        acc, Format::template combine<ProdOp>(Format::template decode<SumOp>(x),
                                              Format::template decode<SumOp>(y)));
  };
  std::size_t i = 0;
  for (; count - i >= lanes; i += lanes) {
    add(load(d, left + i * kSize), load(d, right + i * kSize));
  }
  if (i != count) {
    add(load_first(d, left + i * kSize, count - i), load_first(d, right + i * kSize, count - i));
  }
  return total(acc);
}

template <template <class> class Function>
auto find_for(Dtype dtype) {
  using Call = std::remove_const_t<decltype(Function<Native<float>>::kCall)>;
  return with_dtype(dtype, [](auto type) -> Call {
    if constexpr (is_float(type.value)) {
      return Function<FormatOf<TypeOf<type.value>>>::kCall;
    }
    return nullptr;
  });
}
template <class Format>
struct WeightedSumOf {
  static constexpr WeightedSumFunction kCall = weighted_sum<Format>;
};
template <class Format>
struct DotOf {
  static constexpr DotFunction kCall = dot<Format>;
};

WeightedSumFunction find_weighted_sum_here(Dtype dtype) {
  return find_for<WeightedSumOf>(dtype);
}
DotFunction find_dot_here(Dtype dtype) {
  return find_for<DotOf>(dtype);
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::kernels {
namespace {
HWY_EXPORT(find_weighted_sum_here);
HWY_EXPORT(find_dot_here);
}  // namespace

UNISONO_PRIVATE WeightedSumFunction find_weighted_sum(Dtype dtype) {
  return HWY_DYNAMIC_DISPATCH(find_weighted_sum_here)(dtype);
}
UNISONO_PRIVATE DotFunction find_dot(Dtype dtype) {
  return HWY_DYNAMIC_DISPATCH(find_dot_here)(dtype);
}

}  // namespace unisono::kernels
#endif
