#include "membership/abort_word.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/local_host.h"
#include "bootstrap/local_world.h"

namespace unisono::comm {
namespace {

// Two ranks on one host, as threads of this process.
class AbortWordTest : public ::testing::Test {
 protected:
  AbortWordTest() {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([this, rank] {
        ConnectOptions options;
        options.rank = rank;
        options.size = 2;
        options.job = "abort-word-" + std::to_string(::getpid());
        const auto at = static_cast<std::size_t>(rank);
        ranks_[at] = LocalWorld::join(resolve(options));
        hosts_[at] = std::make_unique<LocalHost>(*ranks_[at], options.job, 1, false,
                                                 [](const std::exception&) {});
        words_[at] = std::make_unique<AbortWord>(*hosts_[at], nullptr, rank, 2);
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  AbortWord& word(int rank) { return *words_[static_cast<std::size_t>(rank)]; }
  AbortRecord& record() { return hosts_[0]->memory().abort_record(); }
  std::string thrown_by(int rank) {
    try {
      word(rank).throw_reason({});
    } catch (const Error& error) {
      return error.what();
    }
  }

 private:
  std::unique_ptr<LocalWorld> ranks_[2];
  std::unique_ptr<LocalHost> hosts_[2];
  std::unique_ptr<AbortWord> words_[2];
};

TEST_F(AbortWordTest, IsNotSetAtFirst) {
  EXPECT_FALSE(word(0).is_set());
  EXPECT_EQ(word(0).culprit(), std::nullopt);
  EXPECT_FALSE(word(1).failure().has_value());
}

TEST_F(AbortWordTest, TellsAllRanksTheFirstReason) {
  word(1).raise(ErrorCode::mismatch, 0, "rank 0 is wrong\nlook there");
  word(0).raise(ErrorCode::timeout, 1, "too late");
  EXPECT_TRUE(word(0).is_set_meanwhile());
  EXPECT_EQ(word(0).culprit(), 0);
  EXPECT_EQ(thrown_by(0), "mismatch: rank 0 is wrong\nlook there");
  EXPECT_EQ(thrown_by(1), thrown_by(0));
  EXPECT_EQ(word(1).failure()->hint(), "look there");
}

TEST_F(AbortWordTest, SaysWhoseExceptionItWas) {
  word(1).raise(std::bad_alloc());
  EXPECT_EQ(thrown_by(0),
            "resource: rank 1: out of memory\ncheck the limits on memory (ulimit -v, cgroup)");
}

TEST_F(AbortWordTest, TakesWhatAnotherHostSaysAndWhatNobodyCanRead) {
  word(0).take({.peer = 1, .reason = "9 7 of no such rank"});
  EXPECT_EQ(thrown_by(1), "aborted: 9 7 of no such rank");
  EXPECT_EQ(word(1).culprit(), -1);
}

TEST_F(AbortWordTest, IsNoReasonUntilItIsComplete) {
  record().state.store(1);
  EXPECT_TRUE(word(0).is_set());
  EXPECT_EQ(word(0).culprit(), std::nullopt);
  EXPECT_FALSE(word(0).failure().has_value()) << "its writer may be at it";
  EXPECT_EQ(thrown_by(1), "peer_lost: a rank died while it reported an error\nrestart the job");
}

TEST_F(AbortWordTest, TellsItsObserverOnce) {
  int told = 0;
  word(0).observe([&](const AbortRecord& record) {
    ++told;
    EXPECT_EQ(std::string(record.text), "over");
  });
  word(0).tell_observer();
  EXPECT_EQ(told, 0);
  word(0).raise(ErrorCode::aborted, -1, "over");
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace unisono::comm
