#include "select/across_hosts.h"

#include <gtest/gtest.h>

#include <numeric>

#include "algorithms/catalog.h"

namespace unisono::comm {
namespace {

std::vector<int> all(int ranks) {
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

// Returns the choices for `ranks` ranks on hosts with `block` ranks each.
AcrossHosts across(int ranks, int block) {
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks; ++rank) {
    names.push_back(std::to_string(rank / block));
  }
  return {Hosts(0, names), all(ranks)};
}

TEST(AcrossHosts, HasNothingToChooseOnOneHost) {
  EXPECT_FALSE(across(4, 4).several());
  EXPECT_TRUE(across(4, 2).several());
}

TEST(AcrossHosts, GoesBetweenHostsOnceWhereEachHasSeveralRanks) {
  EXPECT_EQ(across(16, 8).choose(Collective::all_reduce, 64e6), "hierarchical:local=8");
  EXPECT_EQ(across(16, 8).choose(Collective::all_gather, 64e6), "hierarchical:local=8");
}

TEST(AcrossHosts, TakesHostsForGroupsOnlyWhereTheirRanksStandSideBySide) {
  AcrossHosts mixed(Hosts(0, {"a", "b", "a", "b", "a", "b", "a", "b"}), all(8));
  AcrossHosts uneven(Hosts(0, {"a", "a", "a", "b", "b", "b", "c", "c"}), all(8));
  for (const double bytes : {8.0, 65536.0, 64e6}) {
    EXPECT_EQ(mixed.choose(Collective::all_reduce, bytes).find("local=4"), std::string::npos);
    EXPECT_EQ(uneven.choose(Collective::all_reduce, bytes).find("local=3"), std::string::npos);
  }
}

TEST(AcrossHosts, ChoosesOtherAlgorithmsForShortAndForLongVectors) {
  AcrossHosts apart = across(16, 1);
  const std::string brief = apart.choose(Collective::all_reduce, 8);
  const std::string large = apart.choose(Collective::all_reduce, 64e6);
  EXPECT_NE(brief, "");
  EXPECT_NE(brief, large);
  EXPECT_NE(brief.rfind("ring", 0), 0U) << "fifteen messages in a row, twice";
}

TEST(AcrossHosts, PostsTheFewPartsOfAnAllToAllAtOnceAndSendsManyByFewerRanks) {
  EXPECT_EQ(across(4, 1).choose(Collective::all_to_all, 64), "pairwise");
  EXPECT_EQ(across(64, 1).choose(Collective::all_to_all, 4096).rfind("bruck", 0), 0U);
}

TEST(AcrossHosts, LetsEachOfTwoRanksReduceAHalfOfAVectorThatIsLongButInTheCache) {
  AcrossHosts apart = across(2, 1);
  EXPECT_EQ(apart.choose(Collective::all_reduce, 65536), "recursive_doubling");
  EXPECT_NE(apart.choose(Collective::all_reduce, 4e6), "recursive_doubling");
  EXPECT_EQ(apart.choose(Collective::all_reduce, 64e6), "recursive_doubling");
}

TEST(AcrossHosts, TakesOnesThatSumInTheOrderOfTheRanksWhereAsked) {
  AcrossHosts hosts = across(8, 4);
  for (const Collective collective :
       {Collective::reduce, Collective::all_reduce, Collective::reduce_scatter}) {
    for (const double bytes : {8.0, 65536.0, 64e6}) {
      const Algorithm* const free = find_algorithm(collective, hosts.choose(collective, bytes));
      const Algorithm* const bound =
          find_algorithm(collective, hosts.choose(collective, bytes, true));
      ASSERT_TRUE(free != nullptr && bound != nullptr);
      EXPECT_TRUE(bound->rank_order) << bound->name;
    }
  }
  EXPECT_NE(hosts.choose(Collective::all_reduce, 64e6),
            hosts.choose(Collective::all_reduce, 64e6, true));
}

TEST(AcrossHosts, AnswersForEveryCollectiveAndUnevenHosts) {
  AcrossHosts uneven(Hosts(0, {"a", "a", "a", "b", "c"}), all(5));
  for (const Collective collective :
       {Collective::broadcast, Collective::scatter, Collective::gather, Collective::reduce,
        Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
        Collective::all_to_all, Collective::barrier}) {
    EXPECT_NE(uneven.choose(collective, 4096), "") << to_string(collective);
  }
}

TEST(AcrossHosts, TakesTheFastestThatTheProofLetsBeEncoded) {
  AcrossHosts hosts = across(8, 2);
  const cost::EncodedCall sum{.collective = Collective::all_reduce};
  const cost::EncodedAlgorithm* large = hosts.choose_encoded(sum, 64e6);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(large->title, "two_shot+i8");
  EXPECT_EQ(hosts.choose_encoded(sum, 60e6), large);
  const cost::EncodedAlgorithm* gather =
      hosts.choose_encoded({.collective = Collective::all_gather}, 64e6);
  ASSERT_NE(gather, nullptr);
  EXPECT_EQ(gather->title, "hierarchical+i8");
}

}  // namespace
}  // namespace unisono::comm
