// Compares sums over ranks of floats narrower than f32 with sums in f64.
#include "parallel/floats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/testing.h"
#include "unisono/parallel/overlap.hpp"
#include "unisono/parallel/tensor_parallel.hpp"

namespace unisono::parallel {
namespace {

template <typename T>
struct Format;
template <>
struct Format<bf16> {
  static constexpr int kMantissa = 7;
  static constexpr int kLeastExponent = -126;
};
template <>
struct Format<f16> {
  static constexpr int kMantissa = 10;
  static constexpr int kLeastExponent = -14;
};
template <>
struct Format<f8e4m3> {
  static constexpr int kMantissa = 3;
  static constexpr int kLeastExponent = -6;
};
template <>
struct Format<f8e5m2> {
  static constexpr int kMantissa = 2;
  static constexpr int kLeastExponent = -14;
};

// Returns half of the distance between neighbouring values of the type at `value`.
template <typename T>
double half_ulp(double value) {
  const int exponent = value == 0 ? Format<T>::kLeastExponent
                                  : std::max(Format<T>::kLeastExponent, std::ilogb(value));
  return std::ldexp(0.5, exponent - Format<T>::kMantissa);
}

template <typename T>
std::vector<T> numbers(std::size_t count, int rank) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::normal_distribution<float> normal;
  std::vector<float> wide(count);
  for (float& value : wide) {
    value = normal(random);
  }
  std::vector<T> values(count);
  convert(wide, values);
  return values;
}

// Returns the sum over ranks of numbers<T>(), and the greatest possible distance of the f32 sum,
// rounded once, from it. An f32 addition errs by at most 2^-24 of its result, which the magnitudes
// bound; the rounding errs by at most half the distance between neighbours.
template <typename T>
struct Exact {
  Exact(std::size_t count, int ranks, double divisor = 1) : sum(count), bound(count) {
    std::vector<double> magnitude(count);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<T> values = numbers<T>(count, rank);
      for (std::size_t i = 0; i < count; ++i) {
        const double value = to_float(values[i]);
        sum[i] += value / divisor;
        magnitude[i] += std::abs(value) / divisor;
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      const double wide = ranks * std::ldexp(magnitude[i], -24);
      bound[i] = wide + half_ulp<T>(std::abs(sum[i]) + wide);
    }
  }
  void expect(std::span<const T> is, std::size_t first, const char* what) const {
    for (std::size_t i = 0; i < is.size(); ++i) {
      ASSERT_NEAR(to_float(is[i]), sum[first + i], bound[first + i]) << what << " " << first + i;
    }
  }
  std::vector<double> sum;
  std::vector<double> bound;
};

template <typename T>
class NarrowSums : public ::testing::Test {};
using Narrow = ::testing::Types<bf16, f16, f8e4m3, f8e5m2>;
TYPED_TEST_SUITE(NarrowSums, Narrow);

TYPED_TEST(NarrowSums, RegionsRoundOnce) {
  using T = TypeParam;
  for (const int ranks : {1, 2, 3, 4, 5}) {
    for (const std::size_t rows :
         {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{300}}) {
      run_threads(ranks, [&](Communicator& comm) {
        const Exact<T> exact(rows * 5, ranks);
        const std::vector<T> mine = numbers<T>(rows * 5, comm.rank());
        for (const bool sequence : {false, true}) {
          const RegionShape shape{.rows = rows, .width = 5, .sequence = sequence};
          const Range outside = shape.outside(comm);
          std::vector<T> out(outside.count * 5);
          leave_region(comm, shape, mine, out);
          exact.expect(out, outside.first * 5, "leave_region");
          enter_region_backward(comm, shape, mine, out);
          exact.expect(out, outside.first * 5, "enter_region_backward");
          std::vector<T> inside(rows * 5);
          enter_region(comm, shape, out, inside);
          exact.expect(inside, 0, "enter_region");
        }
      });
    }
  }
}

TYPED_TEST(NarrowSums, OverlappedSumsRoundOnce) {
  using T = TypeParam;
  for (const int ranks : {1, 2, 3, 5}) {
    constexpr std::size_t kRows = 7;
    run_threads(ranks, [&](Communicator& comm) {
      const Exact<T> exact(kRows * 3, ranks);
      const std::vector<T> mine = numbers<T>(kRows * 3, comm.rank());
      const auto write = [&](Range rows, std::span<T> out) {
        std::copy_n(mine.begin() + static_cast<std::ptrdiff_t>(rows.first * 3), out.size(),
                    out.begin());
      };
      const Range here = shard_range(kRows, ranks, comm.rank());
      std::vector<T> shard(here.count * 3);
      then_reduce_scatter(comm, kRows, shard, 3, write);
      exact.expect(shard, here.first * 3, "then_reduce_scatter");
      std::vector<T> whole(kRows * 3);
      then_all_reduce(comm, whole, 3, 2, write);
      exact.expect(whole, 0, "then_all_reduce");
    });
  }
}

// More ranks than one pass of a kernel can sum: elements are sent as f32.
TEST(NarrowSum, RoundsOnceWithManyRanks) {
  constexpr int kRanks = 66;
  run_threads(kRanks, [](Communicator& comm) {
    const Exact<bf16> exact(kRanks * 3, kRanks);
    std::vector<bf16> mine = numbers<bf16>(kRanks * 3, comm.rank());
    const RegionShape shape{.rows = kRanks, .width = 3, .sequence = true};
    std::vector<bf16> out(3);
    leave_region(comm, shape, mine, out);
    exact.expect(out, static_cast<std::size_t>(comm.rank()) * 3, "reduce_scatter");
    leave_region(comm, {.rows = kRanks, .width = 3}, mine, mine);  // in place
    exact.expect(mine, 0, "all_reduce");
  });
}

// Two ranks per host send their elements unchanged; three ranks per host send f32.
TEST(NarrowSum, RoundsOnceBetweenHosts) {
  for (const int ranks_a_host : {1, 2, 3}) {
    const int ranks = 2 * ranks_a_host;
    const std::string job = comm::testing::unique_name("narrow");
    const auto said = comm::testing::as_threads(ranks, [&](int rank) -> std::string {
      ConnectOptions options = comm::testing::options_for(rank, ranks, job);
      options.address = comm::testing::loopback_address(job);
      options.token = comm::testing::kToken;
      options.host = "host-" + std::to_string(rank / ranks_a_host);
      Communicator comm = Communicator::connect(options);
      const Exact<f16> exact(1200, ranks);
      const std::vector<f16> mine = numbers<f16>(1200, rank);
      std::vector<f16> whole(1200);
      leave_region(comm, {.rows = 400, .width = 3}, mine, whole);
      exact.expect(whole, 0, "all_reduce");
      const RegionShape shape{.rows = 400, .width = 3, .sequence = true};
      const Range outside = shape.outside(comm);
      std::vector<f16> part(outside.count * 3);
      leave_region(comm, shape, mine, part);
      exact.expect(part, outside.first * 3, "reduce_scatter");
      std::fill(whole.begin(), whole.end(), f16());
      then_all_reduce(comm, whole, 3, 2, [&](Range rows, std::span<f16> out) {
        std::copy_n(mine.begin() + static_cast<std::ptrdiff_t>(rows.first * 3), out.size(),
                    out.begin());
      });
      exact.expect(whole, 0, "then_all_reduce");
      return std::to_string(comm.hosts());
    });
    EXPECT_EQ(said, std::vector<std::string>(static_cast<std::size_t>(ranks), "2"));
  }
}

TYPED_TEST(NarrowSums, GradientsOfATableRoundOnce) {
  using T = TypeParam;
  constexpr std::size_t kWords = 3;
  constexpr std::size_t kTokens = 40;
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < kTokens; ++i) {
    tokens.push_back(static_cast<std::int32_t>(i * i % kWords));
  }
  for (const int ranks : {1, 2, 3, 4, 5}) {
    run_threads(ranks, [&](Communicator& comm) {
      const Range words = shard_range(kWords, ranks, comm.rank());
      const std::vector<T> gradient = numbers<T>(kTokens * 2, 0);
      std::vector<T> table(words.count * 2);
      vocabulary_embedding_backward(comm, kWords, 2, gradient, tokens, table);
      std::vector<float> masters(table.size());
      vocabulary_embedding_backward(comm, kWords, 2, gradient, tokens, masters);
      std::vector<T> rounded(table.size());
      convert(masters, rounded);
      for (std::size_t i = 0; i < table.size(); ++i) {
        double sum = 0;
        double magnitude = 0;
        for (std::size_t t = 0; t < kTokens; ++t) {
          if (static_cast<std::size_t>(tokens[t]) == words.first + i / 2) {
            sum += to_float(gradient[t * 2 + i % 2]);
            magnitude += std::abs(to_float(gradient[t * 2 + i % 2]));
          }
        }
        ASSERT_NEAR(masters[i], sum, kTokens * std::ldexp(magnitude, -24));
        ASSERT_EQ(table[i].bits, rounded[i].bits);
      }
      // The look-up copies rows exactly.
      const std::vector<T> whole = numbers<T>(kWords * 2, 1);
      std::vector<T> out(kTokens * 2);
      vocabulary_embedding(comm, kWords, 2,
                           std::span(whole).subspan(words.first * 2, words.count * 2), tokens, out);
      leave_region(comm, {.rows = kTokens, .width = 2}, out, out);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(to_float(out[i]),
                  to_float(whole[static_cast<std::size_t>(tokens[i / 2]) * 2 + i % 2]));
      }
    });
  }
}

