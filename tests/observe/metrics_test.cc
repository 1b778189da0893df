// The metrics of jobs as data: counters whose groups come and go, too many names, and invalid
// names. tests/multiprocess/metrics_test.py reads the metrics of real jobs.
#include "top/metrics.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace unisono::cli {
namespace {

constexpr std::int64_t kNow = 5'000'000'000;

comm::ObservedGroup group_with(std::uint64_t id, std::uint64_t barriers) {
  std::vector<comm::ObservedCalls> calls(comm::kCallKinds);
  calls[static_cast<std::size_t>(Collective::barrier)].calls = barriers;
  return {.id = id, .size = 1, .ranks = {{.world_rank = 0, .calls = calls}}};
}

Job job_of_one(const std::string& name = "w") {
  Job job;
  job.segment = 7;
  job.world = {.job = name, .pids = {100}, .left = {false}, .labels = {""}};
  job.world.group = group_with(0, 1);
  job.processes = {ProcessState{.pid = 100, .state = 'R'}};
  return job;
}

class Scraped : public testing::Test {
 protected:
  void scrape(const std::vector<Job>& jobs, std::int64_t now_ns = kNow) {
    text = metrics.text(jobs, now_ns, Metrics::Format::openmetrics);
  }
  // Returns the value of the only series with these words; -1: there is none.
  double value(const std::string& name, const std::vector<std::string>& labels = {}) const {
    double found = -1;
    for (std::size_t at = text.find("\n" + name + "{"); at != std::string::npos;
         at = text.find("\n" + name + "{", at + 1)) {
      const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
      bool is_it = true;
      for (const std::string& label : labels) {
        is_it &= line.find(label) != std::string::npos;
      }
      if (is_it) {
        EXPECT_EQ(found, -1) << "more than one " << name;
        found = std::stod(line.substr(line.rfind(' ')));
      }
    }
    return found;
  }
  std::size_t series(const std::string& name) const {
    std::size_t count = 0;
    for (std::size_t at = text.find("\n" + name + "{"); at != std::string::npos;
         at = text.find("\n" + name + "{", at + 1)) {
      ++count;
    }
    return count;
  }

