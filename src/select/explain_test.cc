// Tests Communicator::explain(): the candidates, the source of the choice, and the text.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cost/machine_json.h"
#include "network_model/fit_machine.h"
#include "unisono/communicator.hpp"

namespace unisono::comm {
namespace {

using Why = Explanation::Why;

ConnectOptions without_profile() {
  ConnectOptions options;
  options.profile = "none";
  return options;
}

// Returns the explanation on rank 0 of `ranks`.
Explanation explained(const Call& call, int ranks, const ConnectOptions& options) {
  Explanation result;
  run_threads(
      ranks,
      [&](Communicator& comm) {
        if (comm.rank() == 0) {
          result = comm.explain(call);
        }
      },
      options);
  return result;
}

const Explanation::Candidate* candidate(const Explanation& explanation, const std::string& name) {
  for (const Explanation::Candidate& one : explanation.candidates) {
    if (one.algorithm == name) {
      return &one;
    }
  }
  return nullptr;
}

constexpr Call kReduction{
    .collective = Collective::all_reduce, .count = 1 << 20, .dtype = Dtype::f32};

TEST(Explain, ListsWhatEveryAlgorithmWouldSend) {
  const Explanation all = explained(kReduction, 4, without_profile());
  EXPECT_EQ(all.chosen, "flat");
  EXPECT_EQ(all.why, Why::built_in);
  EXPECT_EQ(all.bytes, 4 << 20);
  ASSERT_NE(candidate(all, "ring"), nullptr);
  EXPECT_EQ(candidate(all, "ring")->steps, 6);
  EXPECT_EQ(candidate(all, "ring")->sent_bytes, 6 << 20);  // 2(n-1)/n of 4 MiB
  EXPECT_LT(candidate(all, "ring")->predicted_us, 0);
  EXPECT_FALSE(candidate(all, "ring")->chosen);
  ASSERT_NE(candidate(all, "flat"), nullptr);
  EXPECT_TRUE(candidate(all, "flat")->chosen);
}

TEST(Explain, SaysWhoHasChosen) {
  Call call = kReduction;
  ConnectOptions options = without_profile();
  options.algorithm = "all_reduce=ring";
  EXPECT_EQ(explained(call, 2, options).why, Why::option);
  EXPECT_EQ(explained(call, 2, options).chosen, "ring");
  call.algorithm = "recursive_doubling";
  EXPECT_EQ(explained(call, 2, options).why, Why::call);
  EXPECT_EQ(explained(call, 2, options).chosen, "recursive_doubling");
}

TEST(Explain, SaysWhatCannotServeAndWhy) {
  const std::vector<std::size_t> counts = {1, 2, 3};
  const Explanation all =
      explained({.collective = Collective::all_gather_v, .dtype = Dtype::f32, .counts = counts}, 3,
                without_profile());
  EXPECT_EQ(all.bytes, 24);
  std::string text;
  for (const Explanation::Unable& one : all.unable) {
    text += one.algorithm + " " + one.reason + "\n";
  }
  EXPECT_NE(text.find("neighbour_exchange does not support 3 ranks ("), std::string::npos) << text;
  EXPECT_EQ(candidate(all, "neighbour_exchange"), nullptr);
}

TEST(Explain, RefusesWhatTheCallWouldBeRefusedFor) {
  EXPECT_THROW(
      explained({.collective = Collective::broadcast, .count = 1, .root = 5}, 2, without_profile()),
      Error);
  Call call = kReduction;
  call.algorithm = "rign";
  EXPECT_THROW(explained(call, 2, without_profile()), Error);
}

// avg of narrow integers sends wider sums, so it reaches a size limit earlier.
TEST(Explain, CountsBytesAsTheyAreMoved) {
  Call call{.collective = Collective::all_reduce,
            .count = 16 << 10,
            .dtype = Dtype::i8,
            .reduction = unisono::sum};
  EXPECT_EQ(explained(call, 2, without_profile()).bytes, 16 << 10);
  EXPECT_EQ(explained(call, 2, without_profile()).chosen, "one_shot");
  call.reduction = unisono::avg;
  EXPECT_EQ(explained(call, 2, without_profile()).bytes, 64 << 10);
  EXPECT_EQ(explained(call, 2, without_profile()).chosen, "flat");
  call.count = std::size_t{1} << 53;
  EXPECT_THROW(explained(call, 2, without_profile()), Error);
  call.reduction = unisono::sum;
  EXPECT_NO_THROW(explained(call, 2, without_profile()));
}

// The progress thread uses the same planner.
TEST(Explain, WhileOperationsAreOnTheirWay) {
  run_threads(
      2,
      [](Communicator& comm) {
        std::vector<float> data(1 << 12, 1);
        for (std::size_t i = 0; i < 50; ++i) {
          Request request = comm.all_reduce_async(std::span(data).first(data.size() - i), sum);
          EXPECT_FALSE(comm.explain(kReduction).candidates.empty());
          request.wait();
        }
      },
      without_profile());
}

TEST(Explain, OneRankAndNoBytes) {
  const Explanation all =
      explained({.collective = Collective::gather, .dtype = Dtype::f64}, 1, without_profile());
  EXPECT_EQ(all.chosen, "flat");
  EXPECT_EQ(all.bytes, 0);
  EXPECT_NE(all.text().find("gather  1 rank  0 B\n"), std::string::npos) << all.text();
}

class ExplainProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = (std::filesystem::temp_directory_path() /
             ("unisono-explain-" + std::to_string(::getpid()) + ".json"))
                .string();
    const std::vector<cost::Point> points = {
        {.collective = Collective::barrier, .algorithm = "flat", .ranks = 2, .time_s = 1.5e-6},
        {.collective = Collective::barrier,
         .algorithm = "dissemination",
         .ranks = 2,
         .time_s = 3e-6}};
    std::ofstream(file_) << to_json(
        cost::NamedMachine{.name = "m",
                           .machine = network_model::fit_machine(points),
                           .choices = cost::Choices({{Collective::barrier, 2, 0, "flat"}})});
    options_.profile = file_;
  }
  void TearDown() override { std::filesystem::remove(file_); }

