// Worlds that have been set up, and their operations.
#include "bootstrap/local_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>

#include "bootstrap/process.h"
#include "bootstrap/testing.h"

namespace unisono::comm {
namespace {

using testing::as_processes;
using testing::as_threads;
using testing::Child;
using testing::expect_all_empty;
using testing::options_for;
using testing::unique_name;

std::vector<std::byte> pattern(int rank, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(rank) * 31 + i / 251);
  }
  return data;
}

// Rank r contributes sizes[(r + round) % count] bytes.
std::string exchange(LocalWorld& world) {
  constexpr std::size_t kSizes[] = {0, 1, 65'535, 65'536, 65'537, 300'000};
  for (std::size_t round = 0; round < std::size(kSizes); ++round) {
    const auto bytes_of = [&](int rank) {
      return kSizes[(static_cast<std::size_t>(rank) + round) % std::size(kSizes)];
    };
    const auto all = world.all_gather(pattern(world.rank(), bytes_of(world.rank())));
    if (all.size() != static_cast<std::size_t>(world.size())) {
      return "parts missing";
    }
    for (int rank = 0; rank < world.size(); ++rank) {
      if (all[static_cast<std::size_t>(rank)] != pattern(rank, bytes_of(rank))) {
        return "round " + std::to_string(round) + ": wrong part of rank " + std::to_string(rank);
      }
    }
  }
  return "";
}

// Every rank writes its number into the page that rank 0 shares.
std::string share_page(LocalWorld& world) {
  constexpr std::size_t kPage = 4096;
  UniqueFd own;
  if (world.rank() == 0) {
    own.reset(::memfd_create("test", MFD_CLOEXEC));
    if (::ftruncate(own.get(), kPage) != 0) {
      return "no memory";
    }
  }
  const UniqueFd shared(world.broadcast_fd(own.get()));
  if (!shared || shared.get() == own.get() || (::fcntl(shared.get(), F_GETFD) & FD_CLOEXEC) == 0) {
    return "not a descriptor of its own that closes on exec";
  }
  void* page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, shared.get(), 0);
  static_cast<char*>(page)[world.rank()] = static_cast<char>(world.rank() + 1);
  world.all_gather({});
  std::string result;
  for (int rank = 0; rank < world.size(); ++rank) {
    if (static_cast<char*>(page)[rank] != static_cast<char>(rank + 1)) {
      result += " rank " + std::to_string(rank) + " wrote elsewhere";
    }
  }
  ::munmap(page, kPage);
  return result;
}

std::string check_peers(const LocalWorld& world, bool threads) {
  for (int rank = 0; rank < world.size(); ++rank) {
    const Peer& peer = world.peer(rank);
    const bool here = threads || rank == world.rank();
    if (peer.same_process != here || (peer.pid == ::getpid()) != here || peer.pid <= 0) {
      return "wrong process of rank " + std::to_string(rank);
    }
    if (peer.cpus != allowed_cpus() || peer.cpus.empty()) {
      return "wrong CPUs of rank " + std::to_string(rank);
    }
  }
  return "";
}

std::string all_duties(const ConnectOptions& options, bool threads) {
  const auto world = LocalWorld::join(options);
  if (world->rank() != options.rank || world->size() != options.size) {
    return "wrong rank or size";
  }
  std::string result = check_peers(*world, threads) + exchange(*world) + share_page(*world);
  if (world->find_death()) {
    result += " somebody seems dead";
  }
  world->all_gather({});  // no rank leaves while others still look for deaths
  return result;
}

class Threads : public ::testing::TestWithParam<int> {};

TEST_P(Threads, DoAllDuties) {
  const std::string job = unique_name("threads");
  expect_all_empty(as_threads(
      GetParam(), [&](int rank) { return all_duties(options_for(rank, GetParam(), job), true); }));
}

INSTANTIATE_TEST_SUITE_P(LocalWorld, Threads, ::testing::Values(1, 2, 5, 9));

class Processes : public ::testing::TestWithParam<int> {};

TEST_P(Processes, DoAllDuties) {
  const std::string job = unique_name("processes");
  expect_all_empty(as_processes(
      GetParam(), [&](int rank) { return all_duties(options_for(rank, GetParam(), job), false); }));
}

INSTANTIATE_TEST_SUITE_P(LocalWorld, Processes, ::testing::Values(1, 2, 4, 7));

TEST(LocalWorld, SixtyFourThreadsJoin) {
  const std::string job = unique_name("many");
  expect_all_empty(as_threads(64, [&](int rank) {
    LocalWorld::join(options_for(rank, 64, job));
    return std::string();
  }));
}

TEST(LocalWorld, SixtyFourProcessesJoin) {
  const std::string job = unique_name("many");
  expect_all_empty(as_processes(64, [&](int rank) {
    LocalWorld::join(options_for(rank, 64, job));
    return std::string();
  }));
}

}  // namespace
}  // namespace unisono::comm
