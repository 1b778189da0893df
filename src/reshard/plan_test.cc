// Tests plans with known answers, balanced senders, and mistakes. tests/reshard compares random
// plans with an oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "unisono/error.hpp"
#include "unisono/parallel/reshard.hpp"

namespace unisono::parallel {
namespace {

std::vector<int> hosts_of(int ranks, int per_host) {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) {
    hosts.push_back(rank / per_host);
  }
  return hosts;
}

ReshardTensor tensor(std::vector<std::size_t> shape, std::string_view from, std::string_view to,
                     Dtype dtype = Dtype::f32) {
  return {.name = "w",
          .dtype = dtype,
          .shape = std::move(shape),
          .from = MeshLayout::parse(from),
          .to = MeshLayout::parse(to)};
}

std::string error_of(const ReshardTensor& one, int ranks) {
  try {
    static_cast<void>(plan_reshard({one}, hosts_of(ranks, 1)));
  } catch (const Error& error) {
    const std::string what = error.what();
    return what.substr(0, what.find('\n'));
  }
  return "";
}

// One element per rank goes to both ranks of the other host: once over the network, then between
// the two ranks.
TEST(ReshardPlan, SendsOnceToEachHost) {
  const ReshardPlan plan =
      plan_reshard({tensor({2}, "a=2 on 0-1: a=shard(0)", "b=2 on 2-3")}, hosts_of(4, 2));
  EXPECT_EQ(plan.bytes_between_hosts(), 8U);
  EXPECT_EQ(plan.bytes_sent(), 16U);
  EXPECT_EQ(verify_reshard(plan), std::vector<std::string>());
}

// Parts that a rank already holds are copied, not sent.
TEST(ReshardPlan, TakesOwnMemoryFirst) {
  const ReshardPlan plan =
      plan_reshard({tensor({6}, "a=3: a=shard(0)", "a=3: a=shard(0)")}, hosts_of(3, 1));
  EXPECT_EQ(plan.bytes_sent(), 0U);
  EXPECT_EQ(plan.moves.size(), 3U);
}

// Replicas share the sending, even if one replica alone must send other parts.
TEST(ReshardPlan, BalancesReplicas) {
  const std::vector<std::size_t> shape = {8192, 4096};
  struct Way {
    const char* from;
    const char* to;
    int ranks;
    std::size_t senders;
  };
  for (const Way& way : {Way{"dp=3,tp=2 on 0-5: tp=shard(0)", "tp=4 on 6-9: tp=shard(1)", 10, 6},
                         Way{"dp=2,tp=8 on 0-15: tp=shard(0) dp=shard(0)",
                             "dp=4,tp=4 on 16-31: tp=shard(0)", 32, 16},
                         Way{"dp=7 on 0-6", "tp=5 on 7-11: tp=shard(1)", 12, 7}}) {
    const ReshardPlan plan =
        plan_reshard({tensor(shape, way.from, way.to, Dtype::bf16)}, hosts_of(way.ranks, 1));
    const std::vector<std::size_t> sent = plan.bytes_sent_by_rank();
    EXPECT_LE(static_cast<double>(*std::max_element(sent.begin(), sent.end())),
              1.05 * static_cast<double>(plan.bytes_sent()) / static_cast<double>(way.senders))
        << way.from;
  }
}

// The ranks of a host receive equal parts from other hosts, even if one of the ranks sends more.
TEST(ReshardPlan, EntersAHostThroughAllItsRanks) {
  ReshardTensor busy = tensor({4096, 4096}, "a=1 on 2", "a=1 on 0");
  busy.name = "busy";
  const ReshardPlan plan =
      plan_reshard({busy, tensor({2048, 4096}, "a=1 on 0", "b=2 on 2-3")}, hosts_of(4, 2));
  std::vector<std::size_t> entered(4, 0);
  for (const ReshardMove& move : plan.moves) {
    entered[static_cast<std::size_t>(move.to)] +=
        plan.hosts[static_cast<std::size_t>(move.from)] !=
                plan.hosts[static_cast<std::size_t>(move.to)]
            ? move.bytes
            : 0;
  }
  EXPECT_EQ(entered[2] + entered[3], std::size_t{2048} * 4096 * 4);
  EXPECT_LE(std::max(entered[2], entered[3]), (entered[2] + entered[3]) * 55 / 100);
}

// Each rank has as much to send as any other, so nobody needs to pass elements on.
TEST(ReshardPlan, PassesOnLittleAmongEqualSenders) {
  const ReshardPlan plan =
      plan_reshard({tensor({65536, 8192}, "a=8: a=shard(0)", "b=8")}, hosts_of(8, 1));
  std::size_t passed_on = 0;
  for (const ReshardMove& move : plan.moves) {
    passed_on += move.hop > 0 ? move.bytes : 0;
  }
  EXPECT_LE(passed_on, plan.bytes_sent() / 10);
}

// Each section of a fused projection is sharded separately: every target rank gets a part of each.
TEST(ReshardPlan, CutsSections) {
  const MeshLayout fused = MeshLayout::parse("tp=2: tp=shard(0,sections=4+2*2)");
  EXPECT_EQ(elements_at(fused, std::vector<std::size_t>{8}, 1),
            (ElementRanges{
                {{.first = 2, .count = 2}, {.first = 5, .count = 1}, {.first = 7, .count = 1}}}));
  const MeshLayout uneven = MeshLayout::parse("tp=2: tp=shard(0,parts=7+1)");
  EXPECT_EQ(elements_at(uneven, std::vector<std::size_t>{8}, 1),
            (ElementRanges{{{.first = 7, .count = 1}}}));
}

TEST(ReshardPlan, PlansAnEmptyTensorAndOneElement) {
  EXPECT_TRUE(
      plan_reshard({tensor({4, 0}, "a=2: a=shard(0)", "a=1")}, hosts_of(2, 1)).moves.empty());
  EXPECT_EQ(plan_reshard({tensor({}, "a=1", "b=1 on 1")}, hosts_of(2, 1)).bytes_sent(), 4U);
  EXPECT_EQ(plan_reshard({tensor({3}, "a=1", "b=1")}, hosts_of(1, 1)).bytes_sent(), 0U);
}

// Counts exceed 32 bits.
TEST(ReshardPlan, CountsInSixtyFourBits) {
  const ReshardPlan plan = plan_reshard({tensor({std::size_t{1} << 20U, std::size_t{1} << 20U},
                                                "a=2 on 0-1: a=shard(0)", "b=1 on 2")},
                                        hosts_of(3, 1));
  EXPECT_EQ(plan.bytes_sent(), std::size_t{1} << 42U);
}

TEST(ReshardErrors, NameTheTensorTheDimensionAndTheRank) {
  EXPECT_EQ(
      error_of(tensor({4}, "a=2: a=shard(1)", "a=1"), 2),
      "usage: reshard: tensor \"w\": layout \"a=2: a=shard(1)\": axis a shards dimension 1 of "
      "a tensor with 1 dimensions");
  EXPECT_EQ(error_of(tensor({9}, "a=2: a=shard(0,parts=4+4)", "a=1"), 2),
            "usage: reshard: tensor \"w\": layout \"a=2: a=shard(0,parts=2*4)\": dimension 0 has 9 "
            "elements for axis a on rank 0, and its 2 parts have 8");
  EXPECT_EQ(
      error_of(tensor({9}, "a=2: a=shard(0,sections=4+4)", "a=1"), 2),
      "usage: reshard: tensor \"w\": layout \"a=2: a=shard(0,sections=2*4)\": dimension 0 has "
      "9 elements for axis a on rank 0, and its sections have 8");
  EXPECT_EQ(error_of(tensor({9}, "a=2", "a=2 on 1-2"), 2),
            "usage: reshard: tensor \"w\": layout \"a=2 on 1-2\": rank 2 does not exist among 2 "
            "ranks");
  EXPECT_EQ(error_of(tensor({9}, "a=2 on 1,1", "a=2"), 2),
            "usage: reshard: tensor \"w\": layout \"a=2 on 1,1\": rank 1 is at two positions");
  EXPECT_EQ(error_of(tensor({9}, "a=2: a=shard(0) a=replicate", "a=2"), 2),
            "usage: reshard: tensor \"w\": layout \"a=2: a=shard(0) a=replicate\": axis a has two "
            "placements");
  EXPECT_EQ(error_of(tensor({9}, "a=2", "a=2: a=partial"), 2),
            "usage: reshard: tensor \"w\": the target's axis a is partial(sum)");
  EXPECT_EQ(error_of(tensor({std::size_t{1} << 40U, std::size_t{1} << 40U}, "a=1", "a=1"), 1),
            "usage: reshard: tensor \"w\": more bytes than 63 bits count");
  EXPECT_EQ(error_of(tensor({9}, "a=2: a=partial(avg)", "a=2"), 2),
            "usage: reshard: tensor \"w\": layout \"a=2: a=partial(avg)\": axis a is partial(avg)");
}

// Axes before and after the semicolon are not independent, so some elements have no holder.
TEST(ReshardErrors, NameElementsThatNobodyHas) {
  EXPECT_EQ(error_of(tensor({4}, "a=2;b=2: a=shard(0) b=shard(0)", "a=1"), 2),
            "usage: reshard: tensor \"w\": no source rank has the elements [1-2], which rank 0 "
            "needs");
}

TEST(ReshardErrors, RefuseTextThatIsNoLayout) {
  for (const char* text :
       {"", "a=2:a", "a=2: a=shard", "a=2: a=shard(x)", "a=2: a=shard(0", "a=2: a=cut(0)",
        "a=2 on 0", "a=2 on 1-0", "a=2 on 0,x", "a=2: a=shard(0,parts=)", "a=2: a=shard(0,3)",
        "a=2: a=partial(band)", "a=2: a=shard(0,sections=99999999999*1)"}) {
    EXPECT_THROW(static_cast<void>(MeshLayout::parse(text)), Error) << text;
  }
}

}  // namespace
}  // namespace unisono::parallel
