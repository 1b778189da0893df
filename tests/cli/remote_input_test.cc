#include "run/remote_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

namespace unisono::cli {
namespace {

// A pipe of one page, the size that a user with many pipes gets.
struct SmallPipe {
  UniqueFd reader = {};
  RemoteInput input{reader};
  SmallPipe() { EXPECT_GT(::fcntl(input.fd(), F_SETPIPE_SZ, 4096), 0); }
};

TEST(RemoteInput, WhatAPipeDoesNotTakeGoesLater) {
  SmallPipe pipe;
  std::string all;
  for (int i = 0; i < 20'000; ++i) {
    all += std::to_string(i) + "\n";
  }
  pipe.input.add(all);
  pipe.input.add("end\n");
  EXPECT_TRUE(pipe.input.has_more());
  std::string got;
  std::array<char, 1000> part;
  while (got.size() < all.size() + 4) {
    const ssize_t bytes = ::read(pipe.reader.get(), part.data(), part.size());
    ASSERT_GT(bytes, 0);
    got.append(part.data(), static_cast<std::size_t>(bytes));
    pipe.input.write();
  }
  EXPECT_EQ(got, all + "end\n");
  EXPECT_FALSE(pipe.input.has_more());
}

TEST(RemoteInput, NobodyReadsItAnyMore) {
  SmallPipe pipe;
  pipe.reader.reset();
  pipe.input.add(std::string(100'000, 'x'));
  EXPECT_FALSE(pipe.input.has_more());
}

}  // namespace
}  // namespace unisono::cli
