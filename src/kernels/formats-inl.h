// How vectors of each dtype are decoded for arithmetic and encoded again. Compiled once for every
// SIMD target.
//
// A format has: Lane, the stored lane; D, the tag of one stored vector (Raw); Acc, what the
// arithmetic works on; decode(Raw); combine<Op>(Acc, Acc); encode<kExact>(Acc), which rounds to
// nearest, ties to even, exactly as to_f16() and its like do, except that kExact promises that
// there is nothing to round. No step relies on subnormal f32 values, so that a caller's
// flush-to-zero mode changes nothing for the narrow formats.
#if defined(UNISONO_KERNELS_FORMATS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNISONO_KERNELS_FORMATS_INL_H
#undef UNISONO_KERNELS_FORMATS_INL_H
#else
#define UNISONO_KERNELS_FORMATS_INL_H
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "kernels/ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes that need no conversion.
template <typename T>
struct Native {
  using Lane = T;
  using D = hn::ScalableTag<T>;
  using Raw = hn::Vec<D>;
  using Acc = Raw;
  static constexpr std::size_t kUnroll = 4;

  static HWY_INLINE Acc broadcast(double value) { return hn::Set(D(), static_cast<T>(value)); }
  static HWY_INLINE Acc decode(Raw raw) { return raw; }
  template <class Op>
  static HWY_INLINE Acc combine(Acc a, Acc b) {
    return Op::apply(D(), a, b);
  }
  template <bool kExact>
  static HWY_INLINE Raw encode(Acc acc) {
    return acc;
  }
};

// Integers as truth values: nonzero is true, and the result is 0 or 1.
template <typename T>
struct Logical : Native<T> {
  using Raw = typename Native<T>::Raw;
  static HWY_INLINE Raw decode(Raw raw) {
    const typename Native<T>::D d;
    return hn::IfThenElseZero(hn::Ne(raw, hn::Zero(d)), hn::Set(d, T{1}));
  }
};

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
using BitsTag = hn::ScalableTag<std::uint32_t>;
using BitsVec = hn::Vec<BitsTag>;

// The upper half of the result is the bf16; the lower half is of no use.
template <bool kExact>
HWY_INLINE BitsVec round_bf16(FloatVec value) {
  const BitsTag d;
  const auto bits = hn::BitCast(d, value);
  if constexpr (kExact) {
    return bits;
  }
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fffU)));
  const auto quiet = hn::Or(bits, hn::Set(d, 0x400000U));
  return hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(value)), quiet, rounded);
}

#if HWY_TARGET != HWY_SCALAR
// Each 32-bit lane holds two elements; they are widened in place, the even and the odd one, so
// that no element crosses a lane.
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
    const auto wide = hn::Set(FloatTag(), static_cast<float>(value));
    return {wide, wide};
  }
  static HWY_INLINE Acc decode(Raw raw) {
    const auto bits = hn::BitCast(BitsTag(), raw);
    return {hn::BitCast(FloatTag(), hn::ShiftLeft<16>(bits)),
            hn::BitCast(FloatTag(), hn::And(bits, hn::Set(BitsTag(), 0xffff0000U)))};
  }
  template <class Op>
  static HWY_INLINE Acc combine(Acc a, Acc b) {
    return {Op::apply(FloatTag(), a.even, b.even), Op::apply(FloatTag(), a.odd, b.odd)};
  }
  template <bool kExact>
  static HWY_INLINE Raw encode(Acc acc) {
    const auto even = hn::ShiftRight<16>(round_bf16<kExact>(acc.even));
    const auto odd = hn::And(round_bf16<kExact>(acc.odd), hn::Set(BitsTag(), 0xffff0000U));
    return hn::BitCast(D(), hn::Or(even, odd));
  }
};
#endif

