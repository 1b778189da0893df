// Jobs that hang, observed from outside: in the shared memory of ranks that run here, and as data.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/testing.h"
#include "top/jobs.h"
#include "top/why.h"
#include "unisono/communicator.hpp"
#include "unisono/parallel/experts.hpp"

namespace unisono::cli {
namespace {

// Ranks as threads of this process, which may end with an error.
class Ranks {
 public:
  template <typename Body>
  Ranks(int ranks, const Body& body) : job_(comm::testing::unique_name("hang")) {
    for (int rank = 0; rank < ranks; ++rank) {
      threads_.emplace_back([this, rank, ranks, body] {
        ConnectOptions options = comm::testing::options_for(rank, ranks, job_);
        options.timeout_ms = 60'000;
        try {
          Communicator comm = Communicator::connect(options);
          body(comm);
        } catch (const Error& error) {
          errors_ += error.code() == ErrorCode::aborted ? 0 : 1;
        }
      });
    }
  }
  ~Ranks() {
    for (std::thread& thread : threads_) {
      thread.join();
    }
    EXPECT_EQ(errors_, 0);
  }
  // Returns the expected finding; if it does not appear within ten seconds, the last other finding,
  // because ranks that have just begun to wait cause other findings first.
  Finding wait_for(const std::function<bool(const Finding&)>& is_it) const {
    Finding last;
    for (int tries = 0; tries < 1000; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      for (const Job& job : find_jobs()) {
        if (job.world.job != job_) {
          continue;
        }
        for (const Finding& finding : explain_hang(job, comm::flight_clock_ns())) {
          if (is_it(finding)) {
            return finding;
          }
          last = finding;
        }
      }
    }
    return last;
  }

