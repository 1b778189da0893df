// Reduce operations on a pair of vectors. Compiled once for every SIMD target.
//
// In Op::apply(d, a, b), `a` is the result so far and `b` the next source. kExact: the result is
// one of the operands, so a narrow float needs no rounding afterwards. kLinear: scaling the
// operands by a power of two scales the result by the same power, and no result of kMaxSources fp8
// operands exceeds 2^32.
#if defined(UNISONO_KERNELS_OPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNISONO_KERNELS_OPS_INL_H
#undef UNISONO_KERNELS_OPS_INL_H
#else
#define UNISONO_KERNELS_OPS_INL_H
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct SumOp {
  static constexpr bool kExact = false;
  static constexpr bool kLinear = true;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::Add(a, b);
  }
};

// Multiplies unsigned integers modulo 2^bits; signed integers give the same bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V multiply_bytes([[maybe_unused]] D d, V a, V b) {
#if HWY_TARGET == HWY_SCALAR
  return V(static_cast<std::uint8_t>(a.raw * b.raw));
#else
  const hn::Repartition<std::uint16_t, D> d16;
  const auto a16 = hn::BitCast(d16, a);
  const auto b16 = hn::BitCast(d16, b);
  const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, std::uint16_t{0xff}));
  const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
  return hn::BitCast(d, hn::Or(even, odd));
#endif
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V multiply_quads([[maybe_unused]] D d, V a, V b) {
#if HWY_TARGET == HWY_SCALAR
  return V(a.raw * b.raw);
#else
  const hn::Repartition<std::uint32_t, D> d32;
  const auto a32 = hn::BitCast(d32, a);
  const auto b32 = hn::BitCast(d32, b);
  const auto low = hn::BitCast(d, hn::MulEven(a32, b32));
  // Both cross products go into the upper half, where they wrap.
  const auto cross = hn::BitCast(d, hn::Mul(a32, hn::Shuffle2301(b32)));
  const auto upper = hn::And(cross, hn::Set(d, 0xffffffff00000000U));
  return hn::Add(low, hn::Add(hn::ShiftLeft<32>(cross), upper));
#endif
}

struct ProdOp {
  static constexpr bool kExact = false;
  static constexpr bool kLinear = false;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply([[maybe_unused]] D d, V a, V b) {
    using T = hn::TFromD<D>;
    if constexpr (std::is_same_v<T, std::uint8_t>) {
      return multiply_bytes(d, a, b);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      return multiply_quads(d, a, b);
    } else {
      return hn::Mul(a, b);
    }
  }
};

// Divides floats, for avg.
struct DivideOp {
  static constexpr bool kExact = false;
  static constexpr bool kLinear = false;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::Div(a, b);
  }
};

// Floats: NaN if any operand is NaN. If operands are equal (-0 and +0), keeps the first source's
// value.
struct MinOp {
  static constexpr bool kExact = true;
  static constexpr bool kLinear = true;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
    } else {
      return hn::Min(a, b);
    }
  }
};

struct MaxOp {
  static constexpr bool kExact = true;
  static constexpr bool kLinear = true;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(b)), b, a);
    } else {
      return hn::Max(a, b);
    }
  }
};

struct AndOp {
  static constexpr bool kExact = true;
  static constexpr bool kLinear = false;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::And(a, b);
  }
};

struct OrOp {
  static constexpr bool kExact = true;
  static constexpr bool kLinear = false;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::Or(a, b);
  }
};

struct XorOp {
  static constexpr bool kExact = true;
  static constexpr bool kLinear = false;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::Xor(a, b);
  }
};

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
