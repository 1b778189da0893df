#include "network_model/fit_on.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "network_model/plan_on.h"
#include "topology/presets.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

Topology preset(const std::string& name) {
  auto parsed = make_preset(name);
  EXPECT_TRUE(parsed) << parsed.message;
  return *parsed.value;
}

// Returns the times that the changed preset predicts, as if they were measured.
std::vector<cost::Point> measured(const Topology& topology, Collective collective,
                                  const std::vector<int>& counts,
                                  const std::string& algorithm = "") {
  std::vector<cost::Point> points;
  for (const int ranks : counts) {
    for (const double bytes : {1e3, 1e5, 1e6, 1e7, 1e8}) {
      const Call call{.collective = collective, .ranks = ranks, .bytes = bytes};
      for (const OnTopology::Row& row : plan_on(call, topology).rows) {
        if (algorithm.empty() || row.name == algorithm) {
          points.push_back({.collective = collective,
                            .algorithm = algorithm,
                            .ranks = ranks,
                            .bytes = bytes,
                            .time_s = row.time_s});
          break;
        }
      }
    }
  }
  return points;
}

Topology changed(Topology topology, double start, double bandwidth) {
  for (Protocol& protocol : topology.protocols) {
    protocol.start_us *= start;
  }
  for (Link& link : topology.links) {
    link.bytes_per_us *= bandwidth;
  }
  return topology;
}

TEST(FitOn, FindsWhatAMachineDoesOtherwiseThanItsPreset) {
  const Topology truth = changed(preset("dgx_a100"), 1.7, 0.6);
  const FittedTopology fitted =
      fit_on(measured(truth, Collective::all_reduce, {2, 4}), preset("dgx_a100"));
  EXPECT_NEAR(fitted.factors.start, 1.7, 0.1);
  EXPECT_NEAR(fitted.factors.near, 0.6, 0.03);
  EXPECT_FALSE(fitted.has_far);
  EXPECT_EQ(fitted.factors.far, 1);
  // Unmeasured cases follow: other rank counts, and another collective.
  const auto unseen = measured(truth, Collective::all_gather, {3, 8});
  EXPECT_LT(errors_on(fitted.topology, unseen).quantile(0.9), 0.05);
  EXPECT_GT(errors_on(preset("dgx_a100"), unseen).quantile(0.5), 0.2);
}

TEST(FitOn, TellsLinksOfNodesFromThoseBetweenThem) {
  Topology truth = preset("dgx_h100:nodes=2");
  for (Link& link : truth.links) {
    const bool leaves = truth.devices[static_cast<std::size_t>(link.from)].inside < 0 ||
                        truth.devices[static_cast<std::size_t>(link.to)].inside < 0;
    link.bytes_per_us *= leaves ? 0.5 : 1;
  }
  const FittedTopology fitted =
      fit_on(measured(truth, Collective::all_reduce, {8, 16}), preset("dgx_h100:nodes=2"));
  EXPECT_TRUE(fitted.has_far);
  EXPECT_NEAR(fitted.factors.far, 0.5, 0.05);
  EXPECT_NEAR(fitted.factors.near, 1, 0.05);
}

TEST(FitOn, GivesATopologyWithoutProtocolsAStart) {
  const Topology plain = preset("ethernet_cluster:hosts=4");
  ASSERT_TRUE(plain.protocols.empty());
  Topology truth = plain;
  truth.protocols.push_back({.name = "kernel", .start_us = 30, .message_us = 2, .share = 0.8});
  const auto points = measured(truth, Collective::all_reduce, {4}, "ring");
  const FittedTopology fitted = fit_on(points, plain);
  ASSERT_EQ(fitted.topology.protocols.size(), 1U);
  EXPECT_LT(errors_on(fitted.topology, points).quantile(0.9), 0.1);
}

TEST(FitOn, RefusesWhatTheTopologyDoesNotHave) {
  const Topology topology = preset("dgx_a100");
  const std::vector<cost::Point> many = {
      {.collective = Collective::all_reduce, .ranks = 9, .bytes = 8, .time_s = 1e-5}};
  EXPECT_THROW(fit_on(many, topology), Error);
  EXPECT_THROW(errors_on(topology, many), Error);
  const std::vector<cost::Point> odd = {{.collective = Collective::all_reduce,
                                         .algorithm = "double_tree:segments=7",
                                         .ranks = 4,
                                         .bytes = 8,
                                         .time_s = 1e-5}};
  EXPECT_THROW(fit_on(odd, topology), Error);
}

}  // namespace
}  // namespace unisono::network_model
