// Tests multiplication and division by one number, and thereby the conversions of narrow floats, on
// every SIMD target that this CPU can run.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/test_support.h"
#include "unisono/types.hpp"

namespace unisono::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Scalar conversions of a type.
struct Narrow {
  Dtype dtype;
  float (*widen)(std::uint64_t bits);
  std::uint64_t (*narrow)(float value);
};
template <typename T, T (*kNarrow)(float)>
constexpr Narrow make_narrow(Dtype dtype) {
  return {dtype,
          [](std::uint64_t bits) { return to_float(T{static_cast<decltype(T::bits)>(bits)}); },
          [](float value) { return std::uint64_t{kNarrow(value).bits}; }};
}
constexpr Narrow kNarrows[] = {
    make_narrow<f16, to_f16>(Dtype::f16), make_narrow<bf16, to_bf16>(Dtype::bf16),
    make_narrow<f8e4m3, to_f8e4m3>(Dtype::f8e4m3), make_narrow<f8e5m2, to_f8e5m2>(Dtype::f8e5m2)};

class ScaleTest : public ::testing::Test {
 protected:
  void TearDown() override { use_target(0); }
};

TEST_F(ScaleTest, KeepsEveryCodeOfTheNarrowFloats) {
  for (const Narrow& narrow : kNarrows) {
    const std::size_t size = size_of(narrow.dtype);
    const std::size_t codes = std::size_t{1} << (8 * size);
    std::vector<std::byte> source(codes * size);
    for (std::size_t i = 0; i < codes; ++i) {
      put(source.data(), size, i, i);
    }
    for (const std::int64_t target : all_targets()) {
      use_target(target);
      for (const ScaleFunction scale : {find_multiply(narrow.dtype), find_divide(narrow.dtype)}) {
        std::vector<std::byte> result(codes * size);
        scale(result.data(), source.data(), codes, 1.0);
        for (std::size_t i = 0; i < codes; ++i) {
          ASSERT_EQ(get(result.data(), size, i), narrow.narrow(narrow.widen(i)))
              << hwy::TargetName(target) << " " << to_string(narrow.dtype) << " code " << i;
        }
      }
    }
  }
}

// Tests rounding alone: multiplying by one changes nothing else.
class Rounding {
 public:
  explicit Rounding(const Narrow& narrow)
      : narrow_(narrow), multiply_(find_multiply(narrow.dtype)), size_(size_of(narrow.dtype)) {
    for (std::size_t i = 0; i < kCount; ++i) {
      put(ones_, size_, i, narrow.narrow(1.0F));
    }
  }

  ::testing::AssertionResult is_right(float value) {
    multiply_(result_, ones_, kCount, static_cast<double>(value));
    const std::uint64_t want = narrow_.narrow(value);
    for (std::size_t i = 0; i < kCount; ++i) {
      if (get(result_, size_, i) != want) {
        return ::testing::AssertionFailure()
               << to_string(narrow_.dtype) << " of " << value << " element " << i << ": got "
               << std::hex << get(result_, size_, i) << ", want " << want;
      }
    }
    return ::testing::AssertionSuccess();
  }

 private:
  static constexpr std::size_t kCount = 35;  // at least one vector of every target, and a tail
  const Narrow& narrow_;
  ScaleFunction multiply_;
  std::size_t size_;
  std::byte ones_[kCount * 2];
  std::byte result_[kCount * 2];
};

// Tests every code, the midpoint between it and the next code, and their neighbours.
TEST_F(ScaleTest, RoundsToNearestEvenAtEveryBoundary) {
  for (const std::int64_t target : all_targets()) {
    use_target(target);
    for (const Narrow& narrow : kNarrows) {
      Rounding rounding(narrow);
      const std::uint64_t codes = std::uint64_t{1} << (8 * size_of(narrow.dtype));
      for (std::uint64_t code = 0; code < codes; ++code) {
        const float value = narrow.widen(code);
        const auto next = static_cast<double>(narrow.widen((code + 1) % codes));
        const auto middle = static_cast<float>((static_cast<double>(value) + next) / 2);
        for (const float near : {value, middle}) {
          if (std::isnan(near)) {
            continue;
          }
          for (const float probe :
               {std::nextafterf(near, -kInfinity), near, std::nextafterf(near, kInfinity)}) {
            ASSERT_TRUE(rounding.is_right(probe)) << hwy::TargetName(target);
          }
        }
      }
    }
  }
}

