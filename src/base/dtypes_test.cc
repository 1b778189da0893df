#include "base/dtypes.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <type_traits>

namespace unisono {
namespace {

TEST(Dtypes, HaveNamesOfTheirOwnEverywhere) {
  std::set<std::string_view> names;
  std::set<std::string_view> in_nccl;
  std::set<std::string_view> in_files;
  for (const DtypeTraits& traits : kDtypes) {
    EXPECT_TRUE(names.insert(traits.name).second) << traits.name;
    EXPECT_TRUE(in_nccl.insert(traits.nccl).second) << traits.name;
    EXPECT_TRUE(in_files.insert(traits.safetensors).second) << traits.name;
    EXPECT_EQ(to_string(traits.dtype), traits.name);
    EXPECT_EQ(parse_dtype(traits.name), traits.dtype);
  }
  EXPECT_EQ(parse_dtype("F32"), std::nullopt);
}

TEST(Dtypes, SaysWhatTheCppTypeIs) {
  for (const DtypeTraits& traits : kDtypes) {
    with_dtype(traits.dtype, [&](auto type) {
      using T = TypeOf<type.value>;
      EXPECT_EQ(type.value, traits.dtype);
      EXPECT_EQ(traits.kind == DtypeKind::boolean, (std::is_same_v<T, bool>)) << traits.name;
      EXPECT_EQ(is_float(type.value), !std::is_integral_v<T>) << traits.name;
      if constexpr (std::is_floating_point_v<T>) {
        EXPECT_EQ(traits.mantissa_bits + 1, std::numeric_limits<T>::digits) << traits.name;
      }
    });
    const int bits = 8 * static_cast<int>(size_of(traits.dtype));
    EXPECT_EQ(traits.kind == DtypeKind::floating,
              1 + traits.exponent_bits + traits.mantissa_bits == bits)
        << traits.name;
  }
}

TEST(Dtypes, KnowEveryIntegerOf64Bits) {
  EXPECT_EQ(kDtypeOf<long>, Dtype::i64);
  EXPECT_EQ(kDtypeOf<long long>, Dtype::i64);
  EXPECT_EQ(kDtypeOf<unsigned long>, Dtype::u64);
  EXPECT_EQ(kDtypeOf<unsigned long long>, Dtype::u64);
  EXPECT_EQ(kDtypeOf<long double>, std::nullopt);
}

TEST(Dtypes, SumsHoldThoseOf2To24Ranks) {
  for (const DtypeTraits& traits : kDtypes) {
    with_dtype(traits.dtype, [&](auto type) {
      constexpr Dtype kSum = traits_of(type.value).sum;
      using T = TypeOf<type.value>;
      using Sum = TypeOf<kSum>;
      if constexpr (is_integer(type.value) && sizeof(T) < 8) {
        EXPECT_EQ(std::is_signed_v<T>, std::is_signed_v<Sum>) << traits.name;
        EXPECT_GE(sizeof(Sum), sizeof(T) + 3) << traits.name;
      } else if constexpr (traits_of(type.value).kind == DtypeKind::floating && sizeof(T) < 4) {
        EXPECT_EQ(kSum, Dtype::f32) << traits.name;
      } else {
        EXPECT_EQ(kSum, type.value) << traits.name;
      }
    });
  }
}

}  // namespace
}  // namespace unisono