  Metrics metrics{"h"};
  std::string text;
};

TEST_F(Scraped, CountersOfAClosedGroupStay) {
  Job job = job_of_one();
  job.groups = {group_with(1, 30)};
  scrape({job});
  EXPECT_EQ(series("unisono_calls_total"), 2U);
  job.groups = {};
  scrape({job});
  EXPECT_EQ(series("unisono_calls_total"), 2U);
  EXPECT_NE(text.find("\"barrier\"} 30\n"), std::string::npos) << text;
  scrape({});
  EXPECT_EQ(series("unisono_calls_total"), 0U);
}

TEST_F(Scraped, ManyGroupsShareOneName) {
  Job job = job_of_one();
  for (std::uint64_t id = 1; id <= Metrics::kMostGroups + 3; ++id) {
    job.groups.push_back(group_with(id, 10));
  }
  scrape({job});
  EXPECT_EQ(series("unisono_calls_total"), Metrics::kMostGroups + 2);
  EXPECT_EQ(value("unisono_calls_total", {"group=\"other\""}), 30);
  job.groups.pop_back();
  job.groups.back() = group_with(Metrics::kMostGroups + 2, 14);
  scrape({job});
  EXPECT_EQ(value("unisono_calls_total", {"group=\"other\""}), 34);
  job.groups.push_back(group_with(1000, 5));
  scrape({job});
  EXPECT_EQ(value("unisono_calls_total", {"group=\"other\""}), 39);
  EXPECT_EQ(series("unisono_calls_total"), Metrics::kMostGroups + 2);
}

TEST_F(Scraped, ManyLabelsShareOneName) {
  Job job = job_of_one();
  for (std::size_t i = 0; i < Metrics::kMostLabels; ++i) {
    job.world.labels[0] = "step " + std::to_string(i);
    scrape({job});
    EXPECT_EQ(value("unisono_label_info", {job.world.labels[0]}), 1);
  }
  job.world.labels[0] = "one more";
  scrape({job});
  EXPECT_EQ(value("unisono_label_info", {"label=\"other\""}), 1);
  job.world.labels[0] = "step 3";
  scrape({job});
  EXPECT_EQ(value("unisono_label_info", {"label=\"step 3\""}), 1);
}

TEST_F(Scraped, LabelsAreUtf8WithTheEscapesOfPrometheus) {
  Job job = job_of_one();
  job.world.labels[0] = "a\\b \"c\"\n\t\x01 \xe5\xb1\x82 \xe5\xb1";  // the last one is cut
  scrape({job});
  EXPECT_EQ(
      value("unisono_label_info", {"label=\"a\\\\b \\\"c\\\"\\n   \xe5\xb1\x82 \xef\xbf\xbd\""}), 1)
      << text;
}

TEST_F(Scraped, AWaitInProgressCountsOnce) {
  Job job = job_of_one();
  comm::ObservedCalls& barrier =
      job.world.group.ranks[0].calls[static_cast<std::size_t>(Collective::barrier)];
  barrier.waited_ns = 1'000'000'000;
  barrier.since_ns = kNow - 2'000'000'000;
  scrape({job});
  EXPECT_EQ(value("unisono_waiting_seconds_total"), 3);
  barrier = {.calls = 1, .waited_ns = 1'000'000'000};  // seen between two writes
  scrape({job});
  EXPECT_EQ(value("unisono_waiting_seconds_total"), 3);
  barrier.waited_ns = 3'500'000'000;
  scrape({job});
  EXPECT_EQ(value("unisono_waiting_seconds_total"), 3.5);
  barrier.since_ns = kNow;
  job.world.abort = "rank 1 is lost";
  scrape({job}, kNow + 9'000'000'000);
  EXPECT_EQ(value("unisono_waiting_seconds_total"), 3.5) << "nobody ends the wait of a failed call";
  EXPECT_EQ(value("unisono_world_aborted"), 1);
}

TEST_F(Scraped, AWaitIsForTheRankThatHasNotCome) {
  Job job = job_of_one();
  comm::ObservedGroup& group = job.world.group;
  group = {.size = 3};
  for (int rank = 0; rank < 3; ++rank) {
    group.ranks.push_back({.world_rank = rank, .newest = {.sequence = 4}});
  }
  group.ranks[2].waiting = comm::WaitTarget{.peer = 1, .since_ns = kNow - 2'000'000'000};
  scrape({job});
  EXPECT_EQ(value("unisono_wait_seconds", {"rank=\"2\"", "group=\"world\""}), 2);
  EXPECT_EQ(value("unisono_wait_for_rank"), 1);
  group.ranks[0].newest.sequence = 3;
  scrape({job});
  EXPECT_EQ(value("unisono_wait_for_rank"), 0);
  group.ranks[1].newest.sequence = 3;
  scrape({job});
  EXPECT_EQ(value("unisono_wait_for_rank"), 1);
  group.ranks[2].waiting->what = comm::WaitTarget::What::recv;
  scrape({job});
  EXPECT_EQ(value("unisono_wait_for_rank", {"operation=\"recv\""}), 1);
}

TEST_F(Scraped, WorldsOfOneNameKeepTheirNames) {
  Job other = job_of_one();
  other.segment = 9;
  scrape({job_of_one()});
  scrape({job_of_one(), other});
  EXPECT_EQ(value("unisono_world_ranks", {"world=\"w\""}), 1);
  EXPECT_EQ(value("unisono_world_ranks", {"world=\"w@9\""}), 1);
  scrape({other});
  EXPECT_EQ(value("unisono_world_ranks", {"world=\"w\""}), -1);
  EXPECT_EQ(value("unisono_world_ranks", {"world=\"w@9\""}), 1);
}

}  // namespace
}  // namespace unisono::cli
