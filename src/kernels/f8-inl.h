// The formats f8e4m3 and f8e5m2, with arithmetic in f32; see formats-inl.h. Compiled once for every
// SIMD target.
//
// With f16 hardware, each 16-bit lane holds two elements, an even and an odd one, which are widened
// in place to f16 and then to f32. An f8e5m2 is the upper byte of an f16. An f8e4m3 has one
// exponent bit less: shifted into place, it is an f16 of 2^-8 times the value, including
// subnormals, and sums can keep that scale.
#if defined(UNISONO_KERNELS_F8_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNISONO_KERNELS_F8_INL_H
#undef UNISONO_KERNELS_F8_INL_H
#else
#define UNISONO_KERNELS_F8_INL_H
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "kernels/formats-inl.h"
#include "kernels/narrow-inl.h"
#include "unisono/types.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// f8e4m3 with as many lanes as f32.
struct F8e4m3Lanes : Widened<std::uint8_t> {
  template <class Op>
  static HWY_INLINE Acc decode(Raw raw) {
    return decode_narrow<3, 7, false>(hn::PromoteTo(BitsTag(), raw));
  }
  template <class Op, bool kPair = false>
  static HWY_INLINE Raw encode(Acc acc) {
    return shrink(encode_narrow<3, 7, 0x43f00000U, 0x7fU>(acc));  // 480 overflows
  }
};

#if !UNISONO_KERNELS_HAS_F16
using F8e4m3 = F8e4m3Lanes;

struct F8e5m2 : Widened<std::uint8_t> {
  template <class Op>
  static HWY_INLINE Acc decode(Raw raw) {
    return decode_narrow<2, 15, true>(hn::PromoteTo(BitsTag(), raw));
  }
  template <class Op, bool kPair = false>
  static HWY_INLINE Raw encode(Acc acc) {
    return shrink(encode_narrow<2, 15, 0x47800000U, 0x7eU>(acc));  // 65536
  }
};
#else
using HalfTag = hn::Rebind<std::uint16_t, FloatTag>;  // f16 bits, with as many lanes as f32
using HalfVec = hn::Vec<HalfTag>;
using ByteTag = hn::Repartition<std::uint8_t, HalfTag>;
using ByteVec = hn::Vec<ByteTag>;

HWY_INLINE FloatVec widen_half(HalfVec half) {
  return hn::PromoteTo(FloatTag(), hn::BitCast(hn::Rebind<hwy::float16_t, FloatTag>(), half));
}
HWY_INLINE HalfVec narrow_half(FloatVec value) {
  return hn::BitCast(HalfTag(), hn::DemoteTo(hn::Rebind<hwy::float16_t, FloatTag>(), value));
}

// Rounds to kMantissa bits; below 2^-14, the least normal f16, to multiples of the least subnormal.
// Adding 1.5 * 2^(exponent + 23 - kMantissa) makes the f32 addition round to nearest even at the
// right bit.
template <int kMantissa, class Op>
HWY_INLINE FloatVec round_mantissa(FloatVec value) {
  if constexpr (Op::kExact) {
    return value;
  }
  const BitsTag d;
  const FloatTag df;
  const auto bits = hn::BitCast(d, value);
  auto exponent = hn::And(bits, hn::Set(d, 0x7f800000U));
  exponent = hn::Max(exponent, hn::Set(d, 113U << 23));
  if constexpr (!Op::kLinear) {
    // Clamps the exponent, which could overflow below; such values become infinite anyway.
    exponent = hn::Min(exponent, hn::Set(d, 200U << 23));
  }
  constexpr std::uint32_t kUnit = (static_cast<std::uint32_t>(23 - kMantissa) << 23) | (1U << 22);
  const auto unit = hn::BitCast(df, hn::Add(exponent, hn::Set(d, kUnit)));
  const auto rounded = hn::Sub(hn::Add(value, unit), unit);
  // Restores the sign of values that became zero.
  return hn::BitCast(df, hn::OrAnd(hn::BitCast(d, rounded), bits, hn::Set(d, 0x80000000U)));
}

// Rounds away the lower kDrop bits of the mantissa; a carry correctly increments the exponent. This
// second rounding is safe for the sum of two operands: if rounding to f16 was inexact, the smaller
// operand was below 2^-7 of the greater, so the sum is not near the midpoint between two f8 values.
template <int kDrop>
HWY_INLINE HalfVec round_half(HalfVec half) {
  const HalfTag d;
  const auto odd = hn::And(hn::ShiftRight<kDrop>(half), hn::Set(d, std::uint16_t{1}));
  const auto below = hn::Set(d, static_cast<std::uint16_t>((1U << (kDrop - 1)) - 1U));
  return hn::Add(half, hn::Add(odd, below));
}

