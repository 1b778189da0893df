#include "bootstrap/hosts.h"

#include <gtest/gtest.h>

namespace unisono::comm {
namespace {

using Numbers = std::vector<int>;

TEST(Hosts, OfOneHostAreNumberedAsInTheWorld) {
  const Hosts hosts(2, 4);
  EXPECT_TRUE(hosts.single());
  EXPECT_EQ(hosts.here(), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(hosts.local(3), 3);
}

TEST(Hosts, AreNumberedByTheirLowestRanks) {
  const Hosts hosts(3, {"b", "a", "b", "a", "c"});
  EXPECT_EQ(hosts.count(), 3);
  EXPECT_EQ(hosts.host(0), 0);
  EXPECT_EQ(hosts.host(1), 1);
  EXPECT_EQ(hosts.host(4), 2);
  EXPECT_EQ(hosts.here(), (Numbers{1, 3}));
  EXPECT_EQ(hosts.local(3), 1);
  EXPECT_FALSE(hosts.is_here(2));
  EXPECT_EQ(hosts.local_of(Numbers{4, 3, 0, 1}), (Numbers{1, 0}));
}

}  // namespace
}  // namespace unisono::comm
