// Decodes vectors of each dtype for arithmetic and encodes the results. Compiled once for every
// SIMD target.
//
// A format defines: Lane, the stored element; D, the tag of one stored vector (Raw); Acc, the type
// used for arithmetic; broadcast(number); decode<Op>(Raw); combine<Op>(Acc, Acc); encode<Op,
// kPair>(Acc), which rounds to nearest, ties to even, exactly like to_f16() and the other
// conversions. kPair: the Acc combines exactly two operands, which can simplify rounding.
//
// narrow-inl.h and f8-inl.h contain the formats of 16 and 8 bits.
#if defined(UNISONO_KERNELS_FORMATS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNISONO_KERNELS_FORMATS_INL_H
#undef UNISONO_KERNELS_FORMATS_INL_H
#else
#define UNISONO_KERNELS_FORMATS_INL_H
#endif

#include <cmath>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "kernels/ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Format of a type that needs no conversion.
template <typename T>
struct Native {
  using Lane = T;
  using D = hn::ScalableTag<T>;
  using Raw = hn::Vec<D>;
  using Acc = Raw;
  static constexpr std::size_t kUnroll = 4;

  static HWY_INLINE Acc broadcast(double value) { return hn::Set(D(), static_cast<T>(value)); }
  template <class Op>
  static HWY_INLINE Acc decode(Raw raw) {
    return raw;
  }
  template <class Op>
  static HWY_INLINE Acc combine(Acc a, Acc b) {
    return Op::apply(D(), a, b);
  }
  template <class Op, bool kPair = false>
  static HWY_INLINE Raw encode(Acc acc) {
    return acc;
  }
};

// Maps a C++ type to its format. The narrow floats specialise this template next to their formats.
template <typename T>
struct FormatOfType {
  using Format = Native<T>;
};
template <typename T>
using FormatOf = typename FormatOfType<T>::Format;

// Format of integers as truth values: nonzero is true, and the result is 0 or 1.
template <typename T>
struct Logical : Native<T> {
  using Raw = typename Native<T>::Raw;
  template <class Op>
  static HWY_INLINE Raw decode(Raw raw) {
    const typename Native<T>::D d;
    return hn::IfThenElseZero(hn::Ne(raw, hn::Zero(d)), hn::Set(d, T{1}));
  }
};

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
using BitsTag = hn::ScalableTag<std::uint32_t>;
using BitsVec = hn::Vec<BitsTag>;

// A NaN loses its payload, which the narrow formats could not hold.
HWY_INLINE FloatVec broadcast_float(double value) {
  return hn::Set(FloatTag(), std::isnan(value) ? std::numeric_limits<float>::quiet_NaN()
                                               : static_cast<float>(value));
}

// Format narrower than f32, widened to a vector with the same number of f32 lanes.
template <typename T>
struct Widened {
  using Lane = T;
  using D = hn::Rebind<T, FloatTag>;
  using Raw = hn::Vec<D>;
  using Acc = FloatVec;
  static constexpr std::size_t kUnroll = 2;

  static HWY_INLINE Acc broadcast(double value) { return broadcast_float(value); }
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

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
