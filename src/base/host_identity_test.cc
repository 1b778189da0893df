#include "base/host_identity.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace unisono {
namespace {

// The id is sent as one word, and differs after a reboot.
TEST(HostIdentity, ABootHasOneWordThatStays) {
  const std::string id = boot_id();
  EXPECT_EQ(id, boot_id());
  EXPECT_TRUE(std::none_of(id.begin(), id.end(), [](unsigned char c) { return std::isspace(c); }));
}

TEST(HostIdentity, NamesMachineNamespaceAndUser) {
  struct stat name_space = {};
  ASSERT_EQ(::stat("/proc/self/ns/net", &name_space), 0);
  EXPECT_EQ(host_identity("m"),
            "m/" + std::to_string(name_space.st_ino) + "/" + std::to_string(::geteuid()));
  EXPECT_NE(host_identity("m"), host_identity("n"));
}

TEST(HostIdentity, WhatSetsTwoApartIsSaid) {
  const std::string one = "boot-1/4026531840/1000";
  EXPECT_EQ(difference_of_hosts(one, one), "");
  EXPECT_EQ(difference_of_hosts(one, "boot-2/4026531840/1000"), "boots, boot-1 and boot-2");
  EXPECT_EQ(difference_of_hosts(one, "boot-1/4026532001/1000"),
            "network namespaces, 4026531840 and 4026532001");
  EXPECT_EQ(difference_of_hosts(one, "boot-1/4026531840/0"), "users, 1000 and 0");
  EXPECT_EQ(difference_of_hosts(one + "/a", one + "/b"), "UNISONO_HOST, a and b");
  EXPECT_EQ(difference_of_hosts(one, one + "/b/c"), "UNISONO_HOST, none and b/c");
}

TEST(HostIdentity, IsTheSameInAnotherProcess) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string mine = host_identity(boot_id());
    ::_exit(::write(ends[1], mine.data(), mine.size()) == static_cast<ssize_t>(mine.size()) ? 0
                                                                                            : 1);
  }
  ::close(ends[1]);
  std::array<char, 256> text = {};
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_GT(got, 0);
  EXPECT_EQ(std::string(text.data(), static_cast<std::size_t>(got)), host_identity(boot_id()));
}

}  // namespace
}  // namespace unisono
