// 8-bit codes for blocks of floats, and the scale of a block. Part of coded_rows.cc, which defines
// the block length. Compiled once for every SIMD target.
#if defined(UNISONO_KERNELS_CODES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNISONO_KERNELS_CODES_INL_H
#undef UNISONO_KERNELS_CODES_INL_H
#else
#define UNISONO_KERNELS_CODES_INL_H
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/f8-inl.h"
#include "kernels/formats-inl.h"
#include "kernels/memory-inl.h"
#include "kernels/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A code defines: D, the tag of its lanes; kGreatest; kLeast; encode() of scaled floats; decode();
// round(), which equals encode() and decode() except for the sign of zeros; with_sign(), which sets
// that sign. A block whose greatest magnitude is below kLeast counts as zero. Otherwise its scale
// or its decoded values could be subnormal, or kGreatest divided by the magnitude could be
// infinite.
struct I8Code {
  using D = hn::Rebind<std::int8_t, FloatTag>;
  static constexpr float kGreatest = 127.0F;
  static constexpr float kLeast = 0x1p-119F;

  static HWY_INLINE hn::Vec<D> encode(FloatVec scaled) {
    return hn::DemoteTo(D(), hn::NearestInt(scaled));
  }
  static HWY_INLINE FloatVec decode(hn::Vec<D> codes) {
    return hn::ConvertTo(FloatTag(), hn::PromoteTo(hn::RebindToSigned<BitsTag>(), codes));
  }
  static HWY_INLINE FloatVec round(FloatVec scaled) { return hn::Round(scaled); }
  static HWY_INLINE FloatVec with_sign(FloatVec rounded, FloatVec) {  // i8 has no -0
    return hn::Add(rounded, hn::Zero(FloatTag()));
  }
};

struct F8Code {
  using D = F8e4m3Lanes::D;
  static constexpr float kGreatest = 448.0F;
  static constexpr float kLeast = 0x1p-108F;

  static HWY_INLINE hn::Vec<D> encode(FloatVec scaled) {
    return F8e4m3Lanes::encode<SumOp>(scaled);
  }
  static HWY_INLINE FloatVec decode(hn::Vec<D> codes) { return F8e4m3Lanes::decode<SumOp>(codes); }
  // Rounds by adding and subtracting 1.5 * 2^20 times the power of two below the value, or times
  // 2^-6 for subnormals.
  static HWY_INLINE FloatVec round(FloatVec scaled) {
    const BitsTag d;
    const auto bits = hn::BitCast(d, scaled);
    const auto exponent =
        hn::Max(hn::And(bits, hn::Set(d, 0x7f800000U)), hn::Set(d, std::uint32_t{121} << 23));
    const FloatVec unit = hn::BitCast(
        FloatTag(), hn::Add(exponent, hn::Set(d, (std::uint32_t{20} << 23) | (1U << 22))));
    return hn::Sub(hn::Add(scaled, unit), unit);
  }
  static HWY_INLINE FloatVec with_sign(FloatVec rounded, FloatVec scaled) {
    return hn::CopySign(rounded, scaled);
  }
};

// bf16 with as many lanes as f32, to which codes are widened.
struct Bf16Lanes : Widened<std::uint16_t> {
  template <class Op>
  static HWY_INLINE Acc decode(Raw raw) {
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(BitsTag(), raw)));
  }
  template <class Op>
  static HWY_INLINE Raw encode(Acc acc) {
    const BitsTag d;
    const auto bits = hn::BitCast(d, acc);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1U));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fffU))));
    const auto is_nan = hn::Gt(hn::And(bits, hn::Set(d, 0x7fffffffU)), hn::Set(d, 0x7f800000U));
    return shrink(hn::IfThenElse(is_nan, hn::Set(d, 0x7fc0U), rounded));
  }
};

