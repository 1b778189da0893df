// Rows of floats as codes of 8 bits with a scale for each block.
#include "kernels/coded_rows.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/coded_rows.cc"
#include "hwy/foreach_target.h"  // first, as it includes this file again
#include "hwy/highway.h"
#include "kernels/f8-inl.h"
#include "kernels/formats-inl.h"
#include "kernels/memory-inl.h"
#include "kernels/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {

// A code has: D, the tag of its lanes; kGreatest; kLeast, below which the greatest magnitude of a
// block counts as zero, as a scale or what is decoded might be subnormal or kGreatest / less
// infinite; encode() of scaled floats, and decode().
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
};

struct F8Code {
  using D = F8e4m3Lanes::D;
  static constexpr float kGreatest = 448.0F;
  static constexpr float kLeast = 0x1p-108F;

  static HWY_INLINE hn::Vec<D> encode(FloatVec scaled) {
    return F8e4m3Lanes::encode<SumOp>(scaled);
  }
  static HWY_INLINE FloatVec decode(hn::Vec<D> codes) { return F8e4m3Lanes::decode<SumOp>(codes); }
};

// bf16 as many to a vector as f32, which the codes are widened to.
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

// Calls whole(i) for each whole vector of `count` lanes, then part(i, lanes) for what is left.
template <class Whole, class Part>
HWY_INLINE void for_vectors(std::size_t count, const Whole& whole, const Part& part) {
  const std::size_t lanes = hn::Lanes(FloatTag());
  std::size_t i = 0;
  for (; count - i >= lanes; i += lanes) {
    whole(i);
  }
  if (i != count) {
    part(i, count - i);
  }
}

template <class Format>
HWY_INLINE FloatVec widen(const std::byte* from) {
  return Format::template decode<SumOp>(load(typename Format::D(), from));
}
template <class Format>
HWY_INLINE FloatVec widen_first(const std::byte* from, std::size_t lanes) {
  return Format::template decode<SumOp>(load_first(typename Format::D(), from, lanes));
}

// Compared as integers: NaN is greater than infinity, which is greater than all numbers.
template <class Format>
HWY_INLINE std::uint32_t greatest_magnitude(const std::byte* from, std::size_t count) {
  const BitsTag d;
  constexpr std::size_t kSize = sizeof(typename Format::Lane);
  auto greatest = hn::Zero(d);
  const auto take = [&](FloatVec value) {
    greatest = hn::Max(greatest, hn::And(hn::BitCast(d, value), hn::Set(d, 0x7fffffffU)));
  };
  for_vectors(
      count, [&](std::size_t i) { take(widen<Format>(from + i * kSize)); },
      [&](std::size_t i, std::size_t lanes) {
        take(widen_first<Format>(from + i * kSize, lanes));
      });
  return hn::GetLane(hn::MaxOfLanes(d, greatest));
}

template <class Code>
HWY_INLINE hn::Vec<typename Code::D> to_codes(FloatVec value, float factor) {
  return Code::encode(hn::Mul(value, hn::Set(FloatTag(), factor)));
}
template <class Code>
HWY_INLINE FloatVec from_codes(hn::Vec<typename Code::D> codes, FloatVec scale) {
  return hn::Mul(Code::decode(codes), scale);
}

template <class Format, class Code>
void encode_row(void* coded, const void* row, std::size_t count) {
  constexpr std::size_t kSize = sizeof(typename Format::Lane);
  const typename Code::D code;
  if (count == 0) {
    return;  // a row of nothing may be nowhere
  }
  const auto* from = static_cast<const std::byte*>(row);
  auto* scales = static_cast<std::byte*>(coded);
  auto* codes = scales + coded_scales(count) * sizeof(float);
  for (std::size_t first = 0; first < count; first += kCodedBlock) {
    const std::size_t size = count - first < kCodedBlock ? count - first : kCodedBlock;
    const std::byte* block = from + first * kSize;
    const std::uint32_t bits = greatest_magnitude<Format>(block, size);
    const float greatest = std::bit_cast<float>(bits);
    const bool is_number = bits < 0x7f800000U;
    const bool is_zero = !is_number || greatest < Code::kLeast;
    const float scale = !is_number ? std::bit_cast<float>(0x7fc00000U)
                        : is_zero  ? 0.0F
                                   : greatest / Code::kGreatest;
    std::memcpy(scales + first / kCodedBlock * sizeof(float), &scale, sizeof scale);
    std::byte* to = codes + first;
    if (is_zero) {
      std::memset(to, 0, size);
      continue;
    }
    const float factor = Code::kGreatest / greatest;
    for_vectors(
        size,
        [&](std::size_t i) {
          store(code, to_codes<Code>(widen<Format>(block + i * kSize), factor), to + i);
        },
        [&](std::size_t i, std::size_t lanes) {
          const FloatVec values = widen_first<Format>(block + i * kSize, lanes);
          store_first(code, to_codes<Code>(values, factor), to + i, lanes);
        });
  }
  std::memset(codes + count, 0, (count + 3) / 4 * 4 - count);
}

