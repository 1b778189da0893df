// f32 as blocks of codes of 8 bits with a scale, or as bf16.
#include "kernels/coded_blocks.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/coded_rows.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/coded_blocks.cc"
#include "hwy/foreach_target.h"  // first, as it includes this file again
#include "hwy/highway.h"
#include "kernels/codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {

// Lanes of a block: no more than it has, so that a whole block is whole vectors.
using BlockTag = hn::CappedTag<float, kCodeBlock>;
using BlockBits = hn::RebindToUnsigned<BlockTag>;
using BlockInts = hn::RebindToSigned<BlockTag>;
using BlockCodes = hn::Rebind<std::int8_t, BlockTag>;

// The bf16 that is nearest to a number that is finite.
HWY_INLINE std::uint16_t nearest_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

HWY_INLINE float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

// The greatest magnitude of a whole block, as bits: NaN is greater than infinity, which is greater
// than all numbers.
HWY_INLINE std::uint32_t greatest_bits(const std::byte* from) {
  const BlockBits d;
  auto all = hn::Zero(d);
  for (std::size_t i = 0; i < kCodeBlock; i += hn::Lanes(d)) {
    all = hn::Max(all, hn::And(load(d, from + 4 * i), hn::Set(d, 0x7fffffffU)));
  }
  return hn::GetLane(hn::MaxOfLanes(d, all));
}

HWY_INLINE void encode_block(std::byte* to, const std::byte* from) {
  constexpr std::uint32_t kInfinity = 0x7f800000U;
  // Its scale is a normal number, and it comes out as no less: so it is not zero when
  // it is encoded again.
  constexpr auto kLeast = std::bit_cast<std::uint32_t>(127 * 0x1p-126F);
  constexpr std::uint16_t kNan = 0x7fc0U;
  const std::uint32_t greatest = greatest_bits(from);
  if (greatest < kLeast || greatest >= kInfinity) {
    const std::uint16_t scale = greatest < kLeast ? 0 : kNan;
    std::memset(to, 0, kCodeBlockBytes);
    std::memcpy(to, &scale, sizeof scale);
    return;
  }
  const BlockTag d;
  const std::uint16_t scale = nearest_bf16(std::bit_cast<float>(greatest) / 127.0F);
  const auto factor = hn::Set(d, 1.0F / from_bf16(scale));
  std::memcpy(to, &scale, sizeof scale);
  for (std::size_t i = 0; i < kCodeBlock; i += hn::Lanes(d)) {
    const auto codes = hn::NearestInt(hn::Mul(load(d, from + 4 * i), factor));
    store(BlockCodes(), hn::DemoteTo(BlockCodes(), codes), to + sizeof scale + i);
  }
}

HWY_INLINE void decode_block(std::byte* to, const std::byte* from) {
  const BlockTag d;
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
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

void encode_bf16(void* coded, const void* floats, std::size_t count) {
  auto* to = static_cast<std::byte*>(coded);
  const auto* from = static_cast<const std::byte*>(floats);
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

void decode_bf16(void* floats, const void* coded, std::size_t count) {
  auto* to = static_cast<std::byte*>(floats);
  const auto* from = static_cast<const std::byte*>(coded);
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

CodedBlockFunctions find_coded_blocks(MoveCode code) {
  return HWY_DYNAMIC_DISPATCH(find_coded_blocks_here)(code);
}

}  // namespace unisono::kernels
#endif
