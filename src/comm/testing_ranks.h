// Runs ranks as threads, on one host or on the hosts that UNISONO_TEST_WORLD describes.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "bootstrap/testing.h"
#include "unisono/communicator.hpp"

namespace unisono::comm::testing {

inline void run_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  const std::string job = unique_name("ranks");
  const auto said = as_threads(ranks, [&](int rank) {
    Communicator all = Communicator::connect(options_for(rank, ranks, job));
    body(all);
    return std::string();
  });
  for (const std::string& text : said) {
    EXPECT_EQ(text, "");
  }
}

}  // namespace unisono::comm::testing
