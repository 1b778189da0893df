// Messages between a launcher and its ranks. A meeting does not wait for dead ranks.
#include "bootstrap/job_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bootstrap/absence.h"

namespace unisono::comm {
namespace {

class JobLogOfALauncher : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("UNISONO_LAUNCHER", path_.c_str(), 1); }
  void TearDown() override {
    ::unsetenv("UNISONO_LAUNCHER");
    std::filesystem::remove(path_);
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  static Absence missing_all(AbsenceCheck check) {
    return check.find([](int) { return true; });
  }

  const std::string path_ = ::testing::TempDir() + "job-log-" + std::to_string(::getpid());
};

TEST_F(JobLogOfALauncher, IsReadAsItWasWritten) {
  write(job_line("run-1", 4) + end_line(2, "exited with code 0") + missed_line(2) + missed_line(3) +
        reason_lines("because of it", "look") + "end 3 is not yet wh");
  const JobLog log = SharedJobLog().read();
  EXPECT_EQ(log.job, "run-1");
  EXPECT_EQ(log.ranks, 4);
  EXPECT_EQ(log.ends, (std::map<int, std::string>{{2, "exited with code 0"}}));
  EXPECT_EQ(log.missed, 2);
  EXPECT_EQ(log.reason, "because of it");
  EXPECT_EQ(log.advice, "look");
}

TEST_F(JobLogOfALauncher, HasTheFailuresOfRanksThatHaveNotRecovered) {
  ::setenv("RANK", "2", 1);
  write(job_line("run-1", 4) + failed_line(1, 3, "rank 3 is gone\nlook") + failed_line(0, -1, "x"));
  FailureReport report("run-1");
  FailureReport of_another_job("run-2");
  report.tell(3, "rank 3 has left\nsee its output");
  report.tell(1, "what comes later");
  of_another_job.tell(1, "nothing of this job");
  const JobLog log = SharedJobLog().read();
  ASSERT_EQ(log.failures.size(), 3U);
  EXPECT_EQ(log.failures.at(1).culprit, 3);
  EXPECT_EQ(log.failures.at(1).why, "rank 3 is gone");
  EXPECT_EQ(log.failures.at(0).culprit, -1);
  EXPECT_EQ(log.failures.at(2).why, "rank 3 has left");
  FailureReport("run-1").tell_recovery();
  EXPECT_FALSE(SharedJobLog().read().failures.contains(2));
  ::unsetenv("RANK");
}

TEST_F(JobLogOfALauncher, SaysWhoWillNotJoinAndIsTold) {
  write(job_line("run-1", 4) + end_line(1, "exited with code 0") +
        end_line(3, "was killed by SIGKILL"));
  AbsenceCheck check("run-1", 4);
  const Absence absence = check.find([](int rank) { return rank == 3; });
  EXPECT_EQ(absence.rank, 3);
  EXPECT_EQ(absence.ranks, std::vector<int>{3});
  EXPECT_TRUE(absence.message.starts_with("rank 3 was killed by SIGKILL before it joined"));
  EXPECT_EQ(SharedJobLog().read().missed, 3);
}

// A process that failed is a likelier cause than one that ended normally.
TEST_F(JobLogOfALauncher, BlamesWhoFailed) {
  write(job_line("run-1", 4) + end_line(1, "exited with code 0") +
        end_line(2, "was killed by SIGSEGV") + end_line(3, "exited with code 7"));
  const Absence absence = missing_all({"run-1", 4});
  EXPECT_EQ(absence.rank, 2);
  EXPECT_EQ(absence.ranks, (std::vector<int>{1, 2, 3}));
}

// A shrunk world grows again, with new ranks under the same name.
TEST_F(JobLogOfALauncher, EndsWithTheFirstMeeting) {
  write(job_line("run-1", 4) + end_line(1, "was killed by SIGKILL"));
  note_meeting("run-2", 4);
  EXPECT_EQ(missing_all({"run-1", 4}).rank, 1);
  note_meeting("run-1", 4);
  EXPECT_TRUE(SharedJobLog().read().have_met);
  EXPECT_EQ(missing_all({"run-1", 4}).rank, -1);
  EXPECT_FALSE(AbsenceCheck("run-1", 4).has_log());
}

TEST_F(JobLogOfALauncher, IsNothingOfAnotherFile) {
  write("end 1 was killed by SIGKILL\n" + job_line("run-1", 4));
  EXPECT_EQ(SharedJobLog().read().ranks, 0);
}

TEST_F(JobLogOfALauncher, IsOfNoOtherMeeting) {
  write(job_line("run-1", 4) + end_line(1, "exited with code 0"));
  EXPECT_EQ(missing_all({"run-2", 4}).rank, -1);
  EXPECT_EQ(missing_all({"run-1", 2}).rank, -1);
  EXPECT_EQ(missing_all({"run-1", 4}).rank, 1);
}

TEST_F(JobLogOfALauncher, IsNoFileOfAnotherKind) {
  write("somebody's letter\n");
  SharedJobLog().add(missed_line(1));
  std::ifstream file(path_);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, "somebody's letter\n");
  EXPECT_EQ(SharedJobLog().read().ranks, 0);
}

}  // namespace
}  // namespace unisono::comm
