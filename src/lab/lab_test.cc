#include "unisono/lab.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace unisono::lab {
namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "";
}

TEST(Lab, PredictsTheFastestFirst) {
  const auto rows = predict(Collective::all_reduce, 16, 64e6, "dgx_h100:nodes=2");
  ASSERT_GT(rows.size(), 2U);
  EXPECT_GT(rows.front().time_us, 0);
  EXPECT_LE(rows.front().time_us, rows.back().time_us);
  EXPECT_NE(refusal([] {
              predict(Collective::all_reduce, 17, 8, "dgx_h100:nodes=2");
            }).find("16 ranks, not 17"),
            std::string::npos);
  EXPECT_EQ(predict(Collective::barrier, 1, 0, "dgx_h100").empty(), false);
}

TEST(Lab, SimulatesAWorkload) {
  const std::string report = simulate(R"({"format": "unisono.workload/1", "ranks": 8,
                   "items": [{"collective": "all_reduce", "algorithm": "ring", "bytes": 1e6}]})",
                                      "dgx_h100");
  EXPECT_NE(report.find("unisono.simulation/1"), std::string::npos);
  EXPECT_NE(refusal([] { simulate("{", "dgx_h100"); }).find("the workload"), std::string::npos);
  EXPECT_NE(refusal([] { simulate("{}", "no_such"); }).find("no_such"), std::string::npos);
}

TEST(Lab, PlansATraining) {
  const auto layouts = plan_training("llama3-8b", "dgx_h100", 64, 4096);
  ASSERT_FALSE(layouts.empty());
  EXPECT_GT(layouts.front().step_s, 0);
  EXPECT_LE(layouts.front().step_s, layouts.back().step_s);
  EXPECT_NE(refusal([] { plan_training("llama9", "dgx_h100", 1, 1); }).find("llama3-8b"),
            std::string::npos);
}

TEST(Lab, ChecksAStep) {
  EXPECT_NE(refusal([] { check_step("{}"); }).find("the step"), std::string::npos);
}

}  // namespace
}  // namespace unisono::lab
