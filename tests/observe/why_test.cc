// The description of a job's ranks, from data: which rank waits for which, and which is to blame.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "diagnose/flight_recorder.h"
#include "top/jobs.h"
#include "top/why.h"

namespace unisono::cli {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// Rank 0 waits for rank 1 in operation #5, which rank 1 has entered or not.
Job job_of_two(std::uint64_t reached) {
  Job job{.world = {.pids = {100, 101}, .left = {false, false}}};
  job.processes = {ProcessState{.pid = 100, .state = 'S'}, ProcessState{.pid = 101, .state = 'R'}};
  job.world.group.ranks = {
      {.world_rank = 0,
       .newest = {.sequence = 5, .signature = 1},
       .waiting = comm::WaitTarget{.peer = 1, .place = 2, .since_ns = 3 * kSecond}},
      {.world_rank = 1, .newest = {.sequence = reached, .signature = 1}}};
  return job;
}

std::string kind_of(const Job& job) {
  const std::vector<Finding> findings = explain_hang(job, 10 * kSecond);
  return findings.size() == 1 && findings[0].ranks == std::vector<int>{1} ? findings[0].kind : "";
}

TEST(Hang, TellsTheCulpritsApart) {
  EXPECT_EQ(kind_of(job_of_two(4)), "never called");
  EXPECT_EQ(kind_of(job_of_two(5)), "late");
  Job job = job_of_two(4);
  job.processes[1]->state = 'T';
  EXPECT_EQ(kind_of(job), "stopped");
  job.processes[1] = std::nullopt;
  EXPECT_EQ(kind_of(job), "gone");
  job.world.left[1] = true;
  EXPECT_EQ(kind_of(job), "left");
  EXPECT_DOUBLE_EQ(explain_hang(job, 10 * kSecond)[0].waited_s, 7);
}

TEST(Hang, SaysWhatACallIsFor) {
  Job job = job_of_two(4);
  job.world.labels = {"layer 3", "layer 2"};
  const Finding finding = explain_hang(job, 10 * kSecond).at(0);
  EXPECT_NE(finding.text.english.find("#5 (layer 3)"), std::string::npos) << finding.text.english;
  EXPECT_NE(finding.details.back().english.find("(layer 2)"), std::string::npos);
  job.world.group.ranks[0].label = "of this group";
  EXPECT_NE(explain_hang(job, 10 * kSecond).at(0).text.english.find("#5 (of this group)"),
            std::string::npos);
}

TEST(Hang, FollowsAWaitThroughAnotherGroup) {
  Job job = job_of_two(4);
  job.world.pids.push_back(102);
  job.world.left.push_back(false);
  job.processes.push_back(ProcessState{.pid = 102, .state = 'R'});
  job.world.group.ranks.push_back({.world_rank = 2, .newest = {.sequence = 5, .signature = 1}});
  job.groups.push_back({.id = 7,
                        .ranks = {{.world_rank = 1,
                                   .newest = {.sequence = 2},
                                   .waiting = comm::WaitTarget{.peer = 1, .since_ns = 4 * kSecond}},
                                  {.world_rank = 2, .newest = {.sequence = 1}}}});
  const std::vector<Finding> findings = explain_hang(job, 10 * kSecond);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].ranks, std::vector<int>{2});
  EXPECT_EQ(findings[0].waiting, (std::vector<int>{0, 1}));
}

TEST(Hang, SaysThatCallsDiffer) {
  Job job = job_of_two(5);
  job.world.group.ranks[1].newest.signature = 2;
  job.world.group.ranks[1].waiting = comm::WaitTarget{.peer = 0, .since_ns = 4 * kSecond};
  const std::vector<Finding> findings = explain_hang(job, 10 * kSecond);
  ASSERT_EQ(findings.size(), 2U);  // and that they wait for each other
  EXPECT_EQ(findings[0].kind, "mismatch");
}

