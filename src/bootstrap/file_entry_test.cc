// Ranks that find each other by a file.
#include "bootstrap/file_entry.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "bootstrap/process.h"
#include "bootstrap/testing.h"

namespace unisono::comm {
namespace {

namespace fs = std::filesystem;
using testing::as_processes;
using testing::as_threads;
using testing::Child;
using testing::unique_name;

class RendezvousFile : public ::testing::Test {
 protected:
  RendezvousFile() : path_(fs::temp_directory_path() / unique_name("file")) {}
  ~RendezvousFile() override { fs::remove(path_); }

  ConnectOptions options(int size, int rank = -1, int connect_timeout_ms = 60'000) const {
    ConnectOptions result = testing::options_for(rank, size, "", connect_timeout_ms);
    result.file = path_;
    return result;
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  std::string read() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  std::string path_;
};

std::string join(const ConnectOptions& options) {
  const auto world = LocalWorld::join(options);
  world->all_gather({});
  return std::to_string(world->rank());
}

std::set<std::string> as_set(const std::vector<std::string>& results) {
  return {results.begin(), results.end()};
}

TEST_F(RendezvousFile, GivesOutRanksAndVanishes) {
  for (int round = 0; round < 3; ++round) {
    const auto results = as_processes(4, [&](int) { return join(options(4)); });
    EXPECT_EQ(as_set(results), (std::set<std::string>{"0", "1", "2", "3"}));
    EXPECT_FALSE(fs::exists(path_));
  }
  const auto threads = as_threads(5, [&](int) { return join(options(5)); });
  EXPECT_EQ(as_set(threads), (std::set<std::string>{"0", "1", "2", "3", "4"}));
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(RendezvousFile, OneRankNeedsNoFile) {
  EXPECT_EQ(join(options(1)), "0");
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(RendezvousFile, KeepsGivenRanks) {
  const auto results = as_threads(3, [&](int i) { return join(options(3, 2 - i)); });
  EXPECT_EQ(results, (std::vector<std::string>{"2", "1", "0"}));
}

TEST_F(RendezvousFile, MayExistAndBeEmpty) {
  write("");
  const auto results = as_threads(2, [&](int) { return join(options(2)); });
  EXPECT_EQ(as_set(results), (std::set<std::string>{"0", "1"}));
}

TEST_F(RendezvousFile, OfADeadJobIsStartedAnew) {
  Child dead([&](int) { return std::to_string(FileEntry(path_, -1, 2, Deadline::never()).rank()); },
             0);
  EXPECT_EQ(dead.result(), "0");
  ASSERT_TRUE(fs::exists(path_));
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  const auto results = as_threads(2, [&](int) { return join(options(2)); });
  EXPECT_EQ(as_set(results), (std::set<std::string>{"0", "1"}));
  EXPECT_FALSE(fs::exists(path_));
}

// The pid is the same, but its process has another start time.
TEST_F(RendezvousFile, SeesThatAPidWasGivenAgain) {
  write("unisono.rendezvous/1\njob abc 2\nrank 0 " + std::to_string(::getpid()) + " 1\n");
  EXPECT_EQ(FileEntry(path_, -1, 2, Deadline::never()).rank(), 0);
  write("unisono.rendezvous/1\njob abc 2\nrank 0 " + std::to_string(::getpid()) + " " +
        std::to_string(start_of(::getpid()).value()) + "\n");
  const FileEntry second(path_, -1, 2, Deadline::never());
  EXPECT_EQ(second.rank(), 1);
  EXPECT_EQ(second.job(), "file/abc");
}

// The last rank of one job removes the file while a rank of the next waits for its lock.
TEST_F(RendezvousFile, ReplacedWhileWaitingForItsLock) {
  const std::string end = " 2\nrank 0 " + std::to_string(::getpid()) + " " +
                          std::to_string(start_of(::getpid()).value()) + "\n";
  write("unisono.rendezvous/1\njob old" + end);
  UniqueFd held(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  std::string job;
  std::thread waiter([&] { job = FileEntry(path_, -1, 2, Deadline::never()).job(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  fs::remove(path_);
  write("unisono.rendezvous/1\njob new" + end);
  held.reset();
  waiter.join();
  EXPECT_EQ(job, "file/new");
}

TEST_F(RendezvousFile, GoesWhenTheJobFails) {
  const auto results = as_threads(3, [&](int rank) {
    return rank == 2 ? "" : testing::run_one([&](int) { return join(options(3, -1, 200)); }, 0);
  });
  EXPECT_NE(results[0].find("joined 2 of 3; missing rank 2"), std::string::npos) << results[0];
  EXPECT_EQ(results[1], results[0]);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(RendezvousFile, SizesDiffer) {
  const auto results = as_threads(2, [&](int i) { return join(options(2 + i)); });
  for (const std::string& text : results) {
    EXPECT_EQ(text.rfind("config: rank 1 (process ", 0), 0U) << text;
    EXPECT_NE(text.find(" expects a job of "), std::string::npos) << text;
  }
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(RendezvousFile, RankGivenTwice) {
  const FileEntry first(path_, 1, 3, Deadline::never());
  const std::string text =
      testing::run_one([&](int) { return FileEntry(path_, 1, 3, Deadline::never()).job(); }, 0);
  EXPECT_EQ(text.rfind("config: rank 1 was given twice: to process ", 0), 0U) << text;
}

TEST_F(RendezvousFile, OtherFilesAreLeftAlone) {
  for (const std::string content :
       {"my thesis\n", "unisono.rendezvous/1\n", "unisono.rendezvous/1\njob x y\n",
        "unisono.rendezvous/1\njob x 2\nrank 0\n", "unisono.rendezvous/1\njob x 2\nrank 0 1 2\nq",
        "unisono.rendezvous/1\njob x 2\n\n\nfolder 1 2 3\n"}) {
    write(content);
    const std::string text = testing::run_one([&](int) { return join(options(2, -1, 100)); }, 0);
    EXPECT_EQ(text.rfind("config: the rendezvous file " + path_, 0), 0U) << content << text;
    EXPECT_EQ(read(), content);
  }
}

TEST_F(RendezvousFile, LinksAndFoldersAreRefused) {
  const std::string target = path_ + ".target";
  fs::create_symlink(target, path_);
  EXPECT_EQ(testing::run_one([&](int) { return join(options(2, -1, 100)); }, 0)
                .rfind("config: the rendezvous file " + path_ + " cannot be opened", 0),
            0U);
  EXPECT_FALSE(fs::exists(target));
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_EQ(testing::run_one([&](int) { return join(options(2, -1, 100)); }, 0)
                .rfind("config: the rendezvous file " + path_ + " cannot be opened", 0),
            0U);
}

// The disk becomes full in the middle of a line. The next rank begins the file anew.
TEST_F(RendezvousFile, LeavesNoHalfOfItself) {
  Child rank(
      [&](int) {
        const rlimit small{.rlim_cur = 30, .rlim_max = RLIM_INFINITY};
        ::setrlimit(RLIMIT_FSIZE, &small);
        const std::string said =
            testing::run_one([&](int) { return join(options(2, -1, 100)); }, 0);
        const rlimit all{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
        ::setrlimit(RLIMIT_FSIZE, &all);
        return said;
      },
      0);
  EXPECT_EQ(rank.result(), "resource: the rendezvous file " + path_ +
                               " cannot be written: No space left on device");
  EXPECT_FALSE(fs::exists(path_));
}

}  // namespace
}  // namespace unisono::comm