struct F8e5m2 {
  using Lane = std::uint8_t;
  using D = ByteTag;
  using Raw = ByteVec;
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
    const auto pair = hn::BitCast(HalfTag(), raw);
    return {widen_half(hn::ShiftLeft<8>(pair)),
            widen_half(hn::And(pair, hn::Set(HalfTag(), std::uint16_t{0xff00})))};
  }
  template <class Op>
  static HWY_INLINE Acc combine(Acc a, Acc b) {
    return {Op::apply(FloatTag(), a.even, b.even), Op::apply(FloatTag(), a.odd, b.odd)};
  }
  template <class Op, bool kPair = false>
  static HWY_INLINE Raw encode(Acc acc) {
    const D d;
    const auto even = narrow<Op, kPair>(acc.even);
    const auto odd = narrow<Op, kPair>(acc.odd);
    const auto code = hn::BitCast(
        d, hn::OrAnd(hn::ShiftRight<8>(even), odd, hn::Set(HalfTag(), std::uint16_t{0xff00})));
    // NaN has one code per sign; removes a payload kept from operands.
    const auto all = hn::Set(d, std::uint8_t{0x7f});
    return hn::IfThenElse(hn::Eq(hn::And(code, all), all),
                          hn::And(code, hn::Set(d, std::uint8_t{0xfe})), code);
  }

 private:
  // The lower byte of each half is undefined.
  template <class Op, bool kPair>
  static HWY_INLINE HalfVec narrow(FloatVec value) {
    if constexpr (kPair && Op::kLinear && !Op::kExact) {
      return round_half<8>(narrow_half(value));
    }
    return narrow_half(round_mantissa<2, Op>(value));
  }
};

struct F8e4m3 {
  using Lane = std::uint8_t;
  using D = ByteTag;
  using Raw = ByteVec;
  // Shifted into an f16, NaN would become the number 480, so a mask records NaN.
  struct Acc {
    FloatVec even;
    FloatVec odd;
    hn::Mask<D> is_nan;
  };
  static constexpr std::size_t kUnroll = 2;

  static HWY_INLINE Acc broadcast(double value) {
    const auto wide = broadcast_float(value);
    return {wide, wide, hn::MaskFromVec(hn::Zero(D()))};
  }
  template <class Op>
  static HWY_INLINE Acc decode(Raw raw) {
    const hn::RebindToSigned<HalfTag> di;
    const auto pair = hn::BitCast(di, raw);
    const auto keep = hn::Set(di, static_cast<std::int16_t>(0xbf80));
    const auto even = hn::And(hn::ShiftRight<1>(hn::ShiftLeft<8>(pair)), keep);
    const auto odd = hn::And(hn::ShiftRight<1>(pair), keep);
    const auto all = hn::Set(D(), std::uint8_t{0x7f});
    return {scale<Op>(widen_half(hn::BitCast(HalfTag(), even)), 0x1p8F),
            scale<Op>(widen_half(hn::BitCast(HalfTag(), odd)), 0x1p8F),
            hn::Eq(hn::And(raw, all), all)};
  }
  template <class Op>
  static HWY_INLINE Acc combine(Acc a, Acc b) {
    return {Op::apply(FloatTag(), a.even, b.even), Op::apply(FloatTag(), a.odd, b.odd),
            hn::Or(a.is_nan, b.is_nan)};
  }
  template <class Op, bool kPair = false>
  static HWY_INLINE Raw encode(Acc acc) {
    const HalfTag d;
    const auto even = narrow<Op, kPair>(acc.even);
    const auto odd = narrow<Op, kPair>(acc.odd);
    const auto upper = hn::Add(magnitude(odd), magnitude(odd));
    const auto codes =
        hn::OrAnd(hn::ShiftRight<7>(magnitude(even)), upper, hn::Set(d, std::uint16_t{0xff00}));
    const auto signs = hn::BitCast(
        d, hn::OddEven(hn::BitCast(D(), odd), hn::BitCast(D(), hn::ShiftRight<8>(even))));
    const auto code = hn::BitCast(D(), hn::OrAnd(codes, signs, hn::Set(d, std::uint16_t{0x8080})));
    return hn::IfThenElse(acc.is_nan, hn::Or(code, hn::Set(D(), std::uint8_t{0x7f})), code);
  }

 private:
  // The seven lower bits of each half are undefined.
  template <class Op, bool kPair>
  static HWY_INLINE HalfVec narrow(FloatVec value) {
    if constexpr (kPair && Op::kLinear && !Op::kExact) {
      return round_half<7>(narrow_half(value));
    }
    return narrow_half(round_mantissa<3, Op>(scale<Op>(value, 0x1p-8F)));
  }
  template <class Op>
  static HWY_INLINE FloatVec scale(FloatVec value, float by) {
    return Op::kLinear ? value : hn::Mul(value, hn::Set(FloatTag(), by));
  }
  // Maps overflow, NaN and infinity to the bits that become the code of NaN.
  static HWY_INLINE HalfVec magnitude(HalfVec half) {
    const HalfTag d;
    return hn::Min(hn::And(half, hn::Set(d, std::uint16_t{0x7fff})),
                   hn::Set(d, std::uint16_t{0x3f80}));
  }
};
#endif

template <>
struct FormatOfType<f8e4m3> {
  using Format = F8e4m3;
};
template <>
struct FormatOfType<f8e5m2> {
  using Format = F8e5m2;
};

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
