// Compares predictions with published times of GPU machines that the fit has not seen. The errors
// are those of docs/internals/measurements.md.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "network_model/fit_machine.h"
#include "network_model/holdout.h"
#include "network_model/table.h"

namespace unisono::network_model {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Table load(const std::string& name) {
  auto parsed = parse_table(read(std::string(UNISONO_NCCL_DATA) + "/" + name));
  EXPECT_TRUE(parsed) << name << " " << parsed.position << ": " << parsed.message;
  return parsed ? *parsed.value : Table{};
}

std::vector<cost::Point> only(const std::vector<cost::Point>& points, Collective collective) {
  std::vector<cost::Point> result;
  for (const cost::Point& point : points) {
    if (point.collective == collective) {
      result.push_back(point);
    }
  }
  return result;
}

// docs/internals/measurements.md must have a row that ends in these figures.
void expect_documented(const Errors& errors) {
  std::array<char, 64> row = {};
  std::snprintf(row.data(), row.size(), "| %.1f %% | %.1f %% |\n", 100 * errors.quantile(0.5),
                100 * errors.quantile(0.9));
  EXPECT_NE(read(UNISONO_MEASUREMENTS).find(row.data()), std::string::npos) << row.data();
}

struct Goal {
  const char* machine;
  double median;
  double p90;
};

TEST(Nccl, PredictsEverySecondSize) {
  const Table table = load("measured.csv");
  // The eight GPUs of a DGX-1 form a hybrid cube mesh. A library changes its rings and its protocol
  // with the size there, which a curve through every second size does not show.
  for (const Goal& goal : {Goal{"dgx-a100", 0.04, 0.10}, Goal{"dgx-h100", 0.04, 0.10},
                           Goal{"h100x4", 0.04, 0.10}, Goal{"dgx-1-v100", 0.04, 0.16}}) {
    const std::vector<cost::Point> points = table.points(goal.machine);
    const Errors errors = hold_out_sizes(points);
    EXPECT_EQ(errors.count(), points.size());
    EXPECT_LE(errors.quantile(0.5), goal.median) << goal.machine;
    EXPECT_LE(errors.quantile(0.9), goal.p90) << goal.machine;
    const Errors plain = hold_out_sizes_of_plain_curve(points);
    EXPECT_GT(plain.quantile(0.5), errors.quantile(0.5)) << goal.machine;
    expect_documented(errors);
  }
}

// Uses five sizes of a series, from its smallest to its largest, and no other times of the machine.
TEST(Nccl, PredictsASeriesFromFivePoints) {
  Errors errors;
  for (const char* name : {"measured.csv", "unseen.csv"}) {
    std::map<std::tuple<std::string, Collective, int>, std::map<double, cost::Point>> all;
    for (const Table::Row& row : load(name).rows) {
      const cost::Point& point = row.point;
      all[{row.machine, point.collective, point.ranks}][point.bytes] = point;
    }
    for (const auto& [which, series] : all) {
      constexpr std::size_t kFew = 8;
      if (series.size() < kFew) {
        continue;
      }
      std::vector<cost::Point> seen;
      std::vector<cost::Point> held;
      std::size_t number = 0;
      for (const auto& [bytes, point] : series) {
        // The five sizes whose positions are nearest to the quarters.
        const std::size_t last = series.size() - 1;
        const std::size_t quarter = (4 * number + last / 2) / last;
        const bool is_seen = number == (quarter * last + 2) / 4;
        (is_seen ? seen : held).push_back(point);
        ++number;
      }
      EXPECT_EQ(seen.size(), 5U);
      errors.add(errors_of(fit_machine(seen), held));
    }
  }
  EXPECT_GT(errors.count(), 100U);
  EXPECT_LE(errors.quantile(0.5), 0.04);
  EXPECT_LE(errors.quantile(0.9), 0.18);
  EXPECT_LE(errors.quantile(1), 0.6);
  expect_documented(errors);
}

TEST(Nccl, PredictsOtherRankCounts) {
  const cost::Machine machine = fit_machine(load("measured.csv").points("dgx-a100"));
  const std::vector<cost::Point> unseen = load("unseen.csv").points("dgx-a100");
  const Errors errors = errors_of(machine, unseen);
  EXPECT_EQ(errors.count(), 40U);
  EXPECT_LE(errors.quantile(0.5), 0.06);
  EXPECT_LE(errors.quantile(0.9), 0.15);
  expect_documented(errors);
}

TEST(Nccl, PredictsOtherCollectivesFromAllReduce) {
  const cost::Machine machine = fit_machine(load("measured.csv").points("h100x4"));
  const std::vector<cost::Point> unseen = load("unseen.csv").points("h100x4");
  Errors scattered = errors_of(machine, only(unseen, Collective::reduce_scatter));
  const Errors gathered = errors_of(machine, only(unseen, Collective::all_gather));
  EXPECT_EQ(scattered.count(), 24U);
  EXPECT_EQ(gathered.count(), 23U);
  expect_documented(scattered);
  expect_documented(gathered);
  scattered.add(gathered);
  EXPECT_LE(scattered.quantile(0.5), 0.06);
  EXPECT_LE(scattered.quantile(0.9), 0.15);
}

TEST(Holdout, HoldsOutWhatItSays) {
  const Table table = load("measured.csv");
  const std::vector<cost::Point> points = table.points("dgx-a100");
  EXPECT_EQ(hold_out_ranks(points).count(), points.size());
  EXPECT_EQ(hold_out_collectives(points).count(), 0U);
  const std::vector<cost::Point> one_count = table.points("h100x4");
  EXPECT_EQ(hold_out_ranks(one_count).count(), 0U);

  // Rows of one size are left out together. A series with one size cannot be split.
  std::vector<cost::Point> twice(points.begin(), points.begin() + 4);
  twice.insert(twice.end(), points.begin(), points.begin() + 4);
  EXPECT_EQ(hold_out_sizes(twice).count(), 8U);
  EXPECT_EQ(hold_out_sizes(std::vector<cost::Point>{points[0], points[0]}).count(), 0U);

  Errors errors{.values = {0.1, -0.4, 0.2}, .points = std::vector<cost::Point>(3)};
  EXPECT_DOUBLE_EQ(errors.quantile(0.5), 0.2);
  EXPECT_DOUBLE_EQ(errors.quantile(0.75), 0.3);
  EXPECT_EQ(errors.worst(), 1U);
}

}  // namespace
}  // namespace unisono::network_model