// In the words of the error that the ranks themselves would raise.
TEST(Hang, SaysWhatToAgreeOn) {
  Job job = job_of_two(5);
  job.world.group.ranks[1].waiting = comm::WaitTarget{.peer = 0, .since_ns = 4 * kSecond};
  comm::OperationRecord& other = job.world.group.ranks[1].newest;
  other.signature = 2;
  std::strcpy(other.algorithm, "ring");
  EXPECT_TRUE(explain_hang(job, 10 * kSecond)[0].next.english.starts_with(
      "all ranks must use the same algo"));
  other.count = 7;
  other.collective = Collective::all_reduce;
  EXPECT_EQ(explain_hang(job, 10 * kSecond)[0].next.english,
            "all ranks must make the same calls in the same order");
}

// No particular rank blocks it, because any rank may send.
TEST(Hang, TellsOfAReceiveFromAnybody) {
  Job job = job_of_two(5);
  job.world.group.ranks[0].waiting = comm::WaitTarget{
      .what = comm::WaitTarget::What::recv, .peer = -1, .place = 4, .since_ns = 3 * kSecond};
  const std::vector<Finding> alone = explain_hang(job, 10 * kSecond);
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_EQ(alone[0].kind, "unanswered");
  EXPECT_EQ(alone[0].waiting, std::vector<int>{0});
  EXPECT_EQ(alone[0].text.english, "rank 0 (pid 100) waits for a send of any rank with tag 4");
  // Ranks that wait for that rank are told its own wait.
  job.world.group.ranks[1].newest.sequence = 6;
  job.world.group.ranks[1].waiting = comm::WaitTarget{.peer = 0, .since_ns = 4 * kSecond};
  const std::vector<Finding> owed = explain_hang(job, 10 * kSecond);
  ASSERT_EQ(owed.size(), 1U);
  EXPECT_EQ(owed[0].kind, "never called");
  EXPECT_EQ(owed[0].ranks, std::vector<int>{0});
  EXPECT_NE(std::find(owed[0].details.begin(), owed[0].details.end(),
                      Text{"it waits for a send of any rank with tag 4",
                           "它在等待：任一 rank 以 tag 4 的 send"}),
            owed[0].details.end());
}

// Process numbers are those of the observing process, not those that the ranks see.
TEST(Hang, NamesProcessesAsTheyAreKnownHere) {
  Job job = job_of_two(4);
  job.world.pids = {1, 2};
  EXPECT_NE(explain_hang(job, 10 * kSecond)[0].text.english.find("rank 1 (pid 101)"),
            std::string::npos);
  job.processes[1] = std::nullopt;
  EXPECT_NE(explain_hang(job, 10 * kSecond)[0].text.english.find("rank 1 (pid 2)"),
            std::string::npos);
}

// As above, with rank 1 on another host.
Job part_of_two() {
  Job job = job_of_two(5);
  job.world.pids[1] = 0;
  job.processes[1] = std::nullopt;
  job.world.group.size = 2;
  job.world.group.ranks.pop_back();
  return job;
}

TEST(Hang, SaysThatARankIsOnAnotherHost) {
  const Job job = part_of_two();
  const std::vector<Finding> findings = explain_hang(job, 10 * kSecond);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, "elsewhere");
  EXPECT_EQ(findings[0].ranks, std::vector<int>{1});
  EXPECT_EQ(findings[0].waiting, std::vector<int>{0});
  EXPECT_DOUBLE_EQ(findings[0].waited_s, 7);
  EXPECT_EQ(findings[0].text.english, "rank 1 is on another host, and not seen from here");
  EXPECT_EQ(findings[0].next.english, "run unisono trace why there");
  EXPECT_EQ(size_text(job), "2 ranks, 1 of them here, 1 group");
}

// The rank of the other host may wait for this rank.
TEST(Hang, BlamesARankThatIsHereBeforeOneThatIsNot) {
  Job job = part_of_two();
  job.world.pids.push_back(102);
  job.world.left.push_back(false);
  job.processes.push_back(ProcessState{.pid = 102, .state = 'R'});
  job.world.group.size = 3;
  job.world.group.ranks.push_back({.world_rank = 2, .newest = {.sequence = 4, .signature = 1}});
  const std::vector<Finding> findings = explain_hang(job, 10 * kSecond);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, "never called");
  EXPECT_EQ(findings[0].ranks, std::vector<int>{2});
}

