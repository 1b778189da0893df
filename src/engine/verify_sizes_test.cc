// Exchanges with given counts, and mutants of them.
#include "engine/verify_sizes.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "algorithms/catalog.h"
#include "schedule/verify.h"

namespace unisono::engine {
namespace {

Schedule exchange(const char* name, int ranks, Counts counts) {
  Schedule schedule =
      build_schedule(*find_algorithm(Collective::all_to_all, name), {.ranks = ranks});
  schedule.counts = std::move(counts);
  return schedule;
}

Counts random_counts(int ranks, std::mt19937& random) {
  Counts counts{.element_bytes = static_cast<std::int64_t>(1 + random() % 5)};
  for (int from = 0; from < ranks; ++from) {
    counts.send.emplace_back();
    for (int to = 0; to < ranks; ++to) {
      // A third is empty.
      counts.send.back().push_back(random() % 3 == 0 ? 0 : static_cast<std::int64_t>(random() % 9));
    }
  }
  return counts;
}

// Makes each rank expect exactly the counts that the others send.
void expect_all(Counts& counts) {
  counts.receive.assign(counts.send.size(), std::vector<std::int64_t>(counts.send.size()));
  for (std::size_t from = 0; from < counts.send.size(); ++from) {
    for (std::size_t to = 0; to < counts.send.size(); ++to) {
      counts.receive[to][from] = counts.send[from][to];
    }
  }
}

TEST(VerifySizes, ProvesWhatTheCatalogueAllows) {
  std::mt19937 random(16);
  for (const Algorithm* algorithm : catalog()) {
    if (algorithm->collective != Collective::all_to_all || !algorithm->allows_v) {
      continue;
    }
    for (int ranks = 1; ranks <= 9; ++ranks) {
      Counts counts = random_counts(ranks, random);
      const Schedule implied = exchange(algorithm->name.data(), ranks, counts);
      EXPECT_TRUE(verify(implied).empty());
      EXPECT_TRUE(verify_sizes(implied).empty()) << algorithm->name << " n=" << ranks;
      expect_all(counts);
      EXPECT_TRUE(verify_sizes(exchange(algorithm->name.data(), ranks, counts)).empty());
    }
  }
}

TEST(VerifySizes, FindsEachWrongCountAtOneEnd) {
  std::mt19937 random(17);
  int mutants = 0;
  for (int ranks = 1; ranks <= 6; ++ranks) {
    Counts right = random_counts(ranks, random);
    expect_all(right);
    for (int at = 0; at < ranks; ++at) {
      for (int from = 0; from < ranks; ++from) {
        for (const int more : {1, -1, 1000}) {
          Counts wrong = right;
          std::int64_t& count =
              wrong.receive[static_cast<std::size_t>(at)][static_cast<std::size_t>(from)];
          count += more;
          if (count < 0) {
            continue;
          }
          ++mutants;
          const auto findings = verify_sizes(exchange("pairwise", ranks, wrong));
          ASSERT_EQ(findings.size(), 1U) << "n=" << ranks << " " << from << "->" << at;
          EXPECT_EQ(sentence(findings[0]), "rank " + std::to_string(from) + " sends " +
                                               std::to_string(right.sent(from, at)) + " to rank " +
                                               std::to_string(at) + ", which expects " +
                                               std::to_string(count));
        }
      }
    }
  }
  EXPECT_GT(mutants, 200);
}

TEST(VerifySizes, FindsRowsThatTwoRanksHaveChanged) {
  Counts counts{.send = {{1, 2}, {3, 4}}};
  expect_all(counts);
  std::swap(counts.receive[0], counts.receive[1]);
  EXPECT_EQ(verify_sizes(exchange("flat", 2, counts)).size(), 4U);
}

TEST(VerifySizes, FindsABlockThatIsLeftOut) {
  Schedule schedule = exchange("pairwise", 4, {.send = CountRows(4, {1, 2, 3, 4})});
  schedule.moves.pop_back();
  EXPECT_FALSE(verify(schedule).empty());
}

TEST(VerifySizes, RanksInBetweenDoNotKnowSizes) {
  const auto findings = verify_sizes(exchange("bruck", 4, {.send = CountRows(4, {1, 1, 1, 1})}));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].mistake, Finding::Mistake::size_unknown);
  EXPECT_EQ(sentence(findings[0]),
            "rank 1 takes part in the block 0->3, whose size only these two know");
  // Without data, no data can be lost.
  EXPECT_TRUE(verify_sizes(exchange("bruck", 4, {.send = CountRows(4, {0, 0, 0, 0})})).empty());
}

TEST(VerifySizes, CountsOf64Bits) {
  const std::int64_t large = std::int64_t{1} << 60;
  Counts counts{.send = {{0, large, 1}, {large, 0, 3}, {1, large, 0}}};
  EXPECT_TRUE(check_counts(counts).message.empty());
  EXPECT_TRUE(verify_sizes(exchange("flat", 3, counts)).empty());
  expect_all(counts);
  ++counts.receive[1][0];
  EXPECT_EQ(verify_sizes(exchange("flat", 3, counts)).size(), 1U);
}

TEST(VerifySizes, BlocksOfSeveralChunks) {
  Schedule schedule{.collective = Collective::all_to_all, .ranks = 2, .chunks = 12, .steps = 1};
  schedule.counts = {.element_bytes = 4, .send = {{5, 7}, {2, 0}}};
  for (const int from : {0, 1}) {
    schedule.moves.push_back({.from = from,
                              .to = 1 - from,
                              .chunk = (from * 2 + 1 - from) * 3,
                              .chunks = 3,
                              .source = Buffer::input});
  }
  EXPECT_TRUE(verify(schedule).empty());
  EXPECT_TRUE(verify_sizes(schedule).empty());
  EXPECT_EQ(length_of(schedule, 3), 2);  // 7 elements as 2, 2 and 3
  EXPECT_EQ(length_of(schedule, 5), 3);
  EXPECT_EQ(length_of(schedule, schedule.moves[0]), 7);
}

}  // namespace
}  // namespace unisono::engine
