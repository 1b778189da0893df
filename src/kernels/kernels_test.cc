// Tests every reduction on every SIMD target that this CPU can run.
#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/reference.h"
#include "kernels/test_support.h"
#include "unisono/types.hpp"

namespace unisono::kernels {
namespace {

// Source data with the expected result, for one pair of dtype and op.
struct Case {
  Dtype dtype;
  ReduceOp op;
  std::vector<std::vector<std::byte>> sources;
  std::vector<std::uint64_t> expected;
};

Case make_case(Dtype dtype, ReduceOp op, std::size_t count, std::size_t source_count) {
  Case result{dtype, op, {}, {}};
  std::mt19937_64 random(count * 131 + source_count);
  const std::size_t size = size_of(dtype);
  for (std::size_t s = 0; s < source_count; ++s) {
    auto& source = result.sources.emplace_back(count * size);
    for (std::size_t i = 0; i < count; ++i) {
      put(source.data(), size, i, hard_value(dtype, random()));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::uint64_t> operands;
    for (const auto& source : result.sources) {
      operands.push_back(get(source.data(), size, i));
    }
    result.expected.push_back(reference(dtype, op, operands).value());
  }
  return result;
}

struct Layout {
  int target_count = 1;
  Store store = Store::cached;
  std::size_t misalignment = 0;
  bool in_place = false;  // targets[0] is the last source
};

::testing::AssertionResult runs_right(const Case& test, Layout layout) {
  const std::size_t count = test.expected.size();
  const std::size_t size = size_of(test.dtype);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<const void*> sources;
  for (const auto& source : test.sources) {
    auto& buffer = buffers.emplace_back(
        std::make_unique<Buffer>(count * size, layout.misalignment * (buffers.size() + 1) % 64));
    if (count != 0) {
      std::memcpy(buffer->data(), source.data(), count * size);
    }
    sources.push_back(buffer->data());
  }
  std::vector<void*> targets;
  for (int t = 0; t < layout.target_count; ++t) {
    if (layout.in_place && t == 0) {
      targets.push_back(buffers.back()->data());
      continue;
    }
    // The second target has the first target's alignment, the third does not.
    const std::size_t misalignment = layout.misalignment + (t == 2 ? size : 0);
    targets.push_back(
        buffers.emplace_back(std::make_unique<Buffer>(count * size, misalignment))->data());
  }
  const ReduceFunction reduce = find_reduce(test.dtype, test.op);
  if (reduce == nullptr) {
    return ::testing::AssertionFailure() << "not supported";
  }
  reduce(targets.data(), layout.target_count, sources.data(), static_cast<int>(sources.size()),
         count, layout.store);
  fence_streaming();
  for (const auto& buffer : buffers) {
    if (!buffer->guards_intact()) {
      return ::testing::AssertionFailure() << "wrote outside of a buffer";
    }
  }
  for (std::size_t t = 0; t < targets.size(); ++t) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t got = get(static_cast<std::byte*>(targets[t]), size, i);
      const std::uint64_t want = test.expected[i];
      if (got != want && !(is_nan(test.dtype, got) && is_nan(test.dtype, want))) {
        return ::testing::AssertionFailure() << "target " << t << " element " << i << ": got "
                                             << std::hex << got << ", want " << want;
      }
    }
  }
  for (std::size_t s = 0; s + (layout.in_place ? 1 : 0) < sources.size(); ++s) {
    if (count != 0 && std::memcmp(sources[s], test.sources[s].data(), count * size) != 0) {
      return ::testing::AssertionFailure() << "changed source " << s;
    }
  }
  return ::testing::AssertionSuccess();
}

std::vector<Layout> layouts(std::size_t size) {
  std::vector<Layout> result;
  for (const Store store : {Store::cached, Store::streaming}) {
    for (const int target_count : {1, 2, 3}) {
      for (const std::size_t misalignment : {std::size_t{0}, size, std::size_t{3}}) {
        result.push_back({target_count, store, misalignment, false});
      }
    }
    result.push_back({1, store, 0, true});
    result.push_back({2, store, 1, true});
  }
  return result;
}

class ReduceTest : public ::testing::TestWithParam<std::tuple<Dtype, ReduceOp>> {
 protected:
  void TearDown() override { use_target(0); }
};

TEST_P(ReduceTest, EqualsTheReference) {
  const auto [dtype, op] = GetParam();
  if (!reference(dtype, op, {0, 0})) {
    EXPECT_EQ(find_reduce(dtype, op), nullptr);
    return;
  }
  const auto targets = all_targets();
  const std::vector<std::size_t> counts = {0,  1,  2,  3,  7,  8,   15,   16,  17,
                                           31, 33, 63, 64, 65, 127, 1000, 4097};
  for (const std::size_t count : counts) {
    for (const std::size_t source_count : {1U, 2U, 3U, 4U, 5U, 17U, 64U}) {
      if (count > 127 && source_count != 2 && source_count != 4 && source_count != 5) {
        continue;
      }
      const Case test = make_case(dtype, op, count, source_count);
      for (const std::int64_t target : targets) {
        use_target(target);
        for (const Layout& layout : layouts(size_of(dtype))) {
          ASSERT_TRUE(runs_right(test, layout))
              << hwy::TargetName(target) << " count " << count << " sources " << source_count
              << " targets " << layout.target_count << " misalignment " << layout.misalignment
              << (layout.in_place ? " in place" : "")
              << (layout.store == Store::streaming ? " streaming" : "");
        }
      }
    }
  }
}

std::vector<std::tuple<Dtype, ReduceOp>> all_pairs() {
  std::vector<std::tuple<Dtype, ReduceOp>> result;
  for (int dtype = 0; dtype < kDtypeCount; ++dtype) {
    for (int op = 0; op < kReduceOpCount; ++op) {
      result.emplace_back(static_cast<Dtype>(dtype), static_cast<ReduceOp>(op));
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, ReduceTest, ::testing::ValuesIn(all_pairs()), [](const auto& param) {
  return std::string(to_string(std::get<0>(param.param))) + "_" +
         std::string(to_string(std::get<1>(param.param)));
});

// Tests all pairs of operands, which only 8-bit formats make feasible.
TEST(ReduceFp8Test, EqualsTheReferenceForAllPairs) {
  for (const Dtype dtype : {Dtype::f8e4m3, Dtype::f8e5m2}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max}) {
      Case test{dtype, op, std::vector<std::vector<std::byte>>(2), {}};
      for (unsigned i = 0; i < 0x10000; ++i) {
        test.sources[0].push_back(static_cast<std::byte>(i >> 8));
        test.sources[1].push_back(static_cast<std::byte>(i & 0xffU));
        test.expected.push_back(reference(dtype, op, {i >> 8, i & 0xffU}).value());
      }
      for (const std::int64_t target : all_targets()) {
        use_target(target);
        EXPECT_TRUE(runs_right(test, {}))
            << hwy::TargetName(target) << " " << to_string(dtype) << " " << to_string(op);
      }
    }
  }
  use_target(0);
}

// Compares with the definition, in which each product is rounded separately.
template <typename T>
void check_scaled_sums(Dtype dtype) {
  std::mt19937_64 random(7);
  const std::size_t count = 4097;
  for (const std::size_t source_count : {2U, 3U, 5U, 64U}) {
    const SourceScale scale{.factor = 0x1p-6, .sources = random() | 1U};
    std::vector<std::vector<T>> sources(source_count, std::vector<T>(count));
    std::vector<const void*> addresses;
    for (auto& source : sources) {
      for (T& value : source) {
        const T near_an_end = random() % 2 == 0 ? std::numeric_limits<T>::max()
                                                : 100 * std::numeric_limits<T>::denorm_min();
        value = near_an_end * static_cast<T>(0.5 + static_cast<double>(random() % 1024) / 2048);
      }
      addresses.push_back(source.data());
    }
    std::vector<T> expected(count);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t s = 0; s < source_count; ++s) {
        const bool scaled = (scale.sources >> s & 1U) != 0;
        const volatile T product = sources[s][i] * static_cast<T>(scaled ? scale.factor : 1);
        expected[i] = s == 0 ? product : expected[i] + product;
      }
    }
    for (const std::int64_t target : all_targets()) {
      use_target(target);
      for (const Store store : {Store::cached, Store::streaming}) {
        for (const int target_count : {1, 2}) {
          std::vector<T> got[2] = {std::vector<T>(count), std::vector<T>(count)};
          void* const targets[2] = {got[0].data(), got[1].data()};
          find_scaled_sum(dtype)(targets, target_count, addresses.data(),
                                 static_cast<int>(source_count), count, store, scale);
          fence_streaming();
          for (int t = 0; t < target_count; ++t) {
            ASSERT_EQ(std::memcmp(got[t].data(), expected.data(), count * sizeof(T)), 0)
                << hwy::TargetName(target) << " sources " << source_count << " target " << t;
          }
        }
      }
    }
  }
  use_target(0);
}

TEST(ScaledSumTest, MultipliesTheMarkedSources) {
  check_scaled_sums<float>(Dtype::f32);
  check_scaled_sums<double>(Dtype::f64);
  EXPECT_EQ(find_scaled_sum(Dtype::f16), nullptr);
}

TEST(ReduceTargetTest, HasAName) {
  for (const std::int64_t target : all_targets()) {
    use_target(target);
    EXPECT_STREQ(target_name(), hwy::TargetName(target));
  }
  use_target(0);
}

}  // namespace
}  // namespace unisono::kernels
