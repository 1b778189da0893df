// The formats bf16 and f16, with arithmetic in f32; see formats-inl.h. Compiled once for every SIMD
// target.
//
// No step creates subnormal f32 values, so a caller's flush-to-zero mode does not affect f16 and
// fp8.
#if defined(UNISONO_KERNELS_NARROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNISONO_KERNELS_NARROW_INL_H
#undef UNISONO_KERNELS_NARROW_INL_H
#else
#define UNISONO_KERNELS_NARROW_INL_H
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "kernels/formats-inl.h"
#include "unisono/types.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// True if this target has instructions that convert between f16 and f32.
#undef UNISONO_KERNELS_HAS_F16
#define UNISONO_KERNELS_HAS_F16 \
  (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64))

// Rounds f32 to a float with kMantissa mantissa bits and exponent bias kBias, and returns its code.
// `unit` is a power of two of such a magnitude that the last bit of its f32 mantissa has the weight
// of the last bit of the result. Adding `unit` therefore makes the f32 addition round to the last
// bit of the result, to nearest even. Subnormals use the exponent of the least normal number.
// kLimit is the f32 value at which the code overflows; kNan is the code of NaN.
template <int kMantissa, int kBias, std::uint32_t kLimit, std::uint32_t kNan>
HWY_INLINE BitsVec encode_narrow(FloatVec value) {
  const BitsTag d;
  const FloatTag df;
  constexpr std::uint32_t kLeast = static_cast<std::uint32_t>(128 - kBias) << 23;
  const auto bits = hn::BitCast(d, value);
  const auto all = hn::And(bits, hn::Set(d, 0x7fffffffU));
  const auto magnitude = hn::Min(all, hn::Set(d, kLimit));
  const auto exponent = hn::Max(hn::And(magnitude, hn::Set(d, 0x7f800000U)), hn::Set(d, kLeast));
  const auto unit = hn::Add(exponent, hn::Set(d, static_cast<std::uint32_t>(23 - kMantissa) << 23));
  const auto sum = hn::Add(hn::BitCast(df, magnitude), hn::BitCast(df, unit));
  // A carry out of the mantissa correctly increments the exponent.
  const auto mantissa = hn::Sub(hn::BitCast(d, sum), unit);
  const auto base = hn::ShiftRight<23 - kMantissa>(hn::Sub(exponent, hn::Set(d, kLeast)));
  auto code = hn::Add(mantissa, base);
  code = hn::IfThenElse(hn::Gt(all, hn::Set(d, 0x7f800000U)), hn::Set(d, kNan), code);
  constexpr int kSignShift = 31 - kMantissa - (kBias == 7 ? 4 : 5);
  const auto sign = hn::ShiftRight<kSignShift>(hn::AndNot(hn::Set(d, 0x7fffffffU), bits));
  return hn::Or(code, sign);
}

// Returns the f32 value of a code without its sign, for formats with infinity (kInfinity) and for
// OCP E4M3.
template <int kMantissa, int kBias, bool kInfinity>
HWY_INLINE FloatVec decode_narrow(BitsVec code) {
  const BitsTag d;
  const FloatTag df;
  constexpr std::uint32_t kTop = kBias == 7 ? 0x7fU : 0x1fU << kMantissa;
  constexpr std::uint32_t kLeast = static_cast<std::uint32_t>(128 - kBias) << 23;
  constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << 23;
  constexpr int kSign = kMantissa + (kBias == 7 ? 4 : 5);
  const auto magnitude = hn::And(code, hn::Set(d, (1U << kSign) - 1));
  const auto shifted = hn::ShiftLeft<23 - kMantissa>(magnitude);
  const auto normal = hn::Add(shifted, hn::Set(d, kRebias));
  // Computes a subnormal as (least normal number + fraction) - least normal number.
  const auto fraction = hn::BitCast(df, hn::Or(shifted, hn::Set(d, kLeast)));
  const auto subnormal = hn::BitCast(d, hn::Sub(fraction, hn::BitCast(df, hn::Set(d, kLeast))));
  auto bits = hn::IfThenElse(hn::Gt(hn::Set(d, 1U << kMantissa), magnitude), subnormal, normal);
  if constexpr (kInfinity) {
    bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kTop - 1)),
                          hn::Or(shifted, hn::Set(d, 0x7f800000U)), bits);
    bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kTop)), hn::Set(d, 0x7fc00000U), bits);
  } else {
    bits = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, kTop)), hn::Set(d, 0x7fc00000U), bits);
  }
  const auto sign = hn::AndNot(hn::Set(d, 0x7fffffffU), hn::ShiftLeft<31 - kSign>(code));
  return hn::BitCast(df, hn::Or(bits, sign));
}

