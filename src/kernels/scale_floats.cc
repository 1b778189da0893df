// Multiplication and division of floats by one number.
#include "base/dtypes.h"
#include "kernels/scale_tables.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/scale_floats.cc"
#include "hwy/foreach_target.h"  // first, as it includes this file again
#include "hwy/highway.h"
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
}  // namespace

ScaleFunction find_multiply_float(Dtype dtype) {
  return HWY_DYNAMIC_DISPATCH(find_multiply_floats)(dtype);
}
ScaleFunction find_divide_float(Dtype dtype) {
  return HWY_DYNAMIC_DISPATCH(find_divide_floats)(dtype);
}

}  // namespace unisono::kernels
#endif