TEST_F(ScaleTest, RoundsRandomValues) {
  std::mt19937 random(7);
  for (const std::int64_t target : all_targets()) {
    use_target(target);
    for (const Narrow& narrow : kNarrows) {
      Rounding rounding(narrow);
      for (const float value :
           {0.0F, -0.0F, 464.0F, -464.1F, 480.0F, 512.0F, 65519.9F, 65520.0F, 61440.0F, 61439.9F,
            0x1p107F, -0x1p127F, 0x1p-149F, -0x1p-149F, 0x1p-127F, kInfinity, -kInfinity}) {
        ASSERT_TRUE(rounding.is_right(value)) << hwy::TargetName(target);
      }
      for (int i = 0; i < 20000; ++i) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        if (!std::isnan(value)) {
          ASSERT_TRUE(rounding.is_right(value)) << hwy::TargetName(target);
        }
        const float usual =
            std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 40) - 52);
        ASSERT_TRUE(rounding.is_right(usual)) << hwy::TargetName(target);
      }
    }
  }
}

TEST_F(ScaleTest, FloatsOfAnyCountAlignmentAndInPlace) {
  for (const std::int64_t target : all_targets()) {
    use_target(target);
    for (const std::size_t misalignment : {0U, 4U, 3U}) {
      for (std::size_t count = 0; count < 70; ++count) {
        Buffer source(count * 4, misalignment);
        Buffer result(count * 4, misalignment + 1);
        std::vector<float> values;
        for (std::size_t i = 0; i < count; ++i) {
          values.push_back(static_cast<float>(i) * 1.37F - 20);
        }
        if (count != 0) {  // an empty vector has a null pointer, which memcpy does not allow
          std::memcpy(source.data(), values.data(), count * 4);
        }
        find_divide(Dtype::f32)(result.data(), source.data(), count, 3.0);
        find_multiply(Dtype::f32)(source.data(), source.data(), count, 0.1);
        EXPECT_TRUE(source.guards_intact() && result.guards_intact());
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(get(result.data(), 4, i), std::bit_cast<std::uint32_t>(values[i] / 3.0F));
          ASSERT_EQ(get(source.data(), 4, i), std::bit_cast<std::uint32_t>(values[i] * 0.1F));
        }
      }
    }
  }
}

TEST_F(ScaleTest, DoublesAreDivided) {
  const double values[] = {1.0, -7.5, 1e300, 0x1p-1074};
  double result[4] = {};
  for (const std::int64_t target : all_targets()) {
    use_target(target);
    find_divide(Dtype::f64)(result, values, 4, 3.0);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(result[i], values[i] / 3.0);
    }
  }
}

template <typename T>
std::vector<T> scaled(ScaleFunction function, std::vector<T> values, double factor) {
  function(values.data(), values.data(), values.size(), factor);
  return values;
}

