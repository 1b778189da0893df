// Error texts about a lost rank after the launcher has begun to end the job.
#include "bootstrap/end_reason.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace unisono::comm {
namespace {

class Words : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("UNISONO_LAUNCHER", path_.c_str(), 1); }
  void TearDown() override {
    ::unsetenv("UNISONO_LAUNCHER");
    std::filesystem::remove(path_);
  }
  void write(const std::string& reason) const {
    std::ofstream(path_) << job_line("job", 3) << reason_lines(reason, "look");
  }
  static std::string said(const EndReason& end) {
    return EndReasonReader().end_and_advice(end, "advice");
  }

  const std::string path_ = ::testing::TempDir() + "words-" + std::to_string(::getpid());
};

TEST_F(Words, StandForEndsThatMayBeTheLaunchers) {
  const std::string reason = ended_after(2) + "exited with code 7";
  const std::string words = reason + "\nlook";
  write(reason);
  for (const char* how : {"killed by SIGTERM", "killed by SIGINT", "killed by SIGKILL",
                          "exited or was killed", "process 9 killed by SIGTERM"}) {
    EXPECT_EQ(said({.process = 1, .how = how}), words);
  }
  EXPECT_EQ(said({.process = 1, .how = "closed", .by_its_closing = true}), words);
}

TEST_F(Words, LeaveTheFirstCauseAndOtherEndsAsTheyAre) {
  write(ended_after(2) + "was killed by SIGKILL");
  EXPECT_EQ(said({.process = 2, .how = "killed by SIGKILL"}), "killed by SIGKILL\nadvice");
  EXPECT_EQ(said({.process = 2, .how = "closed", .by_its_closing = true}), "closed\nadvice");
  EXPECT_EQ(said({.process = 1, .how = "killed by SIGSEGV"}), "killed by SIGSEGV\nadvice");
  EXPECT_EQ(said({.process = 1, .how = "exited with code 1"}), "exited with code 1\nadvice");
  EXPECT_EQ(said({.process = 1, .how = "carried damage"}), "carried damage\nadvice");
}

TEST_F(Words, AreLookedForWhereTheyWereWhenTheWorldBegan) {
  const EndReasonReader launcher;
  ::unsetenv("UNISONO_LAUNCHER");
  write(ended_after(2) + "exited with code 7");
  EXPECT_EQ(launcher.end_and_advice({.process = 1, .how = "killed by SIGKILL"}, "advice"),
            ended_after(2) + "exited with code 7\nlook");
}

TEST_F(Words, AreNotReadFromWhatIsNoFile) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(said({.process = 1, .how = "killed by SIGKILL"}), "killed by SIGKILL\nadvice");
}

}  // namespace
}  // namespace unisono::comm
