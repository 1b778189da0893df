// Connections between ranks of different processes: descriptors, deaths, farewells and forks.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstring>

#include "bootstrap/testing.h"

namespace unisono::comm {
namespace {

using testing::as_processes;
using testing::as_threads;
using testing::Child;
using testing::expect_all_empty;
using testing::options_for;
using testing::unique_name;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::span<const std::byte> as_note(const int& value) {
  return std::as_bytes(std::span(&value, 1));
}

int from_note(const FdNote& note) {
  int value = -1;
  std::memcpy(&value, note.note.data(), std::min(note.note.size(), sizeof(value)));
  return value;
}

FdNote await_note(LocalWorld& world) {
  for (;;) {
    if (auto note = world.receive_fd()) {
      return std::move(*note);
    }
    std::this_thread::yield();
  }
}

Death await_death(LocalWorld& world) {
  for (;;) {
    if (auto death = world.find_death()) {
      return *death;
    }
    std::this_thread::yield();  // there are more ranks than cores, and the victim needs one to die
  }
}

// Polls for a state that has no event.
bool await(const std::function<bool()>& condition) {
  for (const auto start = Clock::now(); !condition();) {
    if (ms_since(start) > 5000) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

// Rank r sends two notes to each rank of another process: first the reading end of a pipe that
// holds r, then a note without a descriptor.
std::string pass_pipes(LocalWorld& world) {
  int expected = 0;
  for (int to = 0; to < world.size(); ++to) {
    if (world.peer(to).same_process) {
      continue;
    }
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return "no pipe";
    }
    const UniqueFd out(ends[0]);
    const UniqueFd in(ends[1]);
    const int rank = world.rank();
    if (::write(in.get(), &rank, sizeof(rank)) != sizeof(rank) ||
        !world.send_fd(to, as_note(to), out.get()) || !world.send_fd(to, as_note(rank), -1)) {
      return "not sent";
    }
    expected += 2;
  }
  std::vector<int> seen(static_cast<std::size_t>(world.size()));
  for (; expected > 0; --expected) {
    const FdNote note = await_note(world);
    const UniqueFd out(note.fd);
    const bool first = seen[static_cast<std::size_t>(note.from)]++ == 0;
    int rank = -1;
    if (first != static_cast<bool>(out) ||
        (first && (::read(out.get(), &rank, sizeof(rank)) != sizeof(rank) || rank != note.from ||
                   (::fcntl(out.get(), F_GETFD) & FD_CLOEXEC) == 0))) {
      return "wrong descriptor from rank " + std::to_string(note.from);
    }
    if (from_note(note) != (first ? world.rank() : note.from) || note.note.size() != sizeof(int)) {
      return "wrong note from rank " + std::to_string(note.from);
    }
  }
  world.all_gather({});
  return world.receive_fd() ? "one note too many" : "";
}

TEST(ConnectionMesh, PassesDescriptors) {
  const std::string job = unique_name("pipes");
  expect_all_empty(as_processes(4, [&](int rank) {
    const auto world = LocalWorld::join(options_for(rank, 4, job));
    return pass_pipes(*world);
  }));
}

TEST(ConnectionMesh, ThreadsAndProcessesMixed) {
  const std::string job = unique_name("mixed");
  expect_all_empty(as_processes(2, [&](int process) {
    std::string all;
    for (const std::string& text : as_threads(3, [&](int thread) -> std::string {
           const int rank = 2 * thread + process;
           const auto world = LocalWorld::join(options_for(rank, 6, job));
           for (int peer = 0; peer < 6; ++peer) {
             if (world->peer(peer).same_process != (peer % 2 == process)) {
               return "wrong process of rank " + std::to_string(peer);
             }
           }
           return pass_pipes(*world);
         })) {
      all += text;
    }
    return all;
  }));
}

TEST(ConnectionMesh, FullSocketIsNoError) {
  const std::string job = unique_name("full");
  expect_all_empty(as_processes(2, [&](int rank) -> std::string {
    const auto world = LocalWorld::join(options_for(rank, 2, job));
    int sent = 0;
    while (rank == 0 && world->send_fd(1, as_note(sent), 0)) {
      ++sent;
    }
    const auto counts = world->all_gather(as_note(sent));
    std::memcpy(&sent, counts[0].data(), sizeof(sent));
    for (int i = 0; rank == 1 && i < sent; ++i) {
      const FdNote note = await_note(*world);
      const UniqueFd fd(note.fd);
      if (from_note(note) != i) {
        return "out of order";
      }
    }
    world->all_gather({});
    const bool recovered = rank == 1 || world->send_fd(1, {}, -1);
    world->all_gather({});
    return sent > 10 && recovered ? "" : "did not recover";
  }));
}

TEST(ConnectionMesh, WrongTargetsAreUsageErrors) {
  const std::string job = unique_name("targets");
  const auto results = as_threads(2, [&](int rank) {
    const auto world = LocalWorld::join(options_for(rank, 2, job));
    world->send_fd(rank == 0 ? 1 : 2, {}, -1);
    return std::string("sent");
  });
  EXPECT_EQ(results[0].rfind("usage: rank 1 cannot be sent a note of 0 bytes", 0), 0U)
      << results[0];
  EXPECT_EQ(results[1].rfind("usage: rank 2 cannot be sent a note of 0 bytes", 0), 0U)
      << results[1];
}

using Stamp = std::atomic<Clock::rep>;

// Rank 0 kills rank 2. Returns the deaths that the others notice, and after how many ms.
std::string see_rank_two_die(LocalWorld& world, Stamp& killed_at) {
  if (world.rank() == 0) {
    killed_at = Clock::now().time_since_epoch().count();
    ::kill(world.peer(2).pid, SIGKILL);
  }
  const Death death = await_death(world);
  const auto ns = Clock::now().time_since_epoch().count() - killed_at;
  const auto again = world.find_death();
  if (death.rank != 2 || death.how != "killed by SIGKILL" || !again || again->rank != 2) {
    return "rank " + std::to_string(death.rank) + " " + death.how;
  }
  // The parent reaps rank 2 only after rank 1, so no rank may end before all have seen how rank 2
  // died.
  for (const int to : {0, 1, 3}) {
    if (to != world.rank()) {
      world.send_fd(to, {}, -1);
    }
  }
  await_note(world);
  await_note(world);
  const std::string text = testing::run_one(
      [&](int) {
        world.all_gather({});
        return std::string("gathered");
      },
      0);
  const bool named = text.rfind("peer_lost: rank 2 closed its connection", 0) == 0;
  return named ? std::to_string(static_cast<double>(ns) / 1e6) : text;
}

TEST(ConnectionMesh, KilledRankIsFoundSoonByAll) {
  void* page =
      ::mmap(nullptr, sizeof(Stamp), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* killed_at = new (page) Stamp(0);
  const std::string job = unique_name("killed");
  const auto results = as_processes(4, [&](int rank) -> std::string {
    const auto world = LocalWorld::join(options_for(rank, 4, job));
    world->all_gather({});
    if (rank == 2) {
      ::pause();
    }
    return see_rank_two_die(*world, *killed_at);
  });
  ::munmap(page, sizeof(Stamp));
  for (const int rank : {0, 1, 3}) {
    const std::string& text = results[static_cast<std::size_t>(rank)];
    char* end = nullptr;
    const double ms = std::strtod(text.c_str(), &end);
    ASSERT_TRUE(end != text.c_str() && *end == '\0') << text;
    // Far more than the needed time, which kill_test measures, and far less than keepalive would
    // take.
    EXPECT_LT(ms, 20'000);
  }
}

// The child of a fork keeps the connections open; even so, the others detect the end of the
// process.
TEST(ConnectionMesh, DeathIsFoundWhileAChildHoldsTheConnections) {
  const std::string job = unique_name("orphan");
  const testing::SharedEvent found;
  auto results = as_processes(2, [&](int rank) -> std::string {
    const auto world = LocalWorld::join(options_for(rank, 2, job));
    world->all_gather({});
    if (rank == 1) {
      if (::fork() == 0) {
        found.wait();
        _exit(0);
      }
      _exit(3);
    }
    const auto start = Clock::now();
    const Death death = await_death(*world);
    found.happen();
    return std::to_string(death.rank) + " " + death.how +
           (ms_since(start) < 50'000 ? "" : ", found only when the child ended");
  });
  EXPECT_EQ(results[0], "1 exited with code 3");
}

TEST(ConnectionMesh, LeavingInOrderIsNoDeath) {
  const std::string job = unique_name("leave");
  auto results = as_processes(3, [&](int rank) -> std::string {
    auto world = LocalWorld::join(options_for(rank, 3, job));
    world->all_gather({});
    if (rank == 1) {
      world->send_fd(0, as_note(7), -1);
      return "";
    }
    if (!await([&] { return world->find_death() || world->has_left(1); }) || world->find_death()) {
      return "rank 1 was taken for dead";
    }
    if (world->has_left(2 - rank)) {
      return "the other survivor seems gone";
    }
    if (rank == 0 && from_note(await_note(*world)) != 7) {
      return "its last note is lost";
    }
    // A rank that left properly does not count as dead when it ends, but another rank does.
    if (rank == 2) {
      await_note(*world);
      ::raise(SIGKILL);
    }
    world->send_fd(2, {}, -1);
    const Death death = await_death(*world);
    return death.rank == 2 ? "" : "rank " + std::to_string(death.rank) + " " + death.how;
  });
  results.pop_back();  // rank 2 died on purpose
  expect_all_empty(results);
}

TEST(ConnectionMesh, ChildOfForkDisturbsNobody) {
  const std::string job = unique_name("fork");
  expect_all_empty(as_processes(2, [&](int rank) -> std::string {
    auto world = LocalWorld::join(options_for(rank, 2, job));
    if (rank == 1) {
      Child child(
          [&](int) -> std::string {
            std::string text = testing::run_one(
                [&](int) {
                  world->all_gather({});
                  return std::string();
                },
                0);
            text += testing::run_one(
                [&](int) {
                  world->send_fd(0, {}, -1);
                  return std::string();
                },
                0);
            world.reset();
            return text;
          },
          0);
      const std::string said = child.result();
      if (said.rfind("usage: a child of fork()", 0) != 0 ||
          said.rfind("usage: a child of fork()") == 0) {
        return said;
      }
    }
    world->all_gather({});
    const std::string passed = pass_pipes(*world);
    if (world->find_death() || world->has_left(1 - rank)) {
      return "the peer seems gone";
    }
    world->all_gather({});
    return passed;
  }));
}

TEST(ConnectionMesh, LookingForDeathsIsCheapEvenWithNotesWaiting) {
  const std::string job = unique_name("cheap");
  expect_all_empty(as_processes(8, [&](int rank) -> std::string {
    const auto world = LocalWorld::join(options_for(rank, 8, job));
    for (int to = 0; to < 8; ++to) {
      if (to != rank && !world->send_fd(to, as_note(rank), 0)) {
        return "not sent";
      }
    }
    world->all_gather({});
    double us = 1e9;
    for (int round = 0; round < 5 && rank == 0; ++round) {
      constexpr int kCalls = 20'000;
      const auto start = Clock::now();
      for (int i = 0; i < kCalls; ++i) {
        if (world->find_death()) {
          return "somebody seems dead";
        }
      }
      us = std::min(us, ms_since(start) * 1000 / kCalls);
    }
    world->all_gather({});
    return rank == 0 && us > 3 ? std::to_string(us) + " us a call" : "";
  }));
}

int open_descriptors() {
  int count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    ++count;
  }
  ::closedir(folder);
  return count;
}

// Every round has the same job name, so a quick rank must not connect to rank 0 of the last round.
TEST(ConnectionMesh, ManyJoinsLeakNoDescriptor) {
  const std::string job = unique_name("leak");
  const int before = open_descriptors();
  expect_all_empty(as_threads(4, [&](int rank) {
    for (int round = 0; round < 200; ++round) {
      LocalWorld::join(options_for(rank, 4, job));
    }
    return std::string();
  }));
  EXPECT_EQ(open_descriptors(), before);
  expect_all_empty(as_processes(3, [&](int rank) -> std::string {
    const int at_first = open_descriptors();
    for (int round = 0; round < 200; ++round) {
      LocalWorld::join(options_for(rank, 3, job));
    }
    const int leaked = open_descriptors() - at_first;
    return leaked == 0 ? "" : std::to_string(leaked) + " descriptors leaked";
  }));
}

}  // namespace
}  // namespace unisono::comm
