#include "transport/networks.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace unisono::transport {
namespace {

TEST(Networks, AreTcpFirstAndOthersThatCanBeAskedAfter) {
  std::set<std::string_view> names;
  for (const NetworkTraits& network : networks()) {
    EXPECT_TRUE(names.insert(network.name).second) << network.name;
    EXPECT_FALSE(network.title.empty()) << network.name;
    const bool is_tcp = names.size() == 1;
    EXPECT_EQ(network.name == "tcp", is_tcp);
    EXPECT_EQ(network.create == nullptr, is_tcp);
    if (!is_tcp) {
      EXPECT_FALSE(network.install.empty()) << network.name;
      EXPECT_EQ(network.why_not().empty(), !network.version().empty()) << network.name;
      EXPECT_NE(network.devices, nullptr) << network.name;
    }
  }
}

}  // namespace
}  // namespace unisono::transport