HWY_INLINE FloatVec scale_of(const std::byte* coded, std::size_t block) {
  float scale = 0;
  std::memcpy(&scale, coded + block * sizeof scale, sizeof scale);
  return hn::Set(FloatTag(), scale);
}

template <class Format, class Code, bool kStreams>
void decode_row_to(std::byte* to, const std::byte* coded, std::size_t count) {
  const typename Format::D d;
  const typename Code::D code;
  constexpr std::size_t kSize = sizeof(typename Format::Lane);
  const std::byte* codes = coded + coded_scales(count) * sizeof(float);
  for (std::size_t first = 0; first < count; first += kCodedBlock) {
    const std::size_t size = count - first < kCodedBlock ? count - first : kCodedBlock;
    const FloatVec scale = scale_of(coded, first / kCodedBlock);
    for_vectors(
        size,
        [&](std::size_t i) {
          const auto value = Format::template encode<SumOp>(
              from_codes<Code>(load(code, codes + first + i), scale));
          std::byte* target = to + (first + i) * kSize;
          if constexpr (kStreams) {
            store_streaming(d, value, target);
          } else {
            store(d, value, target);
          }
        },
        [&](std::size_t i, std::size_t lanes) {
          const auto read = load_first(code, codes + first + i, lanes);
          store_first(d, Format::template encode<SumOp>(from_codes<Code>(read, scale)),
                      to + (first + i) * kSize, lanes);
        });
  }
}

template <class Format, class Code>
void decode_row(void* row, const void* coded, std::size_t count, Store how) {
  auto* to = static_cast<std::byte*>(row);
  const auto* from = static_cast<const std::byte*>(coded);
  if (how == Store::streaming && reinterpret_cast<std::uintptr_t>(to) % 64 == 0) {
    decode_row_to<Format, Code, true>(to, from, count);
  } else {
    decode_row_to<Format, Code, false>(to, from, count);
  }
}

template <class Format, class Code>
void sum_coded_rows(void* target, const void* addend, const void* const* rows, const float* factors,
                    int row_count, std::size_t count) {
  const typename Format::D d;
  const typename Code::D code;
  constexpr std::size_t kSize = sizeof(typename Format::Lane);
  const std::size_t codes_at = coded_scales(count) * sizeof(float);
  auto* to = static_cast<std::byte*>(target);
  const auto* begin = static_cast<const std::byte*>(addend);
  for (std::size_t first = 0; first < count; first += kCodedBlock) {
    const std::size_t size = count - first < kCodedBlock ? count - first : kCodedBlock;
    const auto sum = [&](FloatVec acc, std::size_t at, const auto& load_codes) {
      for (int row = 0; row < row_count; ++row) {
        const auto* coded = static_cast<const std::byte*>(rows[row]);
        const FloatVec term = from_codes<Code>(load_codes(coded + codes_at + at),
                                               scale_of(coded, first / kCodedBlock));
        acc = hn::Add(acc,
                      factors == nullptr ? term : hn::Mul(term, hn::Set(FloatTag(), factors[row])));
      }
      return Format::template encode<SumOp>(acc);
    };
    for_vectors(
        size,
        [&](std::size_t i) {
          const std::size_t at = first + i;
          const FloatVec acc =
              begin == nullptr ? hn::Zero(FloatTag()) : widen<Format>(begin + at * kSize);
          store(d, sum(acc, at, [code](const std::byte* from) { return load(code, from); }),
                to + at * kSize);
        },
        [&](std::size_t i, std::size_t lanes) {
          const std::size_t at = first + i;
          const FloatVec acc = begin == nullptr ? hn::Zero(FloatTag())
                                                : widen_first<Format>(begin + at * kSize, lanes);
          store_first(
              d,
              sum(acc, at,
                  [lanes, code](const std::byte* from) { return load_first(code, from, lanes); }),
              to + at * kSize, lanes);
        });
  }
}

template <class Format, class Code>
CodedRowFunctions functions_of() {
  return {.encode = encode_row<Format, Code>,
          .decode = decode_row<Format, Code>,
          .weighted_sum = sum_coded_rows<Format, Code>};
}

template <class Code>
CodedRowFunctions find_rows_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return functions_of<Bf16Lanes, Code>();
    case Dtype::f16:
      return functions_of<F16, Code>();
    case Dtype::f32:
      return functions_of<Native<float>, Code>();
    default:
      return {};
  }
}

CodedRowFunctions find_coded_rows_here(Dtype dtype, Dtype code) {
  switch (code) {
    case Dtype::i8:
      return find_rows_of<I8Code>(dtype);
    case Dtype::f8e4m3:
      return find_rows_of<F8Code>(dtype);
    default:
      return {};
  }
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::kernels {
namespace {
HWY_EXPORT(find_coded_rows_here);
}  // namespace

CodedRowFunctions find_coded_rows(Dtype dtype, Dtype code) {
  return HWY_DYNAMIC_DISPATCH(find_coded_rows_here)(dtype, code);
}

}  // namespace unisono::kernels
#endif
