#include "pipeline/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "pipeline/run.h"
#include "pipeline/verify.h"

namespace unisono::pipeline {
namespace {

// Returns the longest pause of any rank between its first and last computation.
double pause_of_ranks(const Pipeline& pipeline, const Run& run) {
  double most = 0;
  for (std::size_t rank = 0; rank < run.spans.size(); ++rank) {
    double first = run.makespan;
    double last = 0;
    for (std::size_t i = 0; i < run.spans[rank].size(); ++i) {
      if (is_compute(pipeline.actions[rank][i].kind)) {
        first = std::min(first, run.spans[rank][i].start);
        last = std::max(last, run.spans[rank][i].end);
      }
    }
    most = std::max(most, last - first - run.busy[rank]);
  }
  return most;
}

// Compares with the formula, if there is one for these times.
void expect_bubble(const Entry& entry, PipelineSize shape, const Times& times) {
  const auto bubble = entry.bubble(shape, times);
  if (!bubble) {
    return;
  }
  SCOPED_TRACE(std::to_string(times.forward) + " " + std::to_string(times.input) + " " +
               std::to_string(times.weight));
  Pipeline pipeline = build(entry, shape);
  for (std::size_t stage = 0; stage < pipeline.stage_rank.size(); ++stage) {
    pipeline.costs.forward[stage] = times.forward / shape.chunks;
    pipeline.costs.input[stage] = times.input / shape.chunks;
    pipeline.costs.weight[stage] = times.weight / shape.chunks;
  }
  const pipeline::Run played = run(pipeline, {.capacity = kUnlimited});
  const double work = (times.forward + times.input + times.weight) * shape.microbatches;
  EXPECT_NEAR(*bubble,
              entry.is_bubble_of_rank ? pause_of_ranks(pipeline, played) : played.makespan - work,
              1e-9);
}

void expect_claims(const Entry& entry, PipelineSize shape) {
  const Pipeline pipeline = build(entry, shape);
  ASSERT_EQ(check(pipeline), std::nullopt);
  const Verdict verdict = verify(pipeline);
  ASSERT_TRUE(verdict.right()) << sentence(verdict.findings.front());
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const int peak = verdict.peak_activations[static_cast<std::size_t>(rank)];
    const int claimed = entry.peak(shape, rank);
    EXPECT_TRUE(entry.is_peak_bound ? peak <= claimed : peak == claimed)
        << "rank " << rank << " holds " << peak << ", not " << claimed;
  }
  for (const Times& times : {Times{}, Times{.forward = 2, .input = 2, .weight = 1},
                             Times{.forward = 1, .input = 3, .weight = 0.5}}) {
    expect_bubble(entry, shape, times);
  }
}

TEST(PipelineCatalog, EveryEntryIsRightAndIsWhatItClaims) {
  int tried = 0;
  for (const Entry* entry : catalog()) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      for (const int microbatches : {1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 36}) {
        for (int chunks = 1; chunks <= 3; ++chunks) {
          const PipelineSize shape{.ranks = ranks, .chunks = chunks, .microbatches = microbatches};
          if (refusal(*entry, shape).empty()) {
            SCOPED_TRACE(std::string(entry->name) + " p=" + std::to_string(ranks) +
                         " v=" + std::to_string(chunks) + " m=" + std::to_string(microbatches));
            expect_claims(*entry, shape);
            ++tried;
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 900);
}

TEST(PipelineCatalog, OneRankAndOneMicrobatchWorkWhereNothingForbidsThem) {
  for (const Entry* entry : catalog()) {
    const int chunks = entry->chunks == 0 ? 2 : entry->chunks;
    const bool is_dual = entry == &dual_pipe || entry == &dual_pipe_v;
    EXPECT_EQ(refusal(*entry, {.ranks = 1, .chunks = chunks, .microbatches = 1}).empty(), !is_dual)
        << entry->name;
  }
}

TEST(PipelineCatalog, TimesAndPeaksEqualThoseComputedElsewhere) {
  std::ifstream file(std::string(UNISONO_PIPELINE_DATA) + "/golden.csv");
  std::string line;
  std::getline(file, line);
  int rows = 0;
  for (; std::getline(file, line); ++rows) {
    SCOPED_TRACE(line);
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) {
      cells.push_back(cell);
    }
    const Entry* entry = find_entry(cells.at(0));
    ASSERT_NE(entry, nullptr);
    Pipeline pipeline = build(*entry, {.ranks = std::stoi(cells.at(1)),
                                       .chunks = std::stoi(cells.at(2)),
                                       .microbatches = std::stoi(cells.at(3))});
    const std::size_t stages = pipeline.stage_rank.size();
    pipeline.costs = {.forward = std::vector<double>(stages, std::stod(cells.at(4))),
                      .input = std::vector<double>(stages, std::stod(cells.at(5))),
                      .weight = std::vector<double>(stages, std::stod(cells.at(6))),
                      .transfer = std::vector<double>(stages, std::stod(cells.at(7)))};
    const pipeline::Run played = run(pipeline, {.capacity = kUnlimited});
    EXPECT_NEAR(played.makespan, std::stod(cells.at(8)), 1e-9);
    std::string peaks;
    for (const int peak : verify(pipeline).peak_activations) {
      peaks += (peaks.empty() ? "" : " ") + std::to_string(peak);
    }
    EXPECT_EQ(peaks, cells.at(14));
  }
  EXPECT_EQ(rows, 63);
}

TEST(PipelineCatalog, FourRanksAndEightMicrobatchesTakeWhatIsPublished) {
  const std::vector<std::pair<std::string, double>> times = {
      {"gpipe", 33}, {"1f1b", 33},     {"interleaved", 28.5}, {"zb-h1", 27},
      {"zbv", 25.5}, {"dualpipe", 26}, {"dualpipev", 27}};
  for (const auto& [name, time] : times) {
    const Entry* entry = find_entry(name);
    const int chunks = entry->chunks == 0 ? 2 : entry->chunks;
    EXPECT_EQ(run(build(*entry, {.ranks = 4, .chunks = chunks, .microbatches = 8})).makespan, time)
        << name;
  }
}

}  // namespace
}  // namespace unisono::pipeline