  // Waits up to ten seconds for a condition.
  bool nobody_waits() const {
    for (int tries = 0; tries < 1000; ++tries) {
      for (const Job& job : find_jobs()) {
        if (job.world.job == job_ && explain_hang(job, comm::flight_clock_ns()).empty()) {
          return true;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

 private:
  std::string job_;
  std::atomic<int> errors_ = 0;
  std::vector<std::thread> threads_;
};

TEST(LiveHang, NamesTheRankThatHasNotCalled) {
  std::atomic<bool> seen = false;
  Finding finding;
  {
    const Ranks ranks(3, [&seen](Communicator& comm) {
      std::vector<int> data(10);
      comm.all_reduce(std::span(data), sum);
      while (comm.rank() == 2 && !seen) {
        usleep(1000);
      }
      comm.all_reduce(std::span(data), max);
    });
    finding = ranks.wait_for([](const Finding& one) {
      return one.waiting.size() == 2 && one.text.english.find("all_reduce #2") != std::string::npos;
    });
    seen = true;
  }
  EXPECT_EQ(finding.kind, "never called");
  EXPECT_EQ(finding.ranks, std::vector<int>{2});
  EXPECT_EQ(finding.waiting, (std::vector<int>{0, 1}));
  EXPECT_NE(finding.text.english.find("has not called all_reduce #2"), std::string::npos)
      << finding.text.english;
  EXPECT_GT(finding.waited_s, 0);
}

TEST(LiveHang, FindsRanksThatReceiveFromEachOther) {
  Finding finding;
  {
    Communicator* end = nullptr;
    std::atomic<bool> ready = false;
    std::atomic<bool> ended = false;
    const Ranks ranks(2, [&](Communicator& comm) {
      if (comm.rank() == 0) {
        end = &comm;
        ready = true;
      }
      std::vector<std::byte> data(100'000);
      try {
        comm.recv(data.data(), data.size(), 1 - comm.rank(), 7);
      } catch (const Error&) {
        while (!ended) {  // abort() still uses the communicator
          usleep(1000);
        }
        throw;
      }
    });
    finding = ranks.wait_for([](const Finding& one) { return one.kind == "deadlock"; });
    while (!ready) {
      usleep(1000);
    }
    end->abort("the test has seen enough");
    EXPECT_TRUE(ranks.nobody_waits()) << "what has failed waits no more";
    ended = true;
  }
  EXPECT_EQ(finding.kind, "deadlock");
  EXPECT_EQ(finding.ranks.size(), 2U);
}

TEST(LiveHang, LooksAgainIntoAProcessThatHadNoJob) {
  std::atomic<bool> seen = false;
  const Ranks ranks(1, [&seen](Communicator&) {
    while (!seen) {
      usleep(1000);
    }
  });
  EXPECT_TRUE(ranks.nobody_waits());
  const std::string mine = std::to_string(getpid());
  Unrelated unrelated;
  unrelated.processes[getpid()] = std::chrono::steady_clock::now();
  EXPECT_TRUE(matching_jobs(mine, &unrelated).empty());
  unrelated.processes[getpid()] -= Unrelated::kLookAgain;
  EXPECT_FALSE(matching_jobs(mine, &unrelated).empty());
  EXPECT_FALSE(unrelated.processes.contains(getpid()));
  seen = true;
}

// Its members have different numbers in the group and in the world.
TEST(LiveHang, NamesTheRankOfTheWorldForAWaitInAGroup) {
  std::atomic<bool> seen = false;
  Finding finding;
  {
    const Ranks ranks(3, [&seen](Communicator& comm) {
      Communicator reversed = comm.split(0, -comm.rank());
      int word = 0;
      while (comm.rank() == 2 && !seen) {
        usleep(1000);
      }
      if (comm.rank() == 2) {
        reversed.send(&word, sizeof(word), 2, 5);
      } else if (comm.rank() == 0) {
        reversed.recv(&word, sizeof(word), 0, 5);
      }
    });
    finding = ranks.wait_for([](const Finding& one) {
      return one.waiting.size() == 1 &&
             one.text.english.find("the send with tag 5") != std::string::npos;
    });
    seen = true;
  }
  EXPECT_EQ(finding.kind, "never called");
  EXPECT_EQ(finding.ranks, std::vector<int>{2});
  EXPECT_EQ(finding.waiting, std::vector<int>{0});
}

// Ranks as processes, which report that they are ready, and then wait until this object is
// destroyed.
class Processes {
 public:
  // `body` gets a function to call when it is ready. It returns an empty text, or why the test is
  // impossible here.
  using Body = std::function<std::string(int rank, const std::function<void()>& ready)>;
  Processes(int ranks, const Body& body) : ranks_(ranks) {
    EXPECT_EQ(::pipe(ready_) + ::pipe(go_), 0);
    for (int rank = 0; rank < ranks; ++rank) {
      children_.emplace_back(
          [this, body](int mine) {
            ::close(go_[1]);
            return body(mine, [this] {
              char byte = 'r';
              static_cast<void>(!::write(ready_[1], &byte, 1));
              static_cast<void>(!::read(go_[0], &byte, 1));  // until the test has observed enough
            });
          },
          rank);
    }
    ::close(ready_[1]);
  }
  ~Processes() {
    ::close(go_[1]);
    for (comm::testing::Child& child : children_) {
      EXPECT_EQ(child.result(), "");
    }
    ::close(ready_[0]);
    ::close(go_[0]);
  }
  bool all_ready() const {
    char byte = 0;
    for (int i = 0; i < ranks_; ++i) {
      if (::read(ready_[0], &byte, 1) != 1) {
        return false;
      }
    }
    return true;
  }

 private:
  int ranks_;
  int ready_[2] = {-1, -1};
  int go_[2] = {-1, -1};
  std::vector<comm::testing::Child> children_;
};

// Returns the observed job; one without ranks if nothing is observed.
Job job_named(const std::string& name) {
  for (Job& job : find_jobs()) {
    if (job.world.job == name) {
      return std::move(job);
    }
  }
  return {};
}

TEST(LiveJobs, HaveTheGroupsOfTheirOwnWorld) {
  const std::string first = comm::testing::unique_name("first");
  const std::string second = comm::testing::unique_name("second");
  const Processes ranks(2, [&](int rank, const std::function<void()>& ready) {
    Communicator a = Communicator::connect(comm::testing::options_for(rank, 2, first));
    Communicator b = Communicator::connect(comm::testing::options_for(1 - rank, 2, second));
    const Communicator of_a = a.split(0, 0);
    const Communicator of_b = b.split(0, 0);
    const Communicator also_of_b = b.split(rank, 0);
    ready();
    return "";
  });
  ASSERT_TRUE(ranks.all_ready());
  EXPECT_EQ(job_named(first).groups.size(), 1U);
  EXPECT_EQ(job_named(second).groups.size(), 3U);
}

// The caller's other work has its own label.
TEST(LiveJobs, NameTheLoadThatAnAsynchronousCallWaitsFor) {
  const std::string name = comm::testing::unique_name("async");
  std::atomic<bool> seen = false;
  std::thread looking([&] {
    const std::string wanted =
        "layer 7: rank 1 gets most rows, for expert 3 (over 4 times the mean)";
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    bool found = false;
    while (!found && std::chrono::steady_clock::now() < limit) {
      const Job job = job_named(name);
      for (const comm::ObservedGroup& group : job.groups) {
        found = found || std::any_of(group.ranks.begin(), group.ranks.end(), [&](const auto& rank) {
                  return rank.world_rank == 0 && rank.waiting && rank.label == wanted &&
                         job.world.labels[0] == "attention";
                });
      }
    }
    EXPECT_TRUE(found);
    seen = true;
  });
  const auto said = comm::testing::as_threads(2, [&](int rank) {
    Communicator comm = Communicator::connect(comm::testing::options_for(rank, 2, name));
    ExpertExchange exchange(comm, {.experts = 4, .k = 1});
    const std::vector<std::int32_t> chosen(16, 3);
    const Routing routing = exchange.route(std::span(chosen));
    std::vector<std::int32_t> rows(routing.rows());
    const Payload payload{.in = std::as_bytes(std::span(chosen)),
                          .out = std::as_writable_bytes(std::span(rows)),
                          .row_bytes = sizeof(std::int32_t)};
    exchange.dispatch_async(routing, {payload}).wait();
    while (rank == 1 && !seen) {
      usleep(1000);
    }
    comm.label("layer 7");
    Request request = exchange.dispatch_async(routing, {payload});
    comm.label("attention");
    request.wait();
    return std::string();
  });
  looking.join();
  EXPECT_EQ(said, std::vector<std::string>(2));
}

// In a container, a process has a different number.
TEST(LiveJobs, HaveTheProcessesOfContainers) {
  const std::string name = comm::testing::unique_name("contained");
  const Processes ranks(1, [&](int rank, const std::function<void()>& ready) {
    if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
      ready();
      return std::string();
    }
    comm::testing::Child contained(
        [&](int mine) {
          const Communicator comm =
              Communicator::connect(comm::testing::options_for(mine, 1, name));
          ready();
          return "";
        },
        rank);
    return contained.result();
  });
  ASSERT_TRUE(ranks.all_ready());
  const Job job = job_named(name);
  if (job.world.pids.empty()) {
    GTEST_SKIP()
        << "this user may make no namespace of processes: run it as root, or where unprivileged "
           "user namespaces are allowed (sysctl kernel.unprivileged_userns_clone=1)";
  }
  EXPECT_EQ(job.world.pids, std::vector<int>{1});
  ASSERT_TRUE(job.processes[0]);
  EXPECT_GT(pid_of(job, 0), 1);
  EXPECT_EQ(::kill(pid_of(job, 0), 0), 0);
}

}  // namespace
}  // namespace unisono::cli
