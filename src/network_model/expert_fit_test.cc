// Compares fits of experts' exchanges with rows that they have not seen.
#include "network_model/expert_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/quantile.h"

namespace unisono::network_model {
namespace {

using Call = ExpertFit::Call;

std::vector<ExpertPoint> load() {
  std::ifstream file(UNISONO_MOE_DATA "/deepep.csv");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Parsed<ExpertTable> parsed = parse_expert_table(text);
  EXPECT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  return parsed ? std::move(parsed.value->points) : std::vector<ExpertPoint>{};
}

struct FitErrors {
  std::vector<double> all = {};
  double at(double part) const { return quantile(all, part); }
};

// Fits every fifth of the rows that `takes` accepts, and compares the other rows.
template <typename Takes>
FitErrors errors_of(const std::vector<ExpertPoint>& points, ExpertMode mode, const Takes& takes) {
  std::vector<ExpertPoint> given;
  std::vector<ExpertPoint> unseen;
  std::size_t number = 0;  // of the mode: each mode has its own table
  for (const ExpertPoint& point : points) {
    if (point.mode == mode && takes(point)) {
      (number % 5 == 0 ? given : unseen).push_back(point);
    }
    number += point.mode == mode ? 1 : 0;
  }
  FitErrors errors;
  for (const Call call : {Call::dispatch, Call::combine}) {
    const ExpertFit fit(given, call);
    for (const ExpertPoint& point : unseen) {
      const double us = call == Call::dispatch ? point.dispatch_us : point.combine_us;
      errors.all.push_back(std::abs(fit.us(point) / us - 1));
    }
  }
  return errors;
}

TEST(ExpertFit, EveryFifthRowFitsTheOthers) {
  const std::vector<ExpertPoint> points = load();
  FitErrors low = errors_of(points, ExpertMode::low_latency, [](const auto&) { return true; });
  FitErrors normal = errors_of(points, ExpertMode::normal,
                               [](const ExpertPoint& point) { return point.hosts == 1; });
  FitErrors both{low.all};
  both.all.insert(both.all.end(), normal.all.begin(), normal.all.end());
  RecordProperty("rows", static_cast<int>(both.all.size()));
  EXPECT_GT(both.all.size(), 1000U);
  std::printf("low latency %.1f / %.1f %%, normal %.1f / %.1f %%, both %.1f / %.1f %%\n",
              100 * low.at(0.5), 100 * low.at(0.9), 100 * normal.at(0.5), 100 * normal.at(0.9),
              100 * both.at(0.5), 100 * both.at(0.9));
  EXPECT_LT(both.at(0.5), 0.06);
  EXPECT_LT(both.at(0.9), 0.15);
}

// For any points, more tokens or longer rows take longer, and more processors do not.
TEST(ExpertFit, MoreToDoTakesLonger) {
  std::vector<ExpertPoint> points = load();
  std::erase_if(points, [](const ExpertPoint& point) { return point.mode != ExpertMode::normal; });
  points.resize(60);
  for (const Call call : {Call::dispatch, Call::combine}) {
    const ExpertFit fit(points, call);
    for (const ExpertPoint& point : points) {
      ExpertPoint more = point;
      more.shape.tokens *= 2;
      EXPECT_GT(fit.us(more), fit.us(point));
      more = point;
      more.shape.hidden *= 2;
      EXPECT_GT(fit.us(more), fit.us(point));
      more = point;
      more.processors *= 2;
      EXPECT_LE(fit.us(more), fit.us(point));
    }
  }
}

TEST(ExpertTable, SaysWhatIsWrong) {
  const std::string names =
      "machine,mode,hosts,ranks,tokens,hidden,k,experts,processors,dispatch_us,combine_us\n";
  const auto problem = [&](const std::string& text) {
    const auto parsed = parse_expert_table(text);
    return parsed ? "none" : parsed.position + ": " + parsed.message;
  };
  EXPECT_EQ(problem(names + "a,normal,1,8,64,7168,8,256,20,30,40\n"), "none");
  EXPECT_EQ(problem("# empty\n"), "line 1: the table has no rows");
  EXPECT_EQ(problem("machine,mode,mode\n"), "line 1: there are two columns \"mode\"");
  EXPECT_EQ(problem("machine,mode,hosts\n"),
            "line 1: there is no column 'ranks': the first line must name it");
  EXPECT_EQ(problem(names + "a,normal,1,8\n"),
            "line 2: 4 fields, but the first line names 11 columns");
  EXPECT_EQ(problem(names + "a,fast,1,8,64,7168,8,256,20,30,40\n"),
            "line 2: \"fast\" is not a mode: low_latency or normal");
  EXPECT_EQ(problem(names + "a,normal,1,8,64,7168,8,256,20,30,0\n"),
            "line 2: \"0\" cannot be combine_us");
  EXPECT_EQ(problem(names + "a,normal,1,8,64,7168,8,4,20,30,4\n"),
            "line 2: a token cannot choose 8 of 4 experts");
  EXPECT_EQ(problem(names + "a,normal,1,8,64,7168,8,256,0,30,4\n"),
            "line 2: the normal mode needs 1 or more processors");
  EXPECT_EQ(problem(names + "a,low_latency,1,8,64,7168,8,256,0,30,4\n"), "none");
  EXPECT_EQ(problem(names + "a,normal,1,8,64,7168,1001,2000,20,30,4\n"),
            "line 2: \"1001\" cannot be k");
  EXPECT_EQ(problem(names + "a,normal,3,8,64,7168,8,256,20,30,4\n"),
            "line 2: 8 ranks cannot be divided evenly among 3 hosts");
  std::string machines = names;
  for (int i = 0; i < 21; ++i) {
    machines += "m" + std::to_string(i) + ",normal,1,8,64,7168,8,256,20,30,4\n";
  }
  EXPECT_EQ(problem(machines), "line 22: more than 5000 rows, or 20 machines");
}

}  // namespace
}  // namespace unisono::network_model
