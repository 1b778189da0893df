// Encodes f32 as blocks of 8-bit codes with a scale, or as bf16.
#include "kernels/coded_blocks.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/private.h"
#include "kernels/coded_rows.h"
#include "kernels/simd_targets.h"
#include "kernels/tiny_blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/coded_blocks.cc"
#include "hwy/foreach_target.h"  // must come first: includes this file again
#include "hwy/highway.h"
#include "kernels/codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {

// Vectors have at most kCodeBlock lanes, so that a block consists of whole vectors.
using BlockTag = hn::CappedTag<float, kCodeBlock>;
using BlockBits = hn::RebindToUnsigned<BlockTag>;
using BlockInts = hn::RebindToSigned<BlockTag>;
using BlockCodes = hn::Rebind<std::int8_t, BlockTag>;

// Returns the bf16 nearest to a finite number.
HWY_INLINE std::uint16_t nearest_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

HWY_INLINE float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

// Returns the bits of the greatest magnitude in a whole block. NaN counts as greater than infinity,
// and infinity as greater than all numbers.
HWY_INLINE std::uint32_t greatest_bits(const std::byte* from) {
  const BlockBits d;
  auto all = hn::Zero(d);
  for (std::size_t i = 0; i < kCodeBlock; i += hn::Lanes(d)) {
    all = hn::Max(all, hn::And(load(d, from + 4 * i), hn::Set(d, 0x7fffffffU)));
  }
  return hn::GetLane(hn::MaxOfLanes(d, all));
}

// The greatest scale for which 127 * scale is a finite f32.
constexpr auto kMostScale = static_cast<std::uint16_t>(
    std::bit_cast<std::uint32_t>(std::numeric_limits<float>::max() / 127.0F) >> 16U);
constexpr std::uint32_t kInfinity = 0x7f800000U;

HWY_INLINE void encode_block(std::byte* to, const std::byte* from) {
  constexpr std::uint16_t kNan = 0x7fc0U;
  const std::uint32_t greatest = greatest_bits(from);
  if (greatest >= kInfinity || greatest == 0) {
    const std::uint16_t scale = greatest == 0 ? 0 : kNan;
    std::memset(to, 0, kCodeBlockBytes);
    std::memcpy(to, &scale, sizeof scale);
    return;
  }
  if (greatest < kTinyEnd) {
    const TinyBlock block = encode_tiny(from, greatest);
    std::memcpy(to, &block.scale, sizeof block.scale);
    std::memcpy(to + sizeof block.scale, block.codes, sizeof block.codes);
    return;
  }
  const BlockTag d;
  const std::uint16_t scale =
      std::min(nearest_bf16(std::bit_cast<float>(greatest) / 127.0F), kMostScale);
  const auto factor = hn::Set(d, 1.0F / from_bf16(scale));
  std::memcpy(to, &scale, sizeof scale);
  for (std::size_t i = 0; i < kCodeBlock; i += hn::Lanes(d)) {
    const auto codes = hn::NearestInt(hn::Mul(load(d, from + 4 * i), factor));
    store(BlockCodes(), hn::DemoteTo(BlockCodes(), codes), to + sizeof scale + i);
  }
}

// Decodes a tiny block: in bf16 the data after the mark, in i8 the whole block.
HWY_INLINE void decode_tiny_block(std::byte* to, const std::byte* from) {
  TinyBlock block;
  std::memcpy(&block.scale, from, sizeof block.scale);
  std::memcpy(block.codes, from + sizeof block.scale, sizeof block.codes);
  decode_tiny(to, block);
}

HWY_INLINE void decode_block(std::byte* to, const std::byte* from) {
  const BlockTag d;
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  if (is_tiny_scale(bits)) {
    decode_tiny_block(to, from);
    return;
  }
  const auto scale = hn::Set(d, from_bf16(bits));
  for (std::size_t i = 0; i < kCodeBlock; i += hn::Lanes(d)) {
    const auto codes = hn::PromoteTo(BlockInts(), load(BlockCodes(), from + sizeof bits + i));
    store(d, hn::Mul(hn::ConvertTo(d, codes), scale), to + 4 * i);
  }
}

void encode_i8(void* coded, const void* floats, std::size_t count) {
  auto* to = static_cast<std::byte*>(coded);
  const auto* from = static_cast<const std::byte*>(floats);
  for (; count >= kCodeBlock; count -= kCodeBlock) {
    encode_block(to, from);
    to += kCodeBlockBytes;
    from += kCodeBlock * sizeof(float);
  }
  if (count != 0) {
    std::byte block[kCodeBlock * sizeof(float)] = {};
    std::byte codes[kCodeBlockBytes];
    std::memcpy(block, from, count * sizeof(float));
    encode_block(codes, block);
    std::memcpy(to, codes, coded_bytes(MoveCode::i8, count));
  }
}

void decode_i8(void* floats, const void* coded, std::size_t count) {
  auto* to = static_cast<std::byte*>(floats);
  const auto* from = static_cast<const std::byte*>(coded);
  for (; count >= kCodeBlock; count -= kCodeBlock) {
    decode_block(to, from);
    to += kCodeBlock * sizeof(float);
    from += kCodeBlockBytes;
  }
  if (count != 0) {
    std::byte codes[kCodeBlockBytes] = {};
    std::byte block[kCodeBlock * sizeof(float)];
    std::memcpy(codes, from, coded_bytes(MoveCode::i8, count));
    decode_block(block, codes);
    std::memcpy(to, block, count * sizeof(float));
  }
}

