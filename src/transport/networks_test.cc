#include "transport/networks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "unisono/error.hpp"

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

TEST(Networks, AreAskedForByName) {
  EXPECT_EQ(asked_network(), 0);
  for (const NetworkTraits& network : networks()) {
    const std::string name(network.name);
    ::setenv("UNISONO_NETWORK", name.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    EXPECT_EQ(networks()[asked_network()].name, network.name);
  }
  ::setenv("UNISONO_NETWORK", "ucz", 1);  // NOLINT(concurrency-mt-unsafe)
  try {
    asked_network();
    ADD_FAILURE() << "there is no such network";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "config: UNISONO_NETWORK=ucz is neither tcp nor ucx\ncorrect or unset UNISONO_NETWORK");
  }
  ::unsetenv("UNISONO_NETWORK");  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace
}  // namespace unisono::transport