TEST(ScaleIntegerTest, DivisionTruncatesTowardsZeroAndIsExact) {
  using V64 = std::vector<std::int64_t>;
  constexpr auto kMax64 = std::numeric_limits<std::int64_t>::max();
  constexpr auto kMin64 = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(scaled<std::int64_t>(find_divide(Dtype::i64), {7, -7, kMax64, kMin64, 0}, 3),
            (V64{2, -2, kMax64 / 3, kMin64 / 3, 0}));
  EXPECT_EQ(scaled<std::int64_t>(find_divide(Dtype::i64), {kMax64, kMin64}, 1),
            (V64{kMax64, kMin64}));
  EXPECT_EQ(scaled<std::int64_t>(find_divide(Dtype::i64), {5, kMin64}, -1), (V64{-5, kMin64}));
  constexpr auto kMaxU64 = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(scaled<std::uint64_t>(find_divide(Dtype::u64), {kMaxU64, kMaxU64 - 1}, 7),
            (std::vector<std::uint64_t>{kMaxU64 / 7, (kMaxU64 - 1) / 7}));
  EXPECT_EQ(scaled<std::int8_t>(find_divide(Dtype::i8), {-128, 127, -1, 5}, 2),
            (std::vector<std::int8_t>{-64, 63, 0, 2}));
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const auto value = static_cast<std::int32_t>(random());
    const auto divisor = static_cast<std::int32_t>(random() >> (1 + random() % 31)) + 1;
    ASSERT_EQ(scaled<std::int32_t>(find_divide(Dtype::i32), {value}, divisor)[0], value / divisor);
    const auto large = static_cast<std::uint32_t>(random());
    ASSERT_EQ(scaled<std::uint32_t>(find_divide(Dtype::u32), {large}, divisor)[0],
              large / static_cast<std::uint32_t>(divisor));
  }
}

TEST(ScaleIntegerTest, MultiplicationWrapsOrTruncatesAFraction) {
  EXPECT_EQ(scaled<std::int8_t>(find_multiply(Dtype::i8), {100, -3}, 2),
            (std::vector<std::int8_t>{-56, -6}));
  EXPECT_EQ(scaled<std::int64_t>(find_multiply(Dtype::i64), {0x7000000000000001, -5}, 3),
            (std::vector<std::int64_t>{0x5000000000000003, -15}));
  EXPECT_EQ(scaled<std::int32_t>(find_multiply(Dtype::i32), {5, -5, 2147483647}, 0.5),
            (std::vector<std::int32_t>{2, -2, 1073741823}));
  EXPECT_EQ(scaled<std::int32_t>(find_multiply(Dtype::i32), {2000000000, -2000000000}, 1.5),
            (std::vector<std::int32_t>{2147483647, -2147483647 - 1}));
  EXPECT_EQ(scaled<std::uint32_t>(find_multiply(Dtype::u32), {7, 4000000000}, 2.5),
            (std::vector<std::uint32_t>{17, 4294967295}));
  EXPECT_EQ(scaled<std::int32_t>(find_multiply(Dtype::i32), {7}, std::nan("")),
            (std::vector<std::int32_t>{0}));
  EXPECT_EQ(scaled<std::int64_t>(find_multiply(Dtype::i64), {1, -1}, 0x1p63),
            (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(),
                                       std::numeric_limits<std::int64_t>::min()}));
}

// Checks averages over ranks that all have the same value, or of which one differs.
template <typename Narrow, typename Wide>
void expect_averages(Dtype dtype) {
  constexpr Narrow kEnds[] = {std::numeric_limits<Narrow>::min(),
                              std::numeric_limits<Narrow>::max(), Narrow{0}, Narrow{1}};
  std::mt19937 random(5);
  for (const int ranks : {1, 2, 3, 7, 1000, 1 << 20}) {
    std::vector<Narrow> values(std::begin(kEnds), std::end(kEnds));
    for (int i = 0; i < 1001; ++i) {
      values.push_back(static_cast<Narrow>(random()));
    }
    // Uses odd addresses.
    std::vector<std::byte> narrow(values.size() * sizeof(Narrow) + 1);
    std::vector<std::byte> wide(values.size() * sizeof(Wide) + 1);
    std::memcpy(narrow.data() + 1, values.data(), values.size() * sizeof(Narrow));
    find_widen(dtype)(wide.data() + 1, narrow.data() + 1, values.size(), 0);
    std::vector<Wide> sums(values.size());
    std::memcpy(sums.data(), wide.data() + 1, sums.size() * sizeof(Wide));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(sums[i], Wide{values[i]});
      const Wide others = i % 2 == 0 ? Wide{values[i]} : Wide{kEnds[i / 2 % 4]};
      sums[i] += static_cast<Wide>(ranks - 1) * others;
    }
    std::memcpy(wide.data() + 1, sums.data(), sums.size() * sizeof(Wide));
    find_average(dtype)(narrow.data() + 1, wide.data() + 1, values.size(), ranks);
    std::memcpy(values.data(), narrow.data() + 1, values.size() * sizeof(Narrow));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(Wide{values[i]}, sums[i] / static_cast<Wide>(ranks)) << sums[i] << " of " << ranks;
    }
  }
}

