// A rank dies, the others shrink the world, and another rank dies at any step of shrink().
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "job.h"
#include "steps.h"

namespace unisono::testing {
namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kMostNs = 5'000'000'000;  // from the second death to the end of the others
constexpr int kNoStep = 1 << 30;
constexpr int kFewestSteps = 20;  // steps of a whole shrink(): with fewer, the trace failed
// The time limit of each world: after it, enough steps were tried.
constexpr std::chrono::seconds kQuick{3};
constexpr std::chrono::seconds kFull{36};

// The rank that dies first, and the rank that dies while the others shrink.
struct Case {
  int first = 0;
  int second = 0;
};
constexpr Case kCases[] = {{3, 0}, {3, 1}, {3, 2}, {0, 1}, {0, 3}, {1, 2}};

std::vector<int> survivors_of(const Case& dying) {
  std::vector<int> left;
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank != dying.first && rank != dying.second) {
      left.push_back(rank);
    }
  }
  return left;
}

std::string text_of(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) {
    text += std::to_string(rank) + " ";
  }
  return text;
}

// Every rank adds its number in the first world.
void check_sum(Communicator& comm, const std::vector<int>& ranks) {
  std::vector<int> data(1000, ranks[static_cast<std::size_t>(comm.rank())]);
  comm.all_reduce(data, sum);
  if (data != std::vector<int>(1000, std::accumulate(ranks.begin(), ranks.end(), 0))) {
    throw Error(ErrorCode::corrupt, "a wrong sum after shrink()");
  }
}

void await_death(Communicator& comm, const Case& dying) {
  std::vector<float> data(1000, 1);
  try {
    comm.barrier();  // the others may still be in this barrier when the rank leaves it
    if (comm.rank() == dying.first) {
      ::raise(SIGKILL);
    }
    for (;;) {
      comm.all_reduce(data, sum);
    }
  } catch (const Error& error) {
    const bool is_named =
        error.code() == ErrorCode::peer_lost && error.context().peer == dying.first;
    if (!is_named && error.code() != ErrorCode::aborted) {
      throw;
    }
  }
}

// Shrinks until both have left the world, and reports the remaining ranks as an error.
void go_on(Communicator& comm, const Case& dying) {
  std::vector<int> ranks(kRanks);
  std::iota(ranks.begin(), ranks.end(), 0);
  for (;;) {
    Communicator old = std::move(comm);
    // The remaining ranks on several hosts may not have a quorum, which this test does not cover.
    comm = old.shrink({.timeout_ms = 20'000, .quorum = false});
    std::vector<int> left;
    for (const int rank : comm.previous_ranks()) {
      left.push_back(ranks[static_cast<std::size_t>(rank)]);
    }
    ranks = left;
    try {
      check_sum(comm, ranks);
      throw Error(ErrorCode::internal, "went on: " + text_of(ranks));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::aborted) {  // another rank has detected the death and shrinks
        continue;
      }
      const int peer = error.context().peer;
      if (error.code() != ErrorCode::peer_lost || peer < 0 ||
          ranks[static_cast<std::size_t>(peer)] != dying.second) {
        throw;
      }
    }
  }
}

void live_and_die(Communicator& comm, const Case& dying) {
  const int rank = comm.rank();
  await_death(comm, dying);
  if (rank != dying.second) {
    go_on(comm, dying);
  }
  mark_begin();
  const Communicator shrunk = comm.shrink({.timeout_ms = 20'000, .quorum = false});
  mark_end();
}

// A job in which both have died. The other ranks end slowly, so several jobs exist at the same
// time.
class Trial {
 public:
  Trial(const Case& dying, int step)
      : dying_(dying),
        step_(step),
        job_(kRanks, [dying](Communicator& comm) { live_and_die(comm, dying); }) {
    if (!job_.wait_ready()) {
      throw Error(ErrorCode::timeout, "the ranks do not meet");
    }
    kill_ = kill_at_step(job_.process(dying.second), step);
    killed_ns_ = now_ns();
  }
  int steps() const { return kill_.steps; }
  // Returns the time of the slowest remaining rank.
  double judge() {
    SCOPED_TRACE("rank " + std::to_string(dying_.first) + " dead, rank " +
                 std::to_string(dying_.second) + " killed at step " + std::to_string(step_) + " (" +
                 kill_.what + ")");
    const std::vector<int> survivors = survivors_of(dying_);
    std::int64_t longest_ns = 0;
    for (const int rank : survivors) {
      const auto report = job_.ending(rank, 40'000);
      if (!report.has_value()) {
        ADD_FAILURE() << "rank " << rank << " hangs or died";
        continue;
      }
      EXPECT_EQ(report->text, "internal: went on: " + text_of(survivors)) << "rank " << rank;
      longest_ns = std::max(longest_ns, report->at_ns - killed_ns_);
    }
    EXPECT_LT(longest_ns, kMostNs);
    expect_no_files(job_.name());
    return double(longest_ns) / 1e9;
  }

 private:
  Case dying_;
  int step_;
  Job job_;
  Kill kill_;
  std::int64_t killed_ns_ = 0;
};

// Runs several cases in turn, with their steps in random order, until the time is over.
TEST(ShrinkSteps, ADeathAtAnyStepIsSurvivedByTheOthers) {
  if (const std::string why = why_not_traced(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  constexpr std::size_t kAtOnce = 4;
  std::mt19937 random(std::random_device{}());
  const bool is_full = read_env("UNISONO_TEST_FULL").has_value();
  std::vector<std::pair<Case, int>> steps;
  double longest_s = 0;
  for (const Case& dying : kCases) {
    Trial whole(dying, kNoStep);
    longest_s = std::max(longest_s, whole.judge());
    EXPECT_GT(whole.steps(), kFewestSteps);
    for (int step = 1; step <= whole.steps(); ++step) {
      steps.emplace_back(dying, step);
    }
  }
  std::shuffle(steps.begin(), steps.end(), random);
  const auto end = std::chrono::steady_clock::now() + (is_full ? kFull : kQuick);
  std::size_t tried = 0;
  std::deque<Trial> trials;
  const auto judge_first = [&] {
    longest_s = std::max(longest_s, trials.front().judge());
    trials.pop_front();
  };
  for (; tried < steps.size() && std::chrono::steady_clock::now() < end && !HasFailure(); ++tried) {
    trials.emplace_back(steps[tried].first, steps[tried].second);
    if (trials.size() == kAtOnce) {
      judge_first();
    }
  }
  while (!trials.empty()) {
    judge_first();
  }
  EXPECT_GT(tried, 0U);
  std::printf("%zu of %zu steps tried: the others go on after at most %.2f s\n", tried,
              steps.size(), longest_s);
}

}  // namespace
}  // namespace unisono::testing
