// Compares simulated arrivals with closed forms of queues.
#include "planner/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "planner/search.h"
#include "unisono/error.hpp"

namespace unisono::planner {
namespace {

// Returns the probability of waiting at most `t` for a server that takes 1 per request, with random
// arrivals at rate `load` (Erlang, "The Theory of Probabilities and Telephone Conversations",
// 1909).
double waits_at_most(double t, double load) {
  double sum = 0;
  double factorial = 1;
  for (int k = 0; k <= static_cast<int>(t); ++k) {
    factorial *= std::max(k, 1);
    const double x = load * (t - k);
    sum += std::pow(-x, k) / factorial * std::exp(x);
  }
  return (1 - load) * sum;
}

TEST(Arrivals, WaitForOneServerAsErlangSays) {
  for (const double load : {0.5, 0.7, 0.85}) {
    const Waits waits = play_arrivals({.prompt_s = 1}, load);
    // Reading the prompt takes 1.
    EXPECT_NEAR(waits_at_most(waits.first_token_s.half - 1, load), 0.5, 0.03) << load;
    EXPECT_NEAR(waits_at_most(waits.first_token_s.nine_of_ten - 1, load), 0.9, 0.015) << load;
    EXPECT_NEAR(waits_at_most(waits.first_token_s.most - 1, load), 0.99, 0.008) << load;
  }
}

TEST(Arrivals, AreUnderWayAsLittleSays) {
  // Each answer takes 100 steps of 0.01, and every request has room at once.
  const RequestServer server{.steps = 100, .tokens = 100, .at_once = 1000, .step_s = {0.01}};
  const Waits waits = play_arrivals(server, 20);
  EXPECT_NEAR(waits.at_once, 20, 0.6);
  EXPECT_NEAR(waits.token_s.half, 0.01, 1e-9);
  EXPECT_NEAR(waits.token_s.most, 0.01, 1e-9);
}

TEST(Arrivals, WaitForAPlaceAndForPromptsOfOthers) {
  RequestServer server{
      .prompt_s = 0.05, .steps = 100, .tokens = 100, .at_once = 8, .step_s = {0.01}};
  // 8 answers of 100 steps of 0.01, and 8 prompts of 0.05.
  EXPECT_DOUBLE_EQ(server.most_per_s(), 8 / 1.4);
  const Waits quiet = play_arrivals(server, 0.1 * server.most_per_s());
  const Waits busy = play_arrivals(server, 0.95 * server.most_per_s());
  EXPECT_NEAR(quiet.first_token_s.half, 0.05, 0.012);  // plus a part of a step
  EXPECT_GT(busy.first_token_s.nine_of_ten, 10 * quiet.first_token_s.nine_of_ten);
  EXPECT_GT(busy.token_s.half, 1.3 * 0.01);
  EXPECT_LE(busy.token_s.most, 0.014 + 1e-9);
  EXPECT_LT(busy.at_once, 8);
  EXPECT_GT(busy.at_once, 7);
}

TEST(Arrivals, TakeStepsBetweenTheMeasuredOnes) {
  const RequestServer server{.at_once = 6, .step_s = {1, 2, 4, 6}};
  EXPECT_EQ(server.step_of(1), 1);
  EXPECT_EQ(server.step_of(3), 3);
  EXPECT_EQ(server.step_of(6), 5);
  EXPECT_EQ(server.step_of(8), 6);
}

TEST(Arrivals, AreTheSameInEachPlay) {
  const RequestServer server{.prompt_s = 1};
  EXPECT_EQ(play_arrivals(server, 0.6).first_token_s.most,
            play_arrivals(server, 0.6).first_token_s.most);
}

TEST(Speculation, GivesTokensAsLeviathanSays) {
  EXPECT_EQ(Speculation{}.tokens_per_step(), 1);
  EXPECT_EQ((Speculation{.drafted = 3, .accepted = 0}).tokens_per_step(), 1);
  EXPECT_EQ((Speculation{.drafted = 3, .accepted = 1}).tokens_per_step(), 4);
  // (1 - 0.8^4) / (1 - 0.8)
  EXPECT_NEAR((Speculation{.drafted = 3, .accepted = 0.8}).tokens_per_step(), 2.952, 1e-12);
}

struct Question {
  ModelShape shape = find_model("llama3-70b").value_or(ModelShape{});
  Cluster cluster = cluster_of(find_device("h100").value_or(DeviceModel{}), 64);
  ServingTask task{.input = 2048, .output = 256, .concurrency = 0};
  ServingLimits limits{.first_token_s = 2, .token_s = 0.05};
};

TEST(Arrivals, AreAnsweredByTheFewestInstancesThatKeepTheLimits) {
  Question asked;
  asked.task.requests_per_s = 12;
  const auto ranking = search_serving(asked.shape, asked.task, asked.limits, asked.cluster);
  ASSERT_FALSE(ranking.best.empty());
  const ServingEstimate& first = ranking.best.front();
  ASSERT_TRUE(first.waits);
  EXPECT_LE(first.waits->first_token_s.nine_of_ten, 2);
  EXPECT_LE(first.waits->token_s.nine_of_ten, 0.05);
  EXPECT_LT(first.layout.devices(), 64);
  EXPECT_DOUBLE_EQ(first.tokens_per_s_device, 12 * 256.0 / first.layout.devices());
  ServingLayout fewer = first.layout;
  ASSERT_GT(fewer.instances, 1);
  fewer.instances -= 1;
  const auto late = rank_layout(asked.shape, fewer, asked.task, asked.limits, asked.cluster);
  EXPECT_TRUE(late.best.empty() || late.best[0].waits->first_token_s.nine_of_ten > 2 ||
              late.best[0].waits->token_s.nine_of_ten > 0.05);
  // A ranking of the requested layout alone gives the same figures.
  const auto again =
      rank_layout(asked.shape, first.layout, asked.task, asked.limits, asked.cluster);
  EXPECT_EQ(again.best.at(0).waits->token_s.most, first.waits->token_s.most);
}

TEST(Arrivals, ThatAreTooManyAreRefusedWithTheMostThatAreAnswered) {
  Question asked;
  asked.task.requests_per_s = 1000;
  const auto ranking = search_serving(asked.shape, asked.task, asked.limits, asked.cluster);
  EXPECT_TRUE(ranking.best.empty());
  ASSERT_TRUE(ranking.nearest);
  EXPECT_FALSE(ranking.nearest->waits);
  EXPECT_GT(ranking.nearest->most_requests_per_s, 12);
  EXPECT_LT(ranking.nearest->most_requests_per_s, 1000);
}

TEST(Arrivals, MayFindPromptsOnDevicesOfTheirOwn) {
  Question asked;
  asked.task.requests_per_s = 12;
  const auto ranking = search_serving(asked.shape, asked.task, asked.limits, asked.cluster,
                                      {.most = 1000, .tries_pools = true});
  const auto pools = std::ranges::find_if(ranking.best, [](const ServingEstimate& estimate) {
    return estimate.prompts.layout.instances > 0;
  });
  ASSERT_NE(pools, ranking.best.end());
  EXPECT_LE(pools->waits->first_token_s.nine_of_ten, 2);
  EXPECT_LE(pools->layout.devices() + pools->prompts.layout.devices(), 64);
  EXPECT_EQ(pools->parts.prompts, 0);
}

TEST(Serving, ReadsLessOfAPromptWhoseBeginningIsCached) {
  Question asked;
  asked.task.concurrency = 1;
  const auto prompt_s = [&](double hits) {
    asked.task.prefix_hits = hits;
    return estimate_prompts(asked.shape, {.tp = 8}, asked.task, asked.cluster).prompt_s;
  };
  const double all = prompt_s(0);
  EXPECT_LT(prompt_s(0.5), 0.55 * all);
  EXPECT_GT(prompt_s(0.5), 0.45 * all);
  // Tokens that are read still attend to the cached ones.
  EXPECT_GT(prompt_s(0.9), 0.1 * all);
  EXPECT_LT(prompt_s(0.9), 0.12 * all);
}

TEST(Serving, SpeculationPaysWhileWeightsAreWhatTakesTime) {
  Question asked;
  const auto token_s = [&](double at_once, Speculation speculation) {
    asked.task.concurrency = at_once;
    asked.task.speculation = speculation;
    return estimate_answers(asked.shape, {.tp = 8}, asked.task, asked.cluster).token_s;
  };
  const Speculation three{.drafted = 3, .accepted = 0.8, .cost = 0.02};
  EXPECT_NEAR(token_s(1, three), token_s(1, {}) * 1.06 / 2.952, 0.02 * token_s(1, {}));
  EXPECT_GT(token_s(1024, three) / token_s(1024, {}), token_s(1, three) / token_s(1, {}));
  EXPECT_GT(token_s(1, {.drafted = 3, .accepted = 0, .cost = 0.02}), token_s(1, {}));
}

TEST(Serving, WaitsForTheBusiestExperts) {
  Question asked;
  asked.shape = find_model("deepseek-v3").value_or(ModelShape{});
  asked.task.concurrency = 64 * 128;
  const auto token = [&](double imbalance) {
    asked.task.imbalance = imbalance;
    return estimate_answers(asked.shape, {.ep = 64, .dp = 64}, asked.task, asked.cluster).parts;
  };
  EXPECT_DOUBLE_EQ(token(1.5).experts, 1.5 * token(1).experts);
  EXPECT_EQ(token(1.5).weights, token(1).weights);
}

TEST(Serving, LayoutsAreReadFromText) {
  const ModelShape dense = find_model("llama3-70b").value_or(ModelShape{});
  const ModelShape experts = find_model("deepseek-v3").value_or(ModelShape{});
  EXPECT_EQ(text_of(parse_serving_layout("tp=4,pp=2", dense, 64)), "tp=4,pp=2,instances=8");
  EXPECT_EQ(text_of(parse_serving_layout("tp=2,dp=8", experts, 64)), "tp=2,ep=16,dp=8,instances=4");
  EXPECT_EQ(parse_serving_layout("tp=1,instances=3", dense, 64).devices(), 3);
  for (const char* const wrong : {"xp=2", "tp=0", "tp=4x", "tp", "tp=128", "tp=2,instances=33"}) {
    EXPECT_THROW(parse_serving_layout(wrong, dense, 64), Error) << wrong;
  }
}

}  // namespace
}  // namespace unisono::planner
