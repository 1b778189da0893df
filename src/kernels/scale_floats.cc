// Multiplies and divides floats by one number, and converts narrow floats to f32 and back.
#include <type_traits>

#include "base/dtypes.h"
#include "kernels/coded_rows.h"
#include "kernels/scale_tables.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/scale_floats.cc"
#include "hwy/foreach_target.h"  // must come first: includes this file again
#include "hwy/highway.h"
#include "kernels/codes-inl.h"
#include "kernels/f8-inl.h"
#include "kernels/formats-inl.h"
#include "kernels/memory-inl.h"
#include "kernels/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {

template <class Format, class Op>
void scale(void* target, const void* source, std::size_t count, double factor) {
  using D = typename Format::D;
  constexpr std::size_t kSize = sizeof(typename Format::Lane);
  const std::size_t lanes = hn::Lanes(D());
  const auto by = Format::broadcast(factor);
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  std::size_t i = 0;
  for (; count - i >= lanes; i += lanes) {
    const auto acc = Format::template decode<Op>(load(D(), from + i * kSize));
    const auto scaled = Format::template encode<Op>(Format::template combine<Op>(acc, by));
    store(D(), scaled, to + i * kSize);
  }
  if (i != count) {
    const auto acc = Format::template decode<Op>(load_first(D(), from + i * kSize, count - i));
    const auto scaled = Format::template encode<Op>(Format::template combine<Op>(acc, by));
    store_first(D(), scaled, to + i * kSize, count - i);
  }
}

struct F8e5m2Lanes : Widened<std::uint8_t> {
  template <class Op>
  static HWY_INLINE Acc decode(Raw raw) {
    return decode_narrow<2, 15, true>(hn::PromoteTo(BitsTag(), raw));
  }
  template <class Op>
  static HWY_INLINE Raw encode(Acc acc) {
    return shrink(encode_narrow<2, 15, 0x47800000U, 0x7eU>(acc));  // 65536
  }
};

// Format of a narrow float with as many lanes as f32.
template <typename T>
using WideLanesOf = std::conditional_t<
    std::is_same_v<T, bf16>, Bf16Lanes,
    std::conditional_t<std::is_same_v<T, f8e4m3>, F8e4m3Lanes,
                       std::conditional_t<std::is_same_v<T, f8e5m2>, F8e5m2Lanes, FormatOf<T>>>>;

template <class Lanes>
void widen(void* target, const void* source, std::size_t count, double factor) {
  using D = typename Lanes::D;
  constexpr std::size_t kSize = sizeof(typename Lanes::Lane);
  const FloatTag wide;
  const std::size_t lanes = hn::Lanes(wide);
  const FloatVec by = broadcast_float(factor);
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  std::size_t i = 0;
  for (; count - i >= lanes; i += lanes) {
    const auto value = Lanes::template decode<ProdOp>(load(D(), from + i * kSize));
    store(wide, hn::Mul(value, by), to + i * sizeof(float));
  }
  if (i != count) {
    const auto value = Lanes::template decode<ProdOp>(load_first(D(), from + i * kSize, count - i));
    store_first(wide, hn::Mul(value, by), to + i * sizeof(float), count - i);
  }
}

template <class Lanes>
void average(void* target, const void* source, std::size_t count, double divisor) {
  using D = typename Lanes::D;
  constexpr std::size_t kSize = sizeof(typename Lanes::Lane);
  const FloatTag wide;
  const std::size_t lanes = hn::Lanes(wide);
  const FloatVec by = broadcast_float(divisor);
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  std::size_t i = 0;
  for (; count - i >= lanes; i += lanes) {
    const FloatVec sum = load(wide, from + i * sizeof(float));
    store(D(), Lanes::template encode<DivideOp>(hn::Div(sum, by)), to + i * kSize);
  }
  if (i != count) {
    const FloatVec sum = load_first(wide, from + i * sizeof(float), count - i);
    store_first(D(), Lanes::template encode<DivideOp>(hn::Div(sum, by)), to + i * kSize, count - i);
  }
}

constexpr bool is_narrow_float(Dtype dtype) {
  return is_float(dtype) && traits_of(dtype).sum != dtype;
}

ScaleFunction find_widen_floats(Dtype dtype) {
  return with_dtype(dtype, [](auto type) -> ScaleFunction {
    if constexpr (is_narrow_float(type.value)) {
      return widen<WideLanesOf<TypeOf<type.value>>>;
    }
    return nullptr;
  });
}

ScaleFunction find_average_floats(Dtype dtype) {
  return with_dtype(dtype, [](auto type) -> ScaleFunction {
    if constexpr (is_narrow_float(type.value)) {
      return average<WideLanesOf<TypeOf<type.value>>>;
    }
    return nullptr;
  });
}

template <class Op>
ScaleFunction find_scale(Dtype dtype) {
  return with_dtype(dtype, [](auto type) -> ScaleFunction {
    if constexpr (is_float(type.value)) {
      return scale<FormatOf<TypeOf<type.value>>, Op>;
    }
    return nullptr;
  });
}

ScaleFunction find_multiply_floats(Dtype dtype) {
  return find_scale<ProdOp>(dtype);
}
ScaleFunction find_divide_floats(Dtype dtype) {
  return find_scale<DivideOp>(dtype);
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::kernels {
namespace {
HWY_EXPORT(find_multiply_floats);
HWY_EXPORT(find_divide_floats);
HWY_EXPORT(find_widen_floats);
HWY_EXPORT(find_average_floats);
}  // namespace

ScaleFunction find_multiply_float(Dtype dtype) {
  return HWY_DYNAMIC_DISPATCH(find_multiply_floats)(dtype);
}
ScaleFunction find_divide_float(Dtype dtype) {
  return HWY_DYNAMIC_DISPATCH(find_divide_floats)(dtype);
}
ScaleFunction find_widen_float(Dtype dtype) {
  return HWY_DYNAMIC_DISPATCH(find_widen_floats)(dtype);
}
ScaleFunction find_average_float(Dtype dtype) {
  return HWY_DYNAMIC_DISPATCH(find_average_floats)(dtype);
}

}  // namespace unisono::kernels
#endif