TYPED_TEST(NarrowSums, LossesAndCandidatesAreThoseOfF32) {
  using T = TypeParam;
  constexpr std::size_t kWords = 11;
  constexpr std::size_t kRows = 5;
  const std::vector<std::int32_t> targets = {0, 10, 4, 4, 7};
  for (const int ranks : {1, 2, 3, 4, 5}) {
    run_threads(ranks, [&](Communicator& comm) {
      const Range words = shard_range(kWords, ranks, comm.rank());
      std::vector<T> logits = numbers<T>(kRows * words.count, comm.rank());
      std::vector<float> wide(logits.size());
      convert(logits, wide);
      const std::span<const T> last = std::span(logits).last(words.count);
      const auto best = top_candidates(comm, kWords, last, 4);
      const auto wide_best =
          top_candidates(comm, kWords, std::span<const float>(wide).last(words.count), 4);
      for (std::size_t i = 0; i < best.size(); ++i) {
        ASSERT_EQ(best[i].token, wide_best[i].token);
        ASSERT_EQ(best[i].logit, wide_best[i].logit);
      }
      std::vector<float> losses(kRows);
      std::vector<float> wide_losses(kRows);
      vocabulary_cross_entropy(comm, kWords, wide, targets, 0.25F, wide_losses);
      vocabulary_cross_entropy(comm, kWords, logits, targets, 0.25F, losses);
      ASSERT_EQ(losses, wide_losses);  // CrossEntropyIsThatOfAllLogits compares wide_losses with
                                       // f64
      std::vector<T> rounded(logits.size());
      convert(wide, rounded);
      ASSERT_EQ(std::memcmp(logits.data(), rounded.data(), logits.size() * sizeof(T)), 0);
      vocabulary_cross_entropy(comm, kWords, std::span<T>(), {}, 1, {});  // without tokens
    });
  }
}

