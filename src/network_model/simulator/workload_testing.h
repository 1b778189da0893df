// Workloads of 8 ranks, for tests that write only the items.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "network_model/simulator/workload.h"

namespace unisono::network_model {

inline std::string document(const std::string& items) {
  return R"({"format": "unisono.workload/1", "ranks": 8, "groups": {"low": [0, 1, 2, 3]},
             "items": [)" +
         items + "]}";
}

inline void expect_failure(const std::string& items, const std::string& position,
                           const std::string& message) {
  const auto parsed = parse_workload_json(document(items));
  EXPECT_FALSE(parsed);
  EXPECT_EQ(parsed.position, position);
  EXPECT_EQ(parsed.message, message);
}

}  // namespace unisono::network_model
