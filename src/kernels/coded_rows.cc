// Encodes rows of floats as 8-bit codes with a scale per block.
#include "kernels/coded_rows.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/private.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/coded_rows.cc"
#include "hwy/foreach_target.h"  // must come first: includes this file again
#include "hwy/highway.h"
#include "kernels/codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {

// A vector of codes is widened to f32 vectors with equal lane counts, so vectors of the dtype use
// that lane count too.
template <class Format>
using LanesOf = std::conditional_t<std::is_same_v<Format, Bf16>, Bf16Lanes, Format>;

template <class Format, class Code>
void encode_row(void* coded, const void* row, std::size_t count) {
  using Lanes = LanesOf<Format>;
  constexpr std::size_t kSize = sizeof(typename Lanes::Lane);
  const typename Code::D code;
  if (count == 0) {
    return;  // an empty row may be null
  }
  auto* scales = static_cast<std::byte*>(coded);
  auto* codes = scales + coded_scales(count) * sizeof(float);
  for_blocks<Format, Code>(row, count, [&](const ScaledBlock& block, std::size_t first, auto size) {
    std::memcpy(scales + first / kCodedBlock * sizeof(float), &block.back, sizeof block.back);
    std::byte* to = codes + first;
    const auto encode = [&](FloatVec values) {
      return Code::encode(hn::Mul(values, hn::Set(FloatTag(), block.factor)));
    };
    for_vectors(
        code, size,
        [&](std::size_t i) { store(code, encode(widen<Lanes>(block.from + i * kSize)), to + i); },
        [&](std::size_t i, std::size_t lanes) {
          store_first(code, encode(widen_first<Lanes>(block.from + i * kSize, lanes)), to + i,
                      lanes);
        });
  });
  std::memset(codes + count, 0, (count + 3) / 4 * 4 - count);
}

HWY_INLINE float scale_of(const std::byte* coded, std::size_t block) {
  float scale = 0;
  std::memcpy(&scale, coded + block * sizeof scale, sizeof scale);
  return scale;
}

