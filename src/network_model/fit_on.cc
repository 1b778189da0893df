#include "network_model/fit_on.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/collectives.h"
#include "network_model/plan_on.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

// The number of algorithms per call that are simulated while the search varies the factors: the
// fastest ones at the start. Slower ones are assumed not to become the fastest.
constexpr std::size_t kContenders = 4;
// Steps of a factor, as powers of two from coarse to fine; the last one is 2 %.
constexpr std::array kMoves = {1.0, 0.5, 0.25, 0.125, 0.0625, 0.03};
constexpr double kMostPower = 5;  // largest power of two of a factor: 32 or 1/32

using Question = std::tuple<Collective, int, double, std::string>;

Question question_of(const cost::Point& point) {
  return {point.collective, point.ranks, point.bytes, point.algorithm};
}

int node_of(const Topology& topology, int device) {
  while (device >= 0 &&
         topology.devices[static_cast<std::size_t>(device)].kind != DeviceKind::node) {
    device = topology.devices[static_cast<std::size_t>(device)].inside;
  }
  return device;
}

bool is_near(const Topology& topology, const Link& link) {
  const int node = node_of(topology, link.from);
  return node >= 0 && node == node_of(topology, link.to);
}

Topology with(const Topology& topology, const Factors& factors) {
  Topology changed = topology;
  for (Protocol& protocol : changed.protocols) {
    protocol.start_us *= factors.start;
    protocol.message_us *= factors.message;
  }
  for (Link& link : changed.links) {
    link.bytes_per_us *= is_near(topology, link) ? factors.near : factors.far;
  }
  return changed;
}

OnTopology plan(const cost::Point& point, const Topology& topology, std::set<std::string> only) {
  const Call call{.collective = point.collective, .ranks = point.ranks, .bytes = point.bytes};
  return plan_on(call, topology, {.only = std::move(only)});
}

void check(const cost::Point& point, const Topology& topology) {
  if (point.ranks > topology.rank_count()) {
    throw Error(ErrorCode::usage, std::to_string(point.ranks) +
                                      " ranks were measured, and the topology has " +
                                      std::to_string(topology.rank_count()));
  }
}

// The simulations for each measured call.
class Contenders {
 public:
  Contenders(std::span<const cost::Point> points, const Topology& topology) {
    for (const cost::Point& point : points) {
      std::set<std::string>& names = names_[question_of(point)];
      if (!names.empty()) {
        continue;
      }
      check(point, topology);
      const std::set<std::string> asked =
          point.algorithm.empty() ? std::set<std::string>() : std::set{point.algorithm};
      for (const OnTopology::Row& row : plan(point, topology, asked).rows) {
        if (names.size() < kContenders) {
          names.insert(row.name);
        }
      }
      if (names.empty()) {
        throw Error(ErrorCode::usage,
                    std::string(to_string(point.collective)) + "/" + point.algorithm + " among " +
                        std::to_string(point.ranks) + " ranks is not simulated on a topology");
      }
    }
  }

  Errors errors(const Topology& topology, std::span<const cost::Point> points) const {
    std::map<Question, double> times;
    Errors errors;
    for (const cost::Point& point : points) {
      const Question question = question_of(point);
      const auto [time, is_new] = times.try_emplace(question, 0.0);
      if (is_new) {
        time->second = plan(point, topology, names_.at(question)).rows.front().time_s;
      }
      errors.values.push_back(time->second / point.time_s - 1);
      errors.points.push_back(point);
    }
    return errors;
  }

 private:
  std::map<Question, std::set<std::string>> names_;
};

double loss(const Errors& errors) {
  double sum = 0;
  for (const double value : errors.values) {
    sum += std::abs(std::log1p(value));
  }
  return sum / static_cast<double>(std::max<std::size_t>(errors.count(), 1));
}

bool crosses_nodes(const cost::Point& point, const Topology& topology) {
  for (int rank = 1; rank < point.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (node_of(topology, topology.ranks[at]) != node_of(topology, topology.ranks[0])) {
      return true;
    }
  }
  return false;
}

// Starts as short as the quickest measured call; the search makes it longer or shorter.
Protocol first_protocol(std::span<const cost::Point> points) {
  const cost::Point& quickest = *std::ranges::min_element(points, {}, &cost::Point::time_s);
  return {.name = "fitted", .start_us = quickest.time_s * 0.5e6, .message_us = 1, .share = 1};
}

}  // namespace

FittedTopology fit_on(std::span<const cost::Point> points, const Topology& topology,
                      const std::function<void(int)>& begins) {
  Topology first = topology;
  if (first.protocols.empty() && !points.empty()) {
    first.protocols.push_back(first_protocol(points));
  }
  FittedTopology result{.topology = first};
  for (const cost::Point& point : points) {
    check(point, first);
    result.has_far = result.has_far || crosses_nodes(point, first);
  }
  const Contenders contenders(points, first);
  int tries = 0;
  const auto loss_of = [&](const Factors& factors) {
    begins(++tries);
    return loss(contenders.errors(with(first, factors), points));
  };
  std::vector<double Factors::*> free = {&Factors::start, &Factors::message, &Factors::near};
  if (result.has_far) {
    free.push_back(&Factors::far);
  }
  Factors& best = result.factors;
  double least = loss_of(best);
  for (const double move : kMoves) {
    for (bool moved = true; moved;) {
      moved = false;
      for (double Factors::* const factor : free) {
        for (const double power : {move, -move}) {
          Factors other = best;
          other.*factor *= std::exp2(power);
          if (std::abs(std::log2(other.*factor)) > kMostPower) {
            continue;
          }
          if (const double found = loss_of(other); found < least) {
            least = found;
            best = other;
            moved = true;
            break;
          }
        }
      }
    }
  }
  result.topology = with(first, best);
  return result;
}

Errors errors_on(const Topology& topology, std::span<const cost::Point> points) {
  return Contenders(points, topology).errors(topology, points);
}

}  // namespace unisono::network_model
