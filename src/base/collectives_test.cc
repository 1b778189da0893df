#include "base/collectives.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace unisono {
namespace {

TEST(Collectives, HaveARowEachInTheOrderOfTheEnumeration) {
  std::set<std::string_view> names;
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    const CollectiveTraits& traits = traits_of(collective);
    EXPECT_EQ(traits.collective, collective) << traits.name;
    EXPECT_TRUE(names.insert(traits.name).second) << traits.name;
    EXPECT_EQ(to_string(collective), traits.name);
    EXPECT_EQ(parse_collective(traits.name), collective);
  }
}

TEST(Collectives, VFormsHaveTheTraitsOfTheirPlainForms) {
  for (const CollectiveTraits& traits : kCollectives) {
    const CollectiveTraits& plain = traits_of(traits.plain);
    EXPECT_FALSE(is_v_form(traits.plain)) << traits.name;
    EXPECT_EQ(is_v_form(traits.collective), traits.name.ends_with("_v")) << traits.name;
    EXPECT_EQ(traits.input, plain.input) << traits.name;
    EXPECT_EQ(traits.output, plain.output) << traits.name;
    EXPECT_EQ(traits.reduces, plain.reduces) << traits.name;
  }
}

// Returns the names of the collectives for which `is` returns true.
std::string those(bool (*is)(Collective)) {
  std::string names;
  for (const CollectiveTraits& traits : kCollectives) {
    if (traits.plain == traits.collective && is(traits.collective)) {
      names += (names.empty() ? "" : " ") + std::string(traits.name);
    }
  }
  return names;
}

TEST(Collectives, TraitsFollowFromTheRows) {
  EXPECT_EQ(those(is_rooted), "broadcast scatter gather reduce");
  EXPECT_EQ(those(reduces), "reduce all_reduce reduce_scatter scan exclusive_scan");
  EXPECT_EQ(those(is_scan), "scan exclusive_scan");
  EXPECT_EQ(those(goes_both_ways), "all_reduce barrier");
  EXPECT_EQ(those([](Collective c) { return !moves_data(c); }), "barrier");
  EXPECT_EQ(those([](Collective c) { return cut_of(c) == VectorCut::parts; }),
            "scatter gather all_gather reduce_scatter");
  EXPECT_EQ(those([](Collective c) { return cut_of(c) == VectorCut::pairs; }), "all_to_all");
  EXPECT_EQ(those([](Collective c) { return bus_factor(c, 4) == 1; }),
            "broadcast reduce barrier scan exclusive_scan");
  EXPECT_EQ(those([](Collective c) { return bus_factor(c, 4) == 1.5; }), "all_reduce");
}

}  // namespace
}  // namespace unisono