#if HWY_TARGET == HWY_SCALAR
struct Bf16 : Widened<std::uint16_t> {
  template <class Op>
  static HWY_INLINE Acc decode(Raw raw) {
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(BitsTag(), raw)));
  }
  template <class Op, bool kPair = false>
  static HWY_INLINE Raw encode(Acc acc) {
    const BitsTag d;
    auto bits = hn::BitCast(d, acc);
    if constexpr (!Op::kExact) {
      const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1U));
      bits = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fffU)));
    }
    return shrink(hn::ShiftRight<16>(bits));
  }
};
#else
// Each 32-bit lane holds two elements, an even and an odd one, which are widened in place, so that
// no element crosses a lane.
//
// Rounding preserves NaN: the lower half of its bits is zero, so there is no carry.
struct Bf16 {
  using Lane = std::uint16_t;
  using D = hn::ScalableTag<std::uint16_t>;
  using Raw = hn::Vec<D>;
  struct Acc {
    FloatVec even;
    FloatVec odd;
  };
  static constexpr std::size_t kUnroll = 2;

  static HWY_INLINE Acc broadcast(double value) {
    return {broadcast_float(value), broadcast_float(value)};
  }
  template <class Op>
  static HWY_INLINE Acc decode(Raw raw) {
    const auto bits = hn::BitCast(BitsTag(), raw);
    return {hn::BitCast(FloatTag(), hn::ShiftLeft<16>(bits)),
            hn::BitCast(FloatTag(), hn::And(bits, hn::Set(BitsTag(), 0xffff0000U)))};
  }
  template <class Op>
  static HWY_INLINE Acc combine(Acc a, Acc b) {
    return {Op::apply(FloatTag(), a.even, b.even), Op::apply(FloatTag(), a.odd, b.odd)};
  }
  template <class Op, bool kPair = false>
  static HWY_INLINE Raw encode(Acc acc) {
    const D d;
    const auto even = hn::BitCast(BitsTag(), acc.even);
    const auto odd = hn::BitCast(BitsTag(), acc.odd);
    const auto upper = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<16>(even)));
    if constexpr (Op::kExact) {
      return upper;
    }
    const auto lower = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<16>(odd)), hn::BitCast(d, even));
    // lower + 0x7fff + (upper & 1) may carry into the upper half. The average instruction computes
    // half of that sum without losing the carry.
    const auto half =
        hn::Or(hn::And(upper, hn::Set(d, std::uint16_t{1})), hn::Set(d, std::uint16_t{0x7ffe}));
    return hn::Add(upper, hn::ShiftRight<15>(hn::AverageRound(lower, half)));
  }
};
#endif

#if !UNISONO_KERNELS_HAS_F16
struct F16 : Widened<std::uint16_t> {
  template <class Op>
  static HWY_INLINE Acc decode(Raw raw) {
    return decode_narrow<10, 15, true>(hn::PromoteTo(BitsTag(), raw));
  }
  template <class Op, bool kPair = false>
  static HWY_INLINE Raw encode(Acc acc) {
    return shrink(encode_narrow<10, 15, 0x47800000U, 0x7e00U>(acc));
  }
};
#else
struct F16 : Widened<std::uint16_t> {
  template <class Op>
  static HWY_INLINE Acc decode(Raw raw) {
    return hn::PromoteTo(FloatTag(), hn::BitCast(hn::Rebind<hwy::float16_t, FloatTag>(), raw));
  }
  template <class Op, bool kPair = false>
  static HWY_INLINE Raw encode(Acc acc) {
    const D d;
    const hn::RebindToSigned<D> di;
    const auto raw = hn::BitCast(d, hn::DemoteTo(hn::Rebind<hwy::float16_t, FloatTag>(), acc));
    // The hardware keeps a NaN's payload, but to_f16() does not.
    const auto magnitude = hn::And(raw, hn::Set(d, std::uint16_t{0x7fff}));
    const auto is_nan = hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, std::int16_t{0x7c00}));
    return hn::IfThenElse(hn::RebindMask(d, is_nan),
                          hn::And(raw, hn::Set(d, std::uint16_t{0xfe00})), raw);
  }
};
#endif

template <>
struct FormatOfType<f16> {
  using Format = F16;
};
template <>
struct FormatOfType<bf16> {
  using Format = Bf16;
};

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