  std::string file_;
  ConnectOptions options_;
};

TEST_F(ExplainProfile, Predicts) {
  const Explanation all = explained({.collective = Collective::barrier}, 2, options_);
  EXPECT_EQ(all.why, Why::profile);
  EXPECT_EQ(all.profile, file_);
  ASSERT_EQ(all.candidates.size(), 2U);
  EXPECT_EQ(all.candidates[0].algorithm, "flat");  // the faster one
  EXPECT_TRUE(all.candidates[0].chosen);
  EXPECT_GT(all.candidates[0].predicted_us, 0.7);
  EXPECT_LT(all.candidates[0].predicted_us, all.candidates[1].predicted_us);
}

TEST_F(ExplainProfile, AsText) {
  Explanation all = explained({.collective = Collective::barrier}, 2, options_);
  all.profile = "FILE";
  all.candidates[0].predicted_us = 1.5;
  all.candidates[1].predicted_us = 1234;
  all.unable.push_back({.algorithm = "other", .reason = "cannot serve 2 ranks (odd ones)"});
  EXPECT_EQ(all.text(),
            "barrier  2 ranks  0 B\n\n"
            "algorithm      steps  sent/rank  predicted\n"
            "flat               1        0 B    1.50 us  <- chosen\n"
            "dissemination      1        0 B    1.23 ms\n"
            "other cannot serve 2 ranks (odd ones)\n\n"
            "why  the profile FILE says so\n");
}

TEST_F(ExplainProfile, SaysThatTheProfileKnowsNothing) {
  const Explanation all = explained(kReduction, 2, options_);
  EXPECT_EQ(all.why, Why::built_in);
  EXPECT_NE(all.text().find("why  the built-in choice, because the profile " + file_ +
                            " has no choice for this call\n"),
            std::string::npos)
      << all.text();
}

}  // namespace
}  // namespace unisono::comm
