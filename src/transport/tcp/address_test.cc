#include "transport/tcp/address.h"

#include <gtest/gtest.h>

namespace unisono::tcp {
namespace {

std::string read(const char* text) {
  const Parsed<Address> address = Address::parse(text);
  return address ? address.value->text() : "refused";
}

TEST(TcpAddress, ReadsBothFamilies) {
  EXPECT_EQ(read("10.0.0.1"), "10.0.0.1:0");
  EXPECT_EQ(read("10.0.0.1:5000"), "10.0.0.1:5000");
  EXPECT_EQ(read("fd00::1"), "[fd00::1]:0");
  EXPECT_EQ(read("[fd00::1]"), "[fd00::1]:0");
  EXPECT_EQ(read("[fd00::1]:65535"), "[fd00::1]:65535");
  EXPECT_EQ(read("[fe80::1%lo]:80"), "[fe80::1%lo]:80");
}

TEST(TcpAddress, RefusesWhatIsNone) {
  for (const char* text : {"", "host", "10.0.0", "10.0.0.1:", "10.0.0.1:65536", "10.0.0.1:x",
                           "[fd00::1", "[fd00::1]5", "[10.0.0.1:5]", "fe80::1%nosuch"}) {
    EXPECT_EQ(read(text), "refused") << text;
  }
}

TEST(TcpAddress, KnowsLoopbackAndNetworks) {
  const auto of = [](const char* text) { return *Address::parse(text).value; };
  EXPECT_TRUE(of("127.1.2.3").is_loopback());
  EXPECT_TRUE(of("::1").is_loopback());
  EXPECT_FALSE(of("10.0.0.1").is_loopback());
  EXPECT_TRUE(of("10.1.2.3").same_network(of("10.1.3.4"), 22));
  EXPECT_FALSE(of("10.1.2.3").same_network(of("10.1.3.4"), 24));
  EXPECT_FALSE(of("10.1.2.3").same_network(of("::1"), 0));
}

TEST(TcpAddress, AsksTheKernelForTheRoute) {
  const auto source = source_towards(*Address::parse("127.0.0.9").value);
  ASSERT_TRUE(source);
  EXPECT_TRUE(source->is_loopback());
  EXPECT_EQ(source->port(), 0);
}

TEST(TcpSelector, ChoosesAndExcludes) {
  const auto takes = [](const char* rules, const char* name, const char* address) {
    const Parsed<Selector> selector = Selector::parse(rules);
    return selector.value->takes({.name = name, .address = *Address::parse(address).value});
  };
  EXPECT_TRUE(takes("", "eth0", "10.0.0.1"));
  EXPECT_TRUE(takes("eth0", "eth0", "10.0.0.1"));
  EXPECT_FALSE(takes("eth0", "eth01", "10.0.0.1"));
  EXPECT_FALSE(takes("^lo", "lo", "127.0.0.1"));
  EXPECT_TRUE(takes("^lo,^docker0", "eth0", "10.0.0.1"));
  EXPECT_TRUE(takes("eth0,10.0.0.0/8", "eth1", "10.2.0.1"));
  EXPECT_FALSE(takes("eth0,10.0.0.0/8", "eth1", "192.168.0.1"));
  EXPECT_FALSE(takes("10.0.0.0/8,^10.1.0.0/16", "eth1", "10.1.0.1"));
  EXPECT_TRUE(takes("fd00::/16", "eth0", "fd00::5"));
}

TEST(TcpSelector, RefusesWordsThatSayNothing) {
  for (const char* text : {",", "^", "eth0,,lo", "10.0.0.0/33", "10.0.0.0/x", "eth0/8"}) {
    EXPECT_FALSE(Selector::parse(text)) << text;
  }
  EXPECT_EQ(Selector::parse("eth0,10.0.0.0/33").position, "10.0.0.0/33");
}

}  // namespace
}  // namespace unisono::tcp
