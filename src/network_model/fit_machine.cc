#include "network_model/fit_machine.h"

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "network_model/fit_residuals.h"
#include "network_model/fit_trend.h"
#include "schedule/schedule.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

void check(const cost::Point& point) {
  if (point.ranks < 1 || !std::isfinite(point.bytes) || point.bytes < 0 ||
      !std::isfinite(point.time_s) || point.time_s <= 0) {
    throw Error(ErrorCode::usage, "a measurement of " + std::string(to_string(point.collective)) +
                                      " needs ranks >= 1, bytes >= 0 and a time > 0\n"
                                      "leave out rows of calls that did not run");
  }
}

}  // namespace

cost::Machine fit_machine(std::vector<cost::Point> points) {
  std::map<std::string, std::vector<const cost::Point*>> members;
  for (const cost::Point& point : points) {
    check(point);
    members[cost::Machine::group_of(point.collective, point.algorithm)].push_back(&point);
  }
  std::map<std::string, cost::Machine::Group> groups;
  for (const auto& [name, group] : members) {
    cost::Machine::Group& fitted = groups[name];
    std::vector<Measured> measured;
    for (const cost::Point* point : group) {
      measured.push_back({.work = remembered_work(fitted, *point, !name.empty()),
                          .ranks = point->ranks,
                          .bytes = point->bytes,
                          .time_s = point->time_s,
                          .noise = point->noise});
    }
    fitted.trend = fit_trend(measured, !name.empty());
    std::vector<cost::Residual> residuals;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const double trend =
          fitted.trend.time_s(measured[i].work, measured[i].ranks, measured[i].bytes);
      residuals.push_back({.collective = plain_form(group[i]->collective),
                           .ranks = group[i]->ranks,
                           .bytes = group[i]->bytes,
                           .log_ratio = std::log(group[i]->time_s / trend),
                           .noise = group[i]->noise});
    }
    fitted.residuals = fit_residuals(std::move(residuals));
  }
  return cost::Machine::restore(std::move(points), std::move(groups));
}

}  // namespace unisono::network_model