template <class Format, class Code, bool kStreams>
void decode_row_to(std::byte* to, const std::byte* coded, std::size_t count) {
  using Lanes = LanesOf<Format>;
  const typename Lanes::D d;
  const typename Code::D code;
  constexpr std::size_t kSize = sizeof(typename Lanes::Lane);
  const std::byte* codes = coded + coded_scales(count) * sizeof(float);
  for (std::size_t first = 0; first < count; first += kCodedBlock) {
    const std::size_t size = count - first < kCodedBlock ? count - first : kCodedBlock;
    const FloatVec scale = hn::Set(FloatTag(), scale_of(coded, first / kCodedBlock));
    const auto decode = [&](hn::Vec<typename Code::D> some) {
      return Lanes::template encode<SumOp>(hn::Mul(Code::decode(some), scale));
    };
    for_vectors(
        code, size,
        [&](std::size_t i) {
          const auto value = decode(load(code, codes + first + i));
          std::byte* target = to + (first + i) * kSize;
          if constexpr (kStreams) {
            store_streaming(d, value, target);
          } else {
            store(d, value, target);
          }
        },
        [&](std::size_t i, std::size_t lanes) {
          store_first(d, decode(load_first(code, codes + first + i, lanes)),
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

// Rounds a block as encoding and decoding would.
template <class Format, class Code, class Size>
HWY_INLINE void round_block(std::byte* to, const ScaledBlock& block, Size size) {
  const typename Format::D d;
  constexpr std::size_t kSize = sizeof(typename Format::Lane);
  const auto write = [&](std::size_t i, typename Format::Acc values) {
    const auto round = [&](FloatVec value) {
      const FloatVec scaled = hn::Mul(value, hn::Set(FloatTag(), block.factor));
      return hn::Mul(Code::with_sign(Code::round(scaled), scaled), hn::Set(FloatTag(), block.back));
    };
    store(d, Format::template encode<SumOp>(each_of(round, values)), to + i * kSize);
  };
  for_vectors(
      d, size, [&](std::size_t i) { write(i, widen<Format>(block.from + i * kSize)); },
      [&](std::size_t i, std::size_t lanes) {
        write(i, widen_first<Format>(block.from + i * kSize, lanes));
      });
}

template <class Format, class Code>
void round_row(void* const* targets, int target_count, const void* row, std::size_t count,
               Store how) {
  constexpr std::size_t kSize = sizeof(typename Format::Lane);
  const hn::ScalableTag<std::uint8_t> bytes;
  alignas(64) std::byte rounded[kCodedBlock * kSize];
  for_blocks<Format, Code>(row, count, [&](const ScaledBlock& block, std::size_t first, auto size) {
    round_block<Format, Code>(rounded, block, size);
    for (int target = 0; target < target_count; ++target) {
      std::byte* to = static_cast<std::byte*>(targets[target]) + first * kSize;
      if (how == Store::cached || size != kCodedBlock ||
          reinterpret_cast<std::uintptr_t>(to) % 64 != 0) {
        std::memcpy(to, rounded, size * kSize);
        continue;
      }
      for (std::size_t i = 0; i < sizeof rounded; i += hn::Lanes(bytes)) {
        store_streaming(bytes, load(bytes, rounded + i), to + i);
      }
    }
  });
}

// Loads accumulators from consecutive memory.
template <class Acc>
HWY_INLINE Acc load_sums(const float* sums) {
  const FloatTag df;
  if constexpr (requires { Acc::even; }) {
    return {hn::Load(df, sums), hn::Load(df, sums + hn::Lanes(df))};
  } else {
    return hn::Load(df, sums);
  }
}
template <class Acc>
HWY_INLINE void store_sums(Acc acc, float* sums) {
  const FloatTag df;
  if constexpr (requires { acc.even; }) {
    hn::Store(acc.even, df, sums);
    hn::Store(acc.odd, df, sums + hn::Lanes(df));
  } else {
    hn::Store(acc, df, sums);
  }
}

// Returns the initial sums: the addend, or zero. Sums never start with -0, so that the sign of an
// added zero does not matter. `lanes` is 0 for a whole vector.
template <class Format>
HWY_INLINE typename Format::Acc first_sums(const std::byte* addend, std::size_t lanes) {
  const auto begin = [](FloatVec value) { return hn::Add(value, hn::Zero(FloatTag())); };
  if (addend == nullptr) {
    return Format::broadcast(0.0);
  }
  return each_of(begin, lanes == 0 ? widen<Format>(addend) : widen_first<Format>(addend, lanes));
}

// Writes sums. Every NaN gets the same bits, however it arose.
template <class Format>
HWY_INLINE void write_sums(typename Format::Acc sums, std::byte* to, std::size_t lanes) {
  const typename Format::D d;
  const FloatVec nan = hn::BitCast(FloatTag(), hn::Set(BitsTag(), 0x7fc00000U));
  const auto encoded = Format::template encode<SumOp>(
      each_of([&](FloatVec sum) { return hn::IfThenElse(hn::Eq(sum, sum), sum, nan); }, sums));
  if (lanes == 0) {
    store(d, encoded, to);
  } else {
    store_first(d, encoded, to, lanes);
  }
}

// Adds element i of each block, in block order, to begin(i, lanes), and passes the sums to
// end(sums, i, lanes). values(block, i, lanes) returns the unscaled elements. `lanes` is 0 for a
// whole vector.
template <class Format, class Size, class Values, class Begin, class End>
HWY_INLINE void add_blocks(const ScaledBlock* blocks, int count, Size size, const Values& values,
                           const Begin& begin, const End& end) {
  using Acc = typename Format::Acc;
  const std::size_t lanes = hn::Lanes(typename Format::D());
  const auto add = [&](Acc acc, const ScaledBlock& block, std::size_t i, std::size_t part) {
    const FloatVec back = hn::Set(FloatTag(), block.back);
    return each_of([&](FloatVec sum, FloatVec value) { return hn::Add(sum, hn::Mul(value, back)); },
                   acc, values(block, i, part));
  };
  std::size_t i = 0;
  // Processes several vectors at once, so that their chains of additions overlap.
  for (; size - i >= 4 * lanes; i += 4 * lanes) {
    Acc a = begin(i, 0);
    Acc b = begin(i + lanes, 0);
    Acc c = begin(i + 2 * lanes, 0);
    Acc e = begin(i + 3 * lanes, 0);
    for (const ScaledBlock* block = blocks; block != blocks + count; ++block) {
      a = add(a, *block, i, 0);
      b = add(b, *block, i + lanes, 0);
      c = add(c, *block, i + 2 * lanes, 0);
      e = add(e, *block, i + 3 * lanes, 0);
    }
    end(a, i, 0);
    end(b, i + lanes, 0);
    end(c, i + 2 * lanes, 0);
    end(e, i + 3 * lanes, 0);
  }
  for (; i < size; i += lanes) {
    const std::size_t part = size - i < lanes ? size - i : 0;
    Acc acc = begin(i, part);
    for (const ScaledBlock* block = blocks; block != blocks + count; ++block) {
      acc = add(acc, *block, i, part);
    }
    end(acc, i, part);
  }
}

// Sums rows block by block. find(blocks, row, some, first, size) fills in the positions and scales
// of the blocks of `some` rows, which also brings the blocks into the cache.
template <class Format, class Find, class Values>
struct BlockSums {
  void* target;
  const void* addend;
  const float* factors;
  int row_count;
  const Find& find;
  const Values& values;

  template <class Size>
  HWY_INLINE void sum(std::size_t first, Size size) const {
    constexpr int kMostRows = 16;  // summed at once
    constexpr std::size_t kSize = sizeof(typename Format::Lane);
    alignas(64) float sums[kCodedBlock];  // partial sums, if there are more rows
    ScaledBlock blocks[kMostRows];
    const auto* from = static_cast<const std::byte*>(addend);
    auto* to = static_cast<std::byte*>(target) + first * kSize;
    int row = 0;
    do {
      const int some = row_count - row < kMostRows ? row_count - row : kMostRows;
      find(blocks, row, some, first, size);
      for (int i = 0; i < some; ++i) {
        blocks[i].back *= factors == nullptr ? 1.0F : factors[row + i];
      }
      const bool is_first = row == 0;
      const bool is_last = row + some == row_count;
      add_blocks<Format>(
          blocks, some, size, values,
          [&](std::size_t i, std::size_t lanes) {
            return is_first ? first_sums<Format>(
                                  from == nullptr ? nullptr : from + (first + i) * kSize, lanes)
                            : load_sums<typename Format::Acc>(sums + i);
          },
          [&](typename Format::Acc acc, std::size_t i, std::size_t lanes) {
            if (is_last) {
              write_sums<Format>(acc, to + i * kSize, lanes);
            } else {
              store_sums(acc, sums + i);
            }
          });
      row += some;
    } while (row < row_count);
  }
  HWY_INLINE void sum_all(std::size_t count) const {
    std::size_t first = 0;
    for (; count - first >= kCodedBlock; first += kCodedBlock) {
      sum(first, WholeBlock());
    }
    if (first != count) {
      sum(first, count - first);
    }
  }
};

template <class Format, class Find, class Values>
HWY_INLINE BlockSums<Format, Find, Values> block_sums(void* target, const void* addend,
                                                      const float* factors, int row_count,
                                                      const Find& find, const Values& values) {
  return {target, addend, factors, row_count, find, values};
}

template <class Format, class Code>
void sum_coded_rows(void* target, const void* addend, const void* const* rows, const float* factors,
                    int row_count, std::size_t count) {
  const typename Code::D code;
  const std::size_t codes_at = coded_scales(count) * sizeof(float);
  const auto find = [&](ScaledBlock* blocks, int row, int some, std::size_t first, auto) {
    for (int i = 0; i < some; ++i) {
      const auto* coded = static_cast<const std::byte*>(rows[row + i]);
      blocks[i] = {coded + codes_at + first, 1.0F, scale_of(coded, first / kCodedBlock)};
    }
  };
  const auto values = [code](const ScaledBlock& block, std::size_t i, std::size_t lanes) {
    const std::byte* from = block.from + i;
    return Code::decode(lanes == 0 ? load(code, from) : load_first(code, from, lanes));
  };
  block_sums<LanesOf<Format>>(target, addend, factors, row_count, find, values).sum_all(count);
}

template <class Format, class Code>
void sum_rounded_rows(void* target, const void* addend, const void* const* rows,
                      const float* factors, int row_count, std::size_t count,
                      const void* const* next_rows, int next_count) {
  constexpr std::size_t kSize = sizeof(typename Format::Lane);
  const auto find = [&](ScaledBlock* blocks, int row, int some, std::size_t first, auto size) {
    for (int i = 0; i < some; ++i) {
      blocks[i].from = static_cast<const std::byte*>(rows[row + i]) + first * kSize;
    }
    for (int i = row; i < row + some && i < next_count; ++i) {
      const auto* next = static_cast<const std::byte*>(next_rows[i]) + first * kSize;
      for (std::size_t line = 0; line < size * kSize; line += 64) {
        __builtin_prefetch(next + line, 0, 2);  // to the second-level cache
      }
    }
    for (int i = 0; i < some; i += 4) {
      scale_four<Format, Code>(blocks + i, some - i < 4 ? some - i : 4, size);
    }
  };
  const auto values = [](const ScaledBlock& block, std::size_t i, std::size_t lanes) {
    const std::byte* from = block.from + i * kSize;
    const FloatVec factor = hn::Set(FloatTag(), block.factor);
    return each_of([&](FloatVec value) { return Code::round(hn::Mul(value, factor)); },
                   lanes == 0 ? widen<Format>(from) : widen_first<Format>(from, lanes));
  };
  block_sums<Format>(target, addend, factors, row_count, find, values).sum_all(count);
}

template <class Format, class Code>
CodedRowFunctions functions_of() {
  return {.encode = encode_row<Format, Code>,
          .decode = decode_row<Format, Code>,
          .weighted_sum = sum_coded_rows<Format, Code>,
          .round = round_row<Format, Code>,
          .rounded_sum = sum_rounded_rows<Format, Code>};
}

template <class Code>
CodedRowFunctions find_rows_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return functions_of<Bf16, Code>();
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

UNISONO_PRIVATE CodedRowFunctions find_coded_rows(Dtype dtype, Dtype code) {
  return HWY_DYNAMIC_DISPATCH(find_coded_rows_here)(dtype, code);
}

}  // namespace unisono::kernels
#endif
