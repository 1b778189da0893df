// Compares the functions of tensor parallelism with one rank.
#include "unisono/parallel/tensor_parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace unisono::parallel {
namespace {

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

TEST(TensorParallel, CrossEntropyIsThatOfAllLogits) {
  constexpr std::size_t kWords = 11;
  constexpr std::size_t kRows = 5;
  const std::vector<float> logits = random_values(kRows * kWords, 1);
  const std::vector<std::int32_t> targets = {0, 10, 4, 4, 7};
  for (const int ranks : {1, 2, 3, 4, 12}) {
    run_threads(ranks, [&](Communicator& comm) {
      const Range words = shard_range(kWords, comm.size(), comm.rank());
      std::vector<float> mine;
      for (std::size_t i = 0; i < kRows; ++i) {
        for (std::size_t w = 0; w < words.count; ++w) {
          mine.push_back(logits[i * kWords + words.first + w]);
        }
      }
      std::vector<float> losses(kRows);
      vocabulary_cross_entropy(comm, kWords, mine, targets, 0.25F, losses);
      for (std::size_t i = 0; i < kRows; ++i) {
        double sum = 0;
        for (std::size_t w = 0; w < kWords; ++w) {
          sum += std::exp(static_cast<double>(logits[i * kWords + w]));
        }
        const auto target = static_cast<std::size_t>(targets[i]);
        ASSERT_NEAR(losses[i], std::log(sum) - logits[i * kWords + target], 1e-5);
        for (std::size_t w = 0; w < words.count; ++w) {
          const std::size_t word = words.first + w;
          const double softmax = std::exp(static_cast<double>(logits[i * kWords + word])) / sum;
          ASSERT_NEAR(mine[i * words.count + w], 0.25 * (softmax - (word == target ? 1 : 0)), 1e-6);
        }
      }
    });
  }
}

TEST(TensorParallel, CrossEntropyHasTheSameBitsOnAnyNumberOfRanks) {
  constexpr std::size_t kWords = 1000;
  constexpr std::size_t kRows = 3;
  const std::vector<std::int32_t> targets = {0, 999, 4};
  std::vector<float> whole = random_values(kRows * kWords, 5);
  const std::vector<float> logits = whole;
  std::vector<float> wanted(kRows);
  cross_entropy(kWords, whole, targets, 0.25F, wanted);
  for (const int ranks : {1, 2, 3, 4, 7}) {
    run_threads(ranks, [&](Communicator& comm) {
      const Range words = shard_range(kWords, comm.size(), comm.rank());
      std::vector<float> mine;
      std::vector<float> slopes;
      for (std::size_t i = 0; i < kRows; ++i) {
        for (std::size_t w = 0; w < words.count; ++w) {
          mine.push_back(logits[i * kWords + words.first + w]);
          slopes.push_back(whole[i * kWords + words.first + w]);
        }
      }
      std::vector<float> losses(kRows);
      vocabulary_cross_entropy(comm, kWords, mine, targets, 0.25F, losses);
      EXPECT_EQ(losses, wanted);
      EXPECT_EQ(mine, slopes);
    });
  }
  std::vector<float> invalid = {0, std::numeric_limits<float>::quiet_NaN(), 1};
  std::vector<float> loss(1);
  cross_entropy(3, invalid, std::vector<std::int32_t>{0}, 1, loss);
  EXPECT_TRUE(std::isnan(loss.front()));
}

// Runs a row-parallel product whose inner dimension has 12 blocks.
TEST(TensorParallel, BlocksHaveTheSameBitsOnAnyNumberOfRanks) {
  constexpr std::size_t kBlocks = 12;
  constexpr std::size_t kRows = 5;
  constexpr std::size_t kWidth = 7;
  std::vector<float> alone;
  for (const bool backward : {false, true}) {
    for (const int ranks : {1, 2, 3, 4, 5}) {
      for (const bool sequence : {false, true}) {
        run_threads(ranks, [&](Communicator& comm) {
          const std::vector<Leaves> leaves = even_leaves(kBlocks, ranks);
          const RegionShape shape{.rows = kRows, .width = kWidth, .sequence = sequence};
          TreeSum sum = sum_of_blocks(
              kRows * kWidth, kBlocks, leaves[static_cast<std::size_t>(comm.rank())],
              [](std::size_t block, std::span<float> out) {
                const auto values = random_values(out.size(), static_cast<unsigned>(block) + 100);
                std::ranges::copy(values, out.begin());
              });
          const Range outside = shape.outside(comm);
          std::vector<float> out(outside.count * kWidth);
          backward ? enter_region_backward(comm, shape, std::move(sum), leaves, out)
                   : leave_region(comm, shape, std::move(sum), leaves, out);
          if (alone.empty()) {
            alone = out;
          }
          for (std::size_t i = 0; i < out.size(); ++i) {
            ASSERT_EQ(out[i], alone[outside.first * kWidth + i])
                << ranks << " ranks, rank " << comm.rank() << ", element " << i;
          }
        });
      }
    }
  }
}

TEST(TensorParallel, EmbeddingIsALookUpWithItsTranspose) {
  constexpr std::size_t kWords = 7;
  const std::vector<float> table = random_values(kWords * 2, 1);
  const std::vector<std::int32_t> tokens = {6, 0, 6, 3};
  const std::vector<float> gradient = random_values(8, 2);
  run_threads(3, [&](Communicator& comm) {
    const Range words = shard_range(kWords, comm.size(), comm.rank());
    const std::span<const float> mine = std::span(table).subspan(words.first * 2, words.count * 2);
    std::vector<float> part(8);
    vocabulary_embedding(comm, kWords, 2, mine, tokens, part);
    std::vector<float> out(8);
    leave_region(comm, {.rows = 4, .width = 2}, part, out);
    for (std::size_t i = 0; i < 8; ++i) {
      ASSERT_EQ(out[i], table[static_cast<std::size_t>(tokens[i / 2]) * 2 + i % 2]);
    }
    std::vector<float> dtable(words.count * 2);
    vocabulary_embedding_backward(comm, kWords, 2, gradient, tokens, dtable);
    for (std::size_t i = 0; i < dtable.size(); ++i) {
      float expected = 0;
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        if (static_cast<std::size_t>(tokens[t]) == words.first + i / 2) {
          expected += gradient[t * 2 + i % 2];
        }
      }
      ASSERT_EQ(dtable[i], expected);
    }
  });
}