// Rounds f32 to a float of kMantissa bits and exponent bias kBias and gives its code. Adding
// `unit` = 2^(23 - kMantissa) units in the last place of the result makes the f32 addition itself
// round to nearest even; subnormals share the exponent of the least normal number. kLimit is the
// f32 whose code is that of overflow; kNan the code of NaN.
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
  // A carry out of the mantissa runs into the exponent, which is just right.
  const auto mantissa = hn::Sub(hn::BitCast(d, sum), unit);
  const auto base = hn::ShiftRight<23 - kMantissa>(hn::Sub(exponent, hn::Set(d, kLeast)));
  auto code = hn::Add(mantissa, base);
  code = hn::IfThenElse(hn::Gt(all, hn::Set(d, 0x7f800000U)), hn::Set(d, kNan), code);
  constexpr int kSignShift = 31 - kMantissa - (kBias == 7 ? 4 : 5);
  const auto sign = hn::ShiftRight<kSignShift>(hn::AndNot(hn::Set(d, 0x7fffffffU), bits));
  return hn::Or(code, sign);
}

// The f32 of a code without its sign, for formats with infinity (kInfinity) and OCP E4M3.
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
  // A subnormal is the fraction above the least normal number, less that number.
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

// A format narrower than f32 that is widened to as many f32 lanes.
template <typename T>
struct Widened {
  using Lane = T;
  using D = hn::Rebind<T, FloatTag>;
  using Raw = hn::Vec<D>;
  using Acc = FloatVec;
  static constexpr std::size_t kUnroll = 2;

  static HWY_INLINE Acc broadcast(double value) {
    return hn::Set(FloatTag(), static_cast<float>(value));
  }
  template <class Op>
  static HWY_INLINE Acc combine(Acc a, Acc b) {
    return Op::apply(FloatTag(), a, b);
  }

 protected:
  static HWY_INLINE Raw shrink(BitsVec code) {
    const hn::RebindToSigned<BitsTag> di;
    return hn::DemoteTo(D(), hn::BitCast(di, code));
  }
};

#if HWY_TARGET == HWY_SCALAR
struct Bf16 : Widened<std::uint16_t> {
  static HWY_INLINE Acc decode(Raw raw) {
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(BitsTag(), raw)));
  }
  template <bool kExact>
  static HWY_INLINE Raw encode(Acc acc) {
    return shrink(hn::ShiftRight<16>(round_bf16<kExact>(acc)));
  }
};
#endif

struct F16 : Widened<std::uint16_t> {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
  static HWY_INLINE Acc decode(Raw raw) {
    return hn::PromoteTo(FloatTag(), hn::BitCast(hn::Rebind<hwy::float16_t, FloatTag>(), raw));
  }
  // The hardware would keep a NaN's payload.
  template <bool kExact>
  static HWY_INLINE Raw encode(Acc acc) {
    const BitsTag d;
    const auto bits = hn::BitCast(d, acc);
    const auto nan = hn::Or(hn::And(bits, hn::Set(d, 0x80000000U)), hn::Set(d, 0x7fc00000U));
    const auto canonical = hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(acc)), nan, bits);
    const hn::Rebind<hwy::float16_t, FloatTag> df16;
    return hn::BitCast(D(), hn::DemoteTo(df16, hn::BitCast(FloatTag(), canonical)));
  }
#else
  static HWY_INLINE Acc decode(Raw raw) {
    return decode_narrow<10, 15, true>(hn::PromoteTo(BitsTag(), raw));
  }
  template <bool kExact>
  static HWY_INLINE Raw encode(Acc acc) {
    return shrink(encode_narrow<10, 15, 0x47800000U, 0x7e00U>(acc));
  }
#endif
};

struct F8e4m3 : Widened<std::uint8_t> {
  static HWY_INLINE Acc decode(Raw raw) {
    return decode_narrow<3, 7, false>(hn::PromoteTo(BitsTag(), raw));
  }
  template <bool kExact>
  static HWY_INLINE Raw encode(Acc acc) {
    return shrink(encode_narrow<3, 7, 0x43f00000U, 0x7fU>(acc));  // 480, were it a number
  }
};

struct F8e5m2 : Widened<std::uint8_t> {
  static HWY_INLINE Acc decode(Raw raw) {
    return decode_narrow<2, 15, true>(hn::PromoteTo(BitsTag(), raw));
  }
  template <bool kExact>
  static HWY_INLINE Raw encode(Acc acc) {
    return shrink(encode_narrow<2, 15, 0x47800000U, 0x7eU>(acc));  // 65536
  }
};

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