// In bf16, a block whose numbers are all below the least normal number is stored as this mark,
// which encodes no number, followed by an i8 block. That fits if the block has at least kLeastTiny
// elements.
constexpr std::uint16_t kTinyMark = 0xffffU;
constexpr std::size_t kLeastTiny = 4;
constexpr auto kLeastNormal = std::bit_cast<std::uint32_t>(0x1p-126F);
constexpr std::uint32_t kGreatestBf16 = 0x7f7f0000U;

HWY_INLINE void encode_numbers(std::byte* to, const std::byte* from, std::size_t count) {
  for_vectors(
      FloatTag(), count,
      [&](std::size_t i) {
        store(Bf16Lanes::D(), Bf16Lanes::encode<SumOp>(load(FloatTag(), from + 4 * i)), to + 2 * i);
      },
      [&](std::size_t i, std::size_t lanes) {
        const auto value = load_first(FloatTag(), from + 4 * i, lanes);
        store_first(Bf16Lanes::D(), Bf16Lanes::encode<SumOp>(value), to + 2 * i, lanes);
      });
}

HWY_INLINE void decode_numbers(std::byte* to, const std::byte* from, std::size_t count) {
  for_vectors(
      FloatTag(), count,
      [&](std::size_t i) {
        store(FloatTag(), Bf16Lanes::decode<SumOp>(load(Bf16Lanes::D(), from + 2 * i)), to + 4 * i);
      },
      [&](std::size_t i, std::size_t lanes) {
        const auto code = load_first(Bf16Lanes::D(), from + 2 * i, lanes);
        store_first(FloatTag(), Bf16Lanes::decode<SumOp>(code), to + 4 * i, lanes);
      });
}

// Encodes a block whose greatest magnitude is beyond the normal range of bf16. `from` has
// kCodeBlock elements, of which `count` are sent. Finite numbers stay finite.
void encode_edge(std::byte* to, std::byte* from, std::size_t count, std::uint32_t greatest) {
  if (greatest < kLeastNormal) {
    const TinyBlock block = encode_tiny(from, greatest);
    std::memset(to, 0, 2 * count);
    std::memcpy(to, &kTinyMark, sizeof kTinyMark);
    std::memcpy(to + sizeof kTinyMark, &block.scale, sizeof block.scale);
    std::memcpy(to + sizeof kTinyMark + sizeof block.scale, block.codes, count);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from + 4 * i, sizeof bits);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    bits &= magnitude > kGreatestBf16 && magnitude < kInfinity ? 0xffff0000U : 0xffffffffU;
    std::memcpy(from + 4 * i, &bits, sizeof bits);
  }
  encode_numbers(to, from, count);
}

HWY_INLINE bool is_edge(std::uint32_t greatest, std::size_t count) {
  return greatest > kGreatestBf16 ||
         (greatest != 0 && greatest < kLeastNormal && count >= kLeastTiny);
}

void encode_bf16(void* coded, const void* floats, std::size_t count) {
  auto* to = static_cast<std::byte*>(coded);
  const auto* from = static_cast<const std::byte*>(floats);
  while (count != 0) {
    const std::size_t some = std::min(count, kCodeBlock);
    std::byte block[kCodeBlock * sizeof(float)] = {};
    const std::byte* whole = from;
    if (some < kCodeBlock) {
      std::memcpy(block, from, some * sizeof(float));
      whole = block;
    }
    if (const std::uint32_t greatest = greatest_bits(whole); is_edge(greatest, some)) {
      std::memcpy(block, from, some * sizeof(float));
      encode_edge(to, block, some, greatest);
    } else {
      encode_numbers(to, from, some);
    }
    to += 2 * some;
    from += sizeof(float) * some;
    count -= some;
  }
}

void decode_bf16(void* floats, const void* coded, std::size_t count) {
  auto* to = static_cast<std::byte*>(floats);
  const auto* from = static_cast<const std::byte*>(coded);
  while (count != 0) {
    const std::size_t some = std::min(count, kCodeBlock);
    std::uint16_t first = 0;
    std::memcpy(&first, from, sizeof first);
    if (first == kTinyMark && some >= kLeastTiny) {
      std::byte block[sizeof first + kCodeBlockBytes] = {};
      std::byte numbers[kCodeBlock * sizeof(float)];
      std::memcpy(block, from, std::min(2 * some, sizeof block));
      decode_tiny_block(numbers, block + sizeof first);
      std::memcpy(to, numbers, some * sizeof(float));
    } else {
      decode_numbers(to, from, some);
    }
    to += sizeof(float) * some;
    from += 2 * some;
    count -= some;
  }
}

CodedBlockFunctions find_coded_blocks_here(MoveCode code) {
  switch (code) {
    case MoveCode::i8:
      return {.encode = encode_i8, .decode = decode_i8};
    case MoveCode::bf16:
      return {.encode = encode_bf16, .decode = decode_bf16};
    default:
      return {};
  }
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::kernels {
namespace {
HWY_EXPORT(find_coded_blocks_here);
}  // namespace

UNISONO_PRIVATE CodedBlockFunctions find_coded_blocks(MoveCode code) {
  return HWY_DYNAMIC_DISPATCH(find_coded_blocks_here)(code);
}

}  // namespace unisono::kernels
#endif