TEST(ScaleIntegerTest, AveragesOfNarrowIntegersAreThoseOfTheirWholeSums) {
  expect_averages<std::int8_t, std::int32_t>(Dtype::i8);
  expect_averages<std::uint8_t, std::uint32_t>(Dtype::u8);
  expect_averages<std::int32_t, std::int64_t>(Dtype::i32);
  expect_averages<std::uint32_t, std::uint64_t>(Dtype::u32);
  EXPECT_EQ(find_widen(Dtype::i64), nullptr);
  EXPECT_EQ(find_average(Dtype::f32), nullptr);
}

// Checks that the average of equal numbers is that number, for every code of the type.
template <typename T>
void expect_averages_of_equals(Dtype dtype) {
  using Bits = decltype(T::bits);
  constexpr std::size_t kCodes = std::size_t{1} << (8 * sizeof(T));
  std::vector<T> values(kCodes);
  for (std::size_t code = 0; code < kCodes; ++code) {
    values[code] = T{static_cast<Bits>(code)};
  }
  for (const int ranks : {1, 2, 3, 5, 7, 64}) {
    const double scale = 1.0 / static_cast<double>(std::bit_ceil(static_cast<unsigned>(ranks)));
    std::vector<std::byte> narrow(values.size() * sizeof(T) + 1);  // odd addresses
    std::vector<std::byte> wide(values.size() * sizeof(float) + 1);
    std::memcpy(narrow.data() + 1, values.data(), values.size() * sizeof(T));
    find_widen(dtype)(wide.data() + 1, narrow.data() + 1, values.size(), scale);
    std::vector<float> sums(values.size());
    std::memcpy(sums.data(), wide.data() + 1, sums.size() * sizeof(float));
    for (float& sum : sums) {
      const float one = sum;
      for (int rank = 1; rank < ranks; ++rank) {
        sum += one;
      }
    }
    std::memcpy(wide.data() + 1, sums.data(), sums.size() * sizeof(float));
    find_average(dtype)(narrow.data() + 1, wide.data() + 1, values.size(), ranks * scale);
    std::vector<T> averages(values.size());
    std::memcpy(averages.data(), narrow.data() + 1, averages.size() * sizeof(T));
    for (std::size_t code = 0; code < kCodes; ++code) {
      const float value = to_float(values[code]);
      const float average = to_float(averages[code]);
      ASSERT_TRUE(std::isnan(value) ? std::isnan(average) : value == average)
          << to_string(dtype) << " " << value << ": " << average << " of " << ranks;
    }
  }
}

TEST(ScaleFloatTest, TheAverageOfEqualNarrowFloatsIsThatFloat) {
  expect_averages_of_equals<f16>(Dtype::f16);
  expect_averages_of_equals<bf16>(Dtype::bf16);
  expect_averages_of_equals<f8e4m3>(Dtype::f8e4m3);
  expect_averages_of_equals<f8e5m2>(Dtype::f8e5m2);
}

TEST(ScaleIntegerTest, BooleansHaveNoScale) {
  EXPECT_EQ(find_multiply(Dtype::boolean), nullptr);
  EXPECT_EQ(find_divide(Dtype::boolean), nullptr);
}

}  // namespace
}  // namespace unisono::kernels