// Returns a vector in which each lane is the greatest magnitude of some elements of a block.
// Magnitudes are compared as integers: NaN is greater than infinity, and infinity is greater than
// all numbers.
template <class Bits, class Size>
HWY_INLINE hn::Vec<hn::ScalableTag<Bits>> greatest_lanes(const std::byte* from, Size count) {
  const hn::ScalableTag<Bits> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto magnitudes = hn::Set(d, static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1));
  auto all = hn::Zero(d);
  std::size_t i = 0;
  for (; count - i >= lanes; i += lanes) {
    all = hn::Max(all, hn::And(load(d, from + i * sizeof(Bits)), magnitudes));
  }
  if (i != count) {
    all = hn::Max(all, hn::And(load_first(d, from + i * sizeof(Bits), count - i), magnitudes));
  }
  return all;
}

#if HWY_TARGET == HWY_SCALAR
template <class Bits, class Size>
HWY_INLINE std::uint32_t greatest_of(const std::byte* from, Size count) {
  return hn::GetLane(greatest_lanes<Bits>(from, count));
}
#else
using FourBits = hn::Full128<std::uint32_t>;

template <class D>
HWY_INLINE auto fold(D d, hn::Vec<D> all) {
  if constexpr (hn::MaxLanes(d) * sizeof(hn::TFromD<D>) <= 16) {
    return all;
  } else {
    const hn::Half<D> half;
    return fold(half, hn::Max(hn::LowerHalf(half, all), hn::UpperHalf(half, all)));
  }
}

// Returns four lanes, one of which is the greatest magnitude of the block.
template <class Bits, class Size>
HWY_INLINE hn::Vec<FourBits> greatest_of(const std::byte* from, Size count) {
  const auto all = greatest_lanes<Bits>(from, count);
  const auto four = hn::BitCast(FourBits(), fold(hn::ScalableTag<Bits>(), all));
  if constexpr (sizeof(Bits) == 4) {
    return four;
  } else {
    return hn::Max(hn::And(four, hn::Set(FourBits(), 0xffffU)), hn::ShiftRight<16>(four));
  }
}
#endif

// A block's address and scale factors: `factor` converts elements to codes, `back` converts codes
// to elements.
struct ScaledBlock {
  const std::byte* from;
  float factor;
  float back;
};

// Replaces blocks that count as zero.
alignas(64) constexpr std::byte kZeros[kCodedBlock * sizeof(float)] = {};

// Converts the bits of four magnitudes from the dtype to f32. Works on whole vectors if possible,
// because a vector load after narrower stores stalls.
template <class Format>
HWY_INLINE void widen_magnitudes(std::uint32_t* bits) {
  const hn::CappedTag<std::uint32_t, 4> d;
  if constexpr (std::is_same_v<Format, Bf16>) {
    for (std::size_t i = 0; i < 4; i += hn::Lanes(d)) {
      hn::Store(hn::ShiftLeft<16>(hn::Load(d, bits + i)), d, bits + i);
    }
  } else if constexpr (sizeof(typename Format::Lane) == 2) {
    for (std::size_t i = 0; i < 4; ++i) {
      const auto lane = static_cast<typename Format::Lane>(bits[i]);
      const auto wide = Format::template decode<SumOp>(hn::Set(typename Format::D(), lane));
      bits[i] = hn::GetLane(hn::BitCast(BitsTag(), wide));
    }
  }
}

// Computes the greatest magnitudes of one to four blocks, as f32 bits; 0 for missing blocks.
template <class Format, class Size>
HWY_INLINE void greatest_of_four(const ScaledBlock* blocks, int count, Size size,
                                 std::uint32_t* bits) {
  using Bits = hwy::MakeUnsigned<typename Format::Lane>;
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < count; ++i) {
    bits[i] = greatest_of<Bits>(blocks[i].from, size);
  }
#else
  const FourBits d;
  hn::Vec<FourBits> of[4];
  for (int i = 0; i < 4; ++i) {
    of[i] = i < count ? greatest_of<Bits>(blocks[i].from, size) : hn::Zero(d);
  }
  const auto pair = [d](auto a, auto b) {
    return hn::Max(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  };
  const auto front = pair(of[0], of[1]);
  const auto rear = pair(of[2], of[3]);
  hn::Store(hn::Max(hn::ConcatLowerLower(d, rear, front), hn::ConcatUpperUpper(d, rear, front)), d,
            bits);
#endif
  widen_magnitudes<Format>(bits);
}