TEST(Convert, RoundsToNearestAndRefusesWhatItCannot) {
  std::vector<float> wide(65536);
  std::vector<f16> halves(wide.size());
  for (std::size_t i = 0; i < halves.size(); ++i) {
    halves[i].bits = static_cast<std::uint16_t>(i);
  }
  convert(halves, wide);
  std::vector<f16> back(wide.size());
  convert(wide, back);
  std::vector<bf16> shorter(wide.size());
  convert(wide, shorter);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (!std::isnan(wide[i])) {
      ASSERT_EQ(back[i].bits, halves[i].bits);
      ASSERT_EQ(shorter[i].bits, to_bf16(wide[i]).bits);
    }
  }
  EXPECT_THROW(convert(halves, shorter), Error);
  EXPECT_THROW(convert(wide, std::span(halves).first(3)), Error);
  std::vector<double> doubles(wide.size());
  EXPECT_THROW(convert(wide, doubles), Error);
  EXPECT_THROW(ConstAnySpan(wide).as<bf16>(), Error);
}

TEST(Types, OneCallHasOneFloatType) {
  run_threads(1, [](Communicator& comm) {
    const std::vector<bf16> in(2);
    std::vector<float> out(2);
    EXPECT_THROW(enter_region(comm, {.rows = 1, .width = 2}, in, out), Error);
    const std::vector<double> doubles(2);
    std::vector<double> more(2);
    EXPECT_THROW(enter_region(comm, {.rows = 1, .width = 2}, doubles, more), Error);
  });
}

}  // namespace
}  // namespace unisono::parallel
