// Deadlocks are proved while their ranks wait, on every rank; no other wait is reported as one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "comm/testing_ranks.h"
#include "diagnose/deadlock_policy.h"

namespace unisono::comm {
namespace {

constexpr int kWorlds = 60;                            // worlds of each kind
constexpr std::size_t kLong = std::size_t{16} << 20U;  // exceeds the room of every lane

class Setting {
 public:
  explicit Setting(const char* value) { ::setenv("UNISONO_DEADLOCK", value, 1); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() { ::unsetenv("UNISONO_DEADLOCK"); }
};

// All ranks of a world draw the same.
class Draw {
 public:
  explicit Draw(int seed) : random_(static_cast<unsigned>(seed)) {}
  int number(int from, int to) { return std::uniform_int_distribution(from, to)(random_); }
  std::vector<int> members(int ranks, int least) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random_);
    all.resize(static_cast<std::size_t>(number(least, ranks)));
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  std::mt19937 random_;
};

void call_any(Communicator& comm, int which) {
  std::vector<float> data(static_cast<std::size_t>(comm.size()) * 1000, 1.0F);
  if (which == 0) {
    comm.barrier();
  } else if (which == 1) {
    comm.all_reduce(data, sum);
  } else {
    std::vector<float> out(data.size());
    comm.all_to_all(std::span<const float>(data), std::span<float>(out));
  }
}

bool is_in(const std::vector<int>& members, int rank) {
  return std::find(members.begin(), members.end(), rank) != members.end();
}

// Collective over the world. A rank outside the group gets an empty communicator.
Communicator group_of(Communicator& world, const std::vector<int>& members) {
  return world.split(is_in(members, world.rank()) ? 0 : -1, world.rank());
}

// Each rank is in a group with the next one, and enters it before the group with the previous one.
void cross_groups(Communicator& world, Draw draw) {
  std::optional<Communicator> mine;
  std::optional<Communicator> others;
  for (int first = 0; first < world.size(); ++first) {
    const int second = (first + 1) % world.size();
    Communicator pair = group_of(world, {first, second});
    if (world.rank() == first) {
      mine = std::move(pair);
    } else if (world.rank() == second) {
      others = std::move(pair);
    }
  }
  const int which = draw.number(0, 2);
  call_any(*mine, which);
  call_any(*others, which);
}

void send_in_a_ring(Communicator& world, Draw draw) {
  const int step = draw.number(1, world.size() - 1);
  const int from = (world.rank() + world.size() - step) % world.size();
  std::vector<std::byte> data(kLong);
  if (draw.number(0, 1) == 0) {
    world.send(data.data(), data.size(), (world.rank() + step) % world.size(), 3);
  } else {
    world.send_async(data.data(), data.size(), (world.rank() + step) % world.size(), 3).wait();
  }
  world.recv(data.data(), data.size(), from, 3);
}

void receive_what_nobody_sent(Communicator& world, Draw draw) {
  const int receiver = draw.number(0, world.size() - 1);
  const int sender = (receiver + draw.number(1, world.size() - 1)) % world.size();
  int number = 7;
  if (world.rank() == sender) {
    world.send(&number, sizeof(number), receiver, 11);
  } else if (world.rank() == receiver) {
    world.recv(&number, sizeof(number), sender, 12);
  }
  call_any(world, draw.number(0, 2));
}

void miss_a_collective(Communicator& world, Draw draw) {
  const std::vector<int> members = draw.members(world.size(), 2);
  const int which = draw.number(0, 2);
  const int missing = members[static_cast<std::size_t>(draw.number(0, 1))];
  Communicator some = group_of(world, members);
  if (is_in(members, world.rank()) && world.rank() != missing) {
    call_any(some, which);
  }
  world.barrier();
}

using Program = void (*)(Communicator&, Draw);

// Returns the error of each rank.
std::vector<std::string> end_worlds(int seed, int ranks, Program program,
                                    const std::function<bool()>& interrupted = nullptr) {
  const std::string job = testing::unique_name("deadlock");
  return testing::as_threads(ranks, [&](int rank) {
    ConnectOptions options = testing::options_for(rank, ranks, job);
    options.interrupted = interrupted;
    options.timeout_ms = 120'000;  // bounds a hang
    Communicator world = Communicator::connect(options);
    program(world, Draw(seed));
    return std::string("no error");
  });
}

void expect_all_told(Program program, int least_ranks, const std::string& words) {
  const Setting setting("abort,after_ms=20");
  for (int seed = 0; seed < kWorlds; ++seed) {
    const int ranks = least_ranks + seed % 4;
    for (const std::string& said : end_worlds(seed, ranks, program)) {
      EXPECT_TRUE(said.starts_with("mismatch: ")) << "seed " << seed << ": " << said;
      EXPECT_NE(said.find("can never continue\nranks wait for each other"), std::string::npos)
          << "seed " << seed << ": " << said;
      EXPECT_NE(said.find(words), std::string::npos) << "seed " << seed << ": " << said;
    }
  }
}

TEST(Deadlock, OfCrossedGroupsIsTold) {
  expect_all_told(cross_groups, 3, "make the calls of all groups in one order on all ranks");
}

TEST(Deadlock, OfSendsInARingIsTold) {
  expect_all_told(send_in_a_ring, 2, "in a send, tag 3, of a group");
}

TEST(Deadlock, OfATagThatNobodySentIsTold) {
  expect_all_told(receive_what_nobody_sent, 2, "in a recv, tag 12, of a group");
}

// All other ranks wait for the receiving rank.
void receive_from_itself(Communicator& world, Draw draw) {
  if (world.rank() == draw.number(0, world.size() - 1)) {
    int number = 0;
    world.recv(&number, sizeof(number), world.rank(), 12);
  }
  world.barrier();
}

TEST(Deadlock, OfARankWithItselfIsTold) {
  const Setting setting("abort,after_ms=20");
  for (int ranks = 1; ranks < 4; ++ranks) {
    for (const std::string& said : end_worlds(ranks, ranks, receive_from_itself)) {
      EXPECT_NE(said.find("can never continue\na rank waits for itself:"), std::string::npos)
          << said;
    }
  }
}

TEST(Deadlock, OfAMissingCollectiveIsTold) {
  expect_all_told(miss_a_collective, 2, "in barrier #");
}

// Reads the output of the ranks until each has reported, and then ends their waits.
void expect_each_tells(Program program) {
  constexpr int kRanks = 4;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  const UniqueFd before(::dup(STDERR_FILENO));
  ::dup2(in.get(), STDERR_FILENO);
  std::atomic<int> told = 0;
  std::string said;
  const std::string word = ": deadlock: ";
  std::thread reader([&] {
    std::array<char, 4096> buffer;
    for (ssize_t got = 0; (got = ::read(out.get(), buffer.data(), buffer.size())) > 0;) {
      said.append(buffer.data(), static_cast<std::size_t>(got));
      int ranks = 0;
      for (int rank = 0; rank < kRanks; ++rank) {
        const std::string begin = "unisono: rank " + std::to_string(rank) + word;
        ranks += said.find(begin) != std::string::npos ? 1 : 0;
      }
      told = ranks;
    }
  });
  const auto errors = end_worlds(1, kRanks, program, [&] { return told == kRanks; });
  ::dup2(before.get(), STDERR_FILENO);
  in.reset();
  reader.join();
  for (const std::string& error : errors) {
    EXPECT_TRUE(error.starts_with("aborted: ")) << error;
  }
  EXPECT_EQ(told, kRanks) << said;
  int times = 0;
  for (std::size_t at = 0; (at = said.find(word, at)) != std::string::npos; at += word.size()) {
    ++times;
  }
  EXPECT_EQ(times, kRanks) << "once each: " << said;
}

TEST(Deadlock, IsToldByEachRankWhileItsCallWaitsOn) {
  const Setting setting("tell,after_ms=20");
  for (const Program program :
       {cross_groups, send_in_a_ring, receive_what_nobody_sent, miss_a_collective}) {
    expect_each_tells(program);
  }
}

// A correct program whose ranks wait long, compute while an operation is pending, and call several
// groups, for longer than any single wait.
void work_rightly(Communicator& world, Draw draw) {
  const int size = world.size();
  const std::vector<int> members = draw.members(size, 1);
  const bool is_member = is_in(members, world.rank());
  Communicator some = group_of(world, members);
  std::vector<std::byte> data(std::size_t{1} << 20U);
  std::vector<std::byte> other(data.size());
  std::vector<float> sums(5000, 1.0F);
  std::vector<float> others(5000, 1.0F);
  for (int round = 0; round < 6; ++round) {
    const int late = draw.number(0, size - 1);
    const int pause_us = draw.number(0, 8000);
    const int what = draw.number(0, 6);
    const int step = draw.number(0, size - 1);
    const int which = draw.number(0, 2);
    if (world.rank() == late) {
      ::usleep(static_cast<useconds_t>(pause_us));
    }
    const int to = (world.rank() + step) % size;
    const int from = (world.rank() + size - step) % size;
    if (what == 0) {
      world.send_recv(data.data(), data.size(), to, other.data(), other.size(), from, round);
    } else if (what == 1) {  // a ring of sends whose receives are pending
      Request coming = world.recv_async(other.data(), other.size(), from, round);
      world.send(data.data(), data.size(), to, round);
      coming.wait();
    } else if (what == 2) {
      Request pending = world.all_reduce_async(sums, sum);
      if (is_member) {
        call_any(some, which);
      }
      pending.wait();
    } else if (what == 3) {
      Request pending = world.all_reduce_async(sums, sum);
      if (world.rank() == late) {
        ::usleep(static_cast<useconds_t>(pause_us));
      }
      if (is_member) {
        some.all_reduce_async(others, sum).wait();
      }
      pending.wait();
    } else if (what == 4) {
      if (is_member) {
        call_any(some, which);
      }
      call_any(world, which);
    } else if (what == 5) {
      world.broadcast(sums, late);
      if (is_member) {
        call_any(some, which);
      }
    } else if (world.rank() == late) {  // once around, long and short
      world.send(data.data(), data.size(), (late + 1) % size, round);
      world.recv(other.data(), 1, (late + size - 1) % size, round);
    } else {
      const bool is_next = world.rank() == (late + 1) % size;
      const int next = (world.rank() + 1) % size;
      world.recv(other.data(), is_next ? data.size() : 1, (next + size - 2) % size, round);
      world.send(data.data(), 1, next, round);
    }
  }
}

// With --gtest_repeat, each repetition draws other programs.
TEST(Deadlock, IsNotSeenWhereRanksOnlyWaitLong) {
  static int first = 0;
  const Setting setting("abort,after_ms=1");
  const int end = first + kWorlds;
  for (int seed = std::exchange(first, end); seed < end; ++seed) {
    for (const std::string& said : end_worlds(seed, 2 + seed % 4, work_rightly)) {
      EXPECT_EQ(said, "no error") << "seed " << seed;
    }
  }
}

// A thread of rank 0 waits for rank 1 in a group, while its first thread computes before it sends
// to rank 1, which waits for this message.
TEST(Deadlock, IsNotSeenWhereAnotherThreadStillMakesTheCall) {
  const Setting setting("abort,after_ms=5");
  const std::string job = testing::unique_name("threads");
  std::atomic<int> looks = 0;
  const auto errors = testing::as_threads(2, [&](int rank) {
    ConnectOptions options = testing::options_for(rank, 2, job);
    options.timeout_ms = 120'000;  // bounds a hang
    options.interrupted = [&looks, rank] {
      looks += rank;
      return false;
    };
    Communicator world = Communicator::connect(options);
    Communicator pair = world.split(0, rank);
    int word = 1;
    if (rank == 0) {
      const std::jthread other([&pair] {
        try {
          pair.barrier();
        } catch (const Error&) {
          return;  // send() raises the same
        }
      });
      while (looks < 10 && !world.failure()) {
        std::this_thread::yield();
      }
      world.send(&word, sizeof word, 1);
    } else {
      world.recv(&word, sizeof word, 0);
      pair.barrier();
    }
    return std::string("no error");
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error, "no error");
  }
}

TEST(DeadlockPolicy, IsRead) {
  EXPECT_EQ(parse_deadlock_policy("").action, DeadlockPolicy::Action::tell);
  EXPECT_EQ(parse_deadlock_policy("").after_ms, 1000);
  EXPECT_EQ(parse_deadlock_policy("abort").action, DeadlockPolicy::Action::abort);
  EXPECT_EQ(parse_deadlock_policy("off,after_ms=7").after_ms, 7);
  for (const char* wrong : {"yes", "abort,after_ms=0", "abort,after_ms=x", "after=3", "tell,,x",
                            "abort,", "tell,abort"}) {
    EXPECT_THROW(parse_deadlock_policy(wrong), Error) << wrong;
  }
}

}  // namespace
}  // namespace unisono::comm