TEST(Hang, NamesAGroupThatIsSeenInPart) {
  Job job = part_of_two();
  job.world.pids.push_back(0);
  job.world.left.push_back(false);
  job.processes.emplace_back();
  job.groups = {{.id = 7, .size = 2, .ranks = job.world.group.ranks}};
  job.world.group.ranks[0].waiting = std::nullopt;
  const std::vector<Finding> findings = explain_hang(job, 10 * kSecond);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].ranks, std::vector<int>{1});
  EXPECT_EQ(findings[0].details.front().english,
            "waited for: barrier #5 of the group of rank 0 here and 1 more elsewhere");
}

// Returns the segment of a host in a job of two ranks on two hosts.
Job part_with(int rank) {
  Job part{.segment = static_cast<std::uint64_t>(rank),
           .world = {.job = "apart", .pids = {0, 0}, .left = {false, false}, .labels = {"", ""}}};
  const auto at = static_cast<std::size_t>(rank);
  part.world.labels[at] = "layer " + std::to_string(rank);
  part.world.pids[at] = 100 + rank;
  part.processes.resize(2);
  part.processes[at] = ProcessState{.pid = 100 + rank, .state = 'S'};
  part.world.group = {.size = 2};
  part.world.group.ranks = {
      {.world_rank = rank,
       .newest = {.sequence = 1, .signature = 1},
       .waiting = comm::WaitTarget{
           .what = comm::WaitTarget::What::recv, .peer = 1 - rank, .since_ns = 1}}};
  part.groups = {{.id = 7, .size = 2, .first = 1, .ranks = {{.world_rank = rank}}},
                 {.id = 8, .size = 1, .first = rank, .ranks = {{.world_rank = rank}}}};
  return part;
}

TEST(Jobs, OfSeveralHostsOnOneMachineAreSeenAsOne) {
  const std::vector<Job> jobs = join_parts({part_with(1), part_with(0)});
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].world.pids, (std::vector<int>{100, 101}));
  EXPECT_EQ(jobs[0].world.labels, (std::vector<std::string>{"layer 0", "layer 1"}));
  EXPECT_EQ(pid_of(jobs[0], 0), 100);
  EXPECT_EQ(jobs[0].world.group.ranks.size(), 2U);
  ASSERT_EQ(jobs[0].groups.size(), 3U);  // two have the same id, and different members
  const std::vector<Finding> findings = explain_hang(jobs[0], kSecond);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, "deadlock");
}

// Two runs may have the same name, so it is unknown which parts belong together.
TEST(Jobs, ThatShowARankTwiceStayApart) {
  const std::vector<Job> jobs = join_parts({part_with(1), part_with(0), part_with(0)});
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_EQ(explain_hang(jobs[0], kSecond)[0].kind, "elsewhere");
  Job longer = part_with(0);
  longer.world.pids.push_back(0);
  EXPECT_EQ(join_parts({part_with(1), longer}).size(), 2U) << "of another size";
}

TEST(Hang, NobodyWaits) {
  Job job = job_of_two(5);
  job.world.group.ranks[0].waiting = std::nullopt;
  EXPECT_TRUE(explain_hang(job, 10 * kSecond).empty());
}

TEST(Record, ALongNameKeepsHowItsMovesAreEncoded) {
  comm::OperationRecord one;
  comm::OperationRecord other;
  comm::set_algorithm(one, "recursive_multiplying:radix=4+i8");
  comm::set_algorithm(other, "recursive_multiplying:radix=4+bf16");
  EXPECT_STREQ(one.algorithm, "recursive_multiplyin+i8");
  EXPECT_STREQ(other.algorithm, "recursive_multiply+bf16");
  EXPECT_EQ(advice_on(std::vector{one, other}), comm::Advice::same_max_error);
  comm::set_algorithm(one, "ring");
  EXPECT_STREQ(one.algorithm, "ring");
}

}  // namespace
}  // namespace unisono::cli
