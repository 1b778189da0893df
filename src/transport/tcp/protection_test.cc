#include "transport/tcp/protection.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "base/env.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

// Returns the error that these variables and this option cause; "" if there is none.
std::string problem_with(const std::map<std::string, std::string>& variables,
                         std::optional<bool> checksum = {}) {
  std::string problem;
  for (const auto& [name, value] : variables) {
    ::setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  try {
    static_cast<void>(protection_of(checksum));
  } catch (const Error& error) {
    problem = error.what();
  }
  for (const auto& [name, value] : variables) {
    ::unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
  }
  return problem;
}

TEST(Protection, HasChecksumsOverTcpAlone) {
  EXPECT_TRUE(protection_of({}).checksum);
  EXPECT_FALSE(protection_of(false).checksum);
  ::setenv("UNISONO_NETWORK", "ucx", 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_FALSE(protection_of({}).checksum);
  ::unsetenv("UNISONO_NETWORK");  // NOLINT(concurrency-mt-unsafe)
}

TEST(Protection, IsNotHeldForWhatUcxCarries) {
  const std::string refusal =
      "=1, but over UCX messages can be neither encrypted nor checked"
      "\nunset it, or use UNISONO_NETWORK=tcp";
  EXPECT_EQ(problem_with({{"UNISONO_NETWORK", "ucx"}, {"UNISONO_TLS", "1"}}),
            "config: UNISONO_TLS" + refusal);
  EXPECT_EQ(problem_with({{"UNISONO_NETWORK", "ucx"}}, true), "config: UNISONO_CHECKSUM" + refusal);
  EXPECT_EQ(problem_with({{"UNISONO_NETWORK", "tcp"}, {"UNISONO_TLS", "1"}}, true), "");
}

}  // namespace
}  // namespace unisono::tcp