TEST(TensorParallel, RegionsCutTokensWhereAsked) {
  for (const int ranks : {1, 2, 3, 5}) {
    run_threads(ranks, [&](Communicator& comm) {
      for (const bool sequence : {false, true}) {
        const RegionShape shape{.rows = 4, .width = 2, .sequence = sequence};
        const Range mine = shape.outside(comm);
        std::vector<float> outside(mine.count * 2);
        for (std::size_t i = 0; i < outside.size(); ++i) {
          outside[i] = static_cast<float>(mine.first * 2 + i);
        }
        std::vector<float> inside(8);
        enter_region(comm, shape, outside, inside);
        for (std::size_t i = 0; i < 8; ++i) {
          ASSERT_EQ(inside[i], static_cast<float>(i));
        }
        std::vector<float> back(outside.size());
        leave_region(comm, shape, inside, back);
        for (std::size_t i = 0; i < back.size(); ++i) {
          ASSERT_EQ(back[i], outside[i] * static_cast<float>(ranks));
        }
        enter_region_backward(comm, shape, inside, back);
        for (std::size_t i = 0; i < back.size(); ++i) {
          ASSERT_EQ(back[i], outside[i] * static_cast<float>(ranks));
        }
        leave_region_backward(comm, shape, outside, inside);
        ASSERT_EQ(inside[7], 7);
      }
    });
  }
}

TEST(TensorParallel, CandidatesAreTheLikeliestOfAll) {
  const std::vector<float> logits = {1, 5, 5, -2, 9, 0, 3};
  for (const int ranks : {1, 2, 3, 8}) {
    run_threads(ranks, [&](Communicator& comm) {
      const Range words = shard_range(logits.size(), comm.size(), comm.rank());
      const auto best = top_candidates(comm, logits.size(),
                                       std::span(logits).subspan(words.first, words.count), 4);
      ASSERT_EQ(best.size(), 4U);
      EXPECT_EQ(best[0].token, 4);
      EXPECT_EQ(best[1].token, 1);
      EXPECT_EQ(best[2].token, 2);
      EXPECT_EQ(best[3].token, 6);
      EXPECT_EQ(sample(best, 0, 0.9), 4);
      EXPECT_EQ(sample(best, 1.0, 0.0), 4);
      EXPECT_EQ(sample(best, 1.0, 0.999999), 6);
      const auto all = top_candidates(comm, logits.size(),
                                      std::span(logits).subspan(words.first, words.count), 100);
      ASSERT_EQ(all.size(), logits.size());
      EXPECT_EQ(all.back().token, 3);
    });
  }
}

TEST(TensorParallel, SharesHeads) {
  // 8 heads with 2 key-value heads on 4 ranks: each key-value head has copies on two ranks.
  EXPECT_EQ(head_share(8, 2, 4, 1).query, (Range{.first = 2, .count = 2}));
  EXPECT_EQ(head_share(8, 2, 4, 1).key_value, (Range{.first = 0, .count = 1}));
  EXPECT_EQ(head_share(8, 2, 4, 2).key_value, (Range{.first = 1, .count = 1}));
  EXPECT_EQ(head_share(8, 8, 3, 2).query, (Range{.first = 5, .count = 3}));
  EXPECT_THROW(head_share(8, 3, 2, 0), Error);
  EXPECT_THROW(head_share(2, 2, 3, 0), Error);
  EXPECT_THROW(head_share(8, 8, 3, 0, true), Error);
}

// By definition: query head h of the model uses key-value head h * key_value_heads / heads.
TEST(TensorParallel, EveryLocalHeadFindsItsKeys) {
  for (std::size_t key_value_heads = 1; key_value_heads <= 6; ++key_value_heads) {
    for (std::size_t heads = key_value_heads; heads <= 24; heads += key_value_heads) {
      for (int ranks = 1; static_cast<std::size_t>(ranks) <= heads && ranks <= 9; ++ranks) {
        std::size_t next = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const HeadShare share = head_share(heads, key_value_heads, ranks, rank);
          ASSERT_EQ(share.query.first, next);
          next += share.query.count;
          std::vector<bool> used(share.key_value.count);
          for (std::size_t head = 0; head < share.query.count; ++head) {
            const std::size_t local = share.key_value_of(head);
            ASSERT_LT(local, used.size());
            used[local] = true;
            ASSERT_EQ(share.key_value.first + local,
                      (share.query.first + head) * key_value_heads / heads)
                << heads << " heads, " << key_value_heads << " key-value heads, rank " << rank
                << " of " << ranks << ", local head " << head;
          }
          ASSERT_EQ(std::count(used.begin(), used.end(), false), 0);
        }
        ASSERT_EQ(next, heads);
      }
    }
  }
}

}  // namespace
}  // namespace unisono::parallel