// Sets the factors of one to four blocks; four at once are cheaper.
template <class Format, class Code, class Size>
HWY_INLINE void scale_four(ScaledBlock* blocks, int count, Size size) {
  const hn::CappedTag<float, 4> df;
  const hn::RebindToUnsigned<decltype(df)> d;
  alignas(16) std::uint32_t bits[4] = {};
  alignas(16) float factors[4];
  alignas(16) float scales[4];
  greatest_of_four<Format>(blocks, count, size, bits);
  const auto most = hn::Set(df, Code::kGreatest);
  for (std::size_t i = 0; i < 4; i += hn::Lanes(df)) {
    const auto magnitude = hn::Load(d, bits + i);
    const auto is_number = hn::RebindMask(df, hn::Gt(hn::Set(d, 0x7f800000U), magnitude));
    const auto is_coded =
        hn::And(is_number, hn::Ge(hn::BitCast(df, magnitude), hn::Set(df, Code::kLeast)));
    const auto greatest = hn::IfThenElse(is_coded, hn::BitCast(df, magnitude), most);
    hn::Store(hn::IfThenElseZero(is_coded, hn::Div(most, greatest)), df, factors + i);
    const auto scale = hn::IfThenElseZero(is_coded, hn::Div(greatest, most));
    const auto nan = hn::BitCast(df, hn::Set(d, 0x7fc00000U));
    hn::Store(hn::IfThenElse(is_number, scale, nan), df, scales + i);
  }
  for (int i = 0; i < count; ++i) {
    blocks[i] = {factors[i] == 0 ? kZeros : blocks[i].from, factors[i], scales[i]};
  }
}

// Compile-time size of a whole block, so that loops over it are unrolled.
using WholeBlock = std::integral_constant<std::size_t, kCodedBlock>;

// Calls each(block, first, size) for each block of a row. `first` is the block's first element;
// `size` is a WholeBlock or a std::size_t.
template <class Format, class Code, class Each>
HWY_INLINE void for_blocks(const void* row, std::size_t count, const Each& each) {
  constexpr std::size_t kBytes = kCodedBlock * sizeof(typename Format::Lane);
  const auto* from = static_cast<const std::byte*>(row);
  std::size_t first = 0;
  ScaledBlock blocks[4];
  for (; count - first >= 4 * kCodedBlock; from += 4 * kBytes) {
    for (std::size_t i = 0; i < 4; ++i) {
      blocks[i].from = from + i * kBytes;
    }
    scale_four<Format, Code>(blocks, 4, WholeBlock());
    for (int i = 0; i < 4; ++i, first += kCodedBlock) {
      each(blocks[i], first, WholeBlock());
    }
  }
  for (; first < count; first += kCodedBlock, from += kBytes) {
    const std::size_t size = count - first < kCodedBlock ? count - first : kCodedBlock;
    blocks[0].from = from;
    scale_four<Format, Code>(blocks, 1, size);
    each(blocks[0], first, size);
  }
}

// Calls whole(i) for each whole vector of `count` elements, then part(i, lanes) for the remaining
// elements.
template <class D, class Size, class Whole, class Part>
HWY_INLINE void for_vectors(D d, Size count, const Whole& whole, const Part& part) {
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; count - i >= lanes; i += lanes) {
    whole(i);
  }
  if (i != count) {
    part(i, count - i);
  }
}

template <class Format>
HWY_INLINE typename Format::Acc widen(const std::byte* from) {
  return Format::template decode<SumOp>(load(typename Format::D(), from));
}
template <class Format>
HWY_INLINE typename Format::Acc widen_first(const std::byte* from, std::size_t lanes) {
  return Format::template decode<SumOp>(load_first(typename Format::D(), from, lanes));
}

// Applies `f` to each f32 vector of the accumulators.
template <class F, class Acc, class... More>
HWY_INLINE Acc each_of(const F& f, Acc acc, More... more) {
  if constexpr (requires { acc.even; }) {
    return {f(acc.even, more.even...), f(acc.odd, more.odd...)};
  } else {
    return f(acc, more...);
  }
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
