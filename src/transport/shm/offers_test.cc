// Offers of a process that ends, or frees its memory, while another one reads them.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "transport/shm/shm_transport.h"
#include "transport/shm/testing.h"

namespace unisono::shm {
namespace {

constexpr std::size_t kBytes = std::size_t{6} << 20;
constexpr int kOfferer = 0;
constexpr int kReader = 1;

enum class End { killed, exits, gives_up };

// The memory of two ranks, shared by a fork.
struct World {
  TestLayout layout{2};
  UniqueFd file = create_memory("offers", layout.bytes);
  Mapping memory{file.get(), layout.bytes};
  UniqueFd signs_file = create_memory("signs", sizeof(std::atomic<int>));
  Mapping signs{signs_file.get(), sizeof(std::atomic<int>)};

  std::atomic<int>& sign() const { return *reinterpret_cast<std::atomic<int>*>(signs.data()); }
};

// One of the ranks in its own process.
struct Rank {
  Rank(const World& world, int rank, const std::vector<int>& pids)
      : event_counts(world.memory.data(), 2),
        pool(world.memory.data() + world.layout.pools +
             static_cast<std::size_t>(rank) * kPoolBytes),
        regions(
            rank, [](std::uint32_t, std::size_t, int) { return true; }, [] {}),
        host{.rank = rank,
             .world = world.memory.data(),
             .event_counts = &event_counts,
             .pool = &pool,
             .regions = &regions,
             .registry = &registry,
             .pools = {world.memory.data() + world.layout.pools,
                       world.memory.data() + world.layout.pools + kPoolBytes},
             .same_process = {rank == 0, rank == 1},
             .pids = pids,
             .can_fetch = {true, true}},
        transport(host, world.memory.data() + world.layout.lanes, {0, 1}, rank, 0) {}

  EventCounts event_counts;
  Pool pool;
  Regions regions;
  TransportRegistry registry;
  ShmContext host;
  ShmTransport transport;
};

// The offered data.
const std::vector<std::byte>& pattern() {
  static const std::vector<std::byte> bytes = [] {
    std::vector<std::byte> made(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) {
      made[i] = static_cast<std::byte>(i * 7 + i / 4096);
    }
    return made;
  }();
  return bytes;
}

void wait_us(int us) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Offers data, and ends after a delay that begins when the reader starts.
[[noreturn]] void offer_and_end(const World& world, const std::vector<int>& pids, End end,
                                int after_us) {
  Rank mine(world, kOfferer, pids);
  void* memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(memory, pattern().data(), kBytes);
  if (!mine.transport.offer(kReader, memory, kBytes, 5)) {
    _exit(1);
  }
  while (world.sign() == 0) {
    ::usleep(10);
  }
  wait_us(after_us);
  if (end == End::exits) {
    _exit(0);
  }
  if (end == End::killed) {
    ::raise(SIGKILL);
  }
  ::munmap(memory, kBytes);
  world.sign() = 2;
  for (;;) {
    ::pause();
  }
}

// Fetches in pieces until all data has arrived, or until a process that has ended delivers nothing
// more. The fetched data must be the offered data. With `waits`, the process ends when half of the
// data has arrived.
std::size_t fetch_until_it_ends(End end, std::size_t piece, int after_us, bool waits) {
  pattern();  // made once, for all
  const World world;
  std::vector<int> pids = {0, ::getpid()};
  const pid_t offerer = ::fork();
  if (offerer == 0) {
    pids[kOfferer] = ::getpid();
    offer_and_end(world, pids, end, after_us);
  }
  pids[kOfferer] = offerer;
  Rank mine(world, kReader, pids);
  transport::Incoming message;
  while (!mine.transport.peek(kOfferer, message)) {
    ::usleep(10);
  }
  EXPECT_TRUE(message.offered());
  EXPECT_EQ(message.bytes, kBytes);
  std::vector<std::byte> got(kBytes);
  world.sign() = waits ? 0 : 1;
  std::size_t done = 0;
  bool ended = false;
  const auto has_ended = [&] {
    siginfo_t info{};
    return end == End::gives_up ? world.sign() == 2
                                : ::waitid(P_PID, static_cast<id_t>(offerer), &info,
                                           WEXITED | WNOHANG | WNOWAIT) == 0 &&
                                      info.si_pid == offerer;
  };
  while (done < kBytes && !ended) {
    if (waits && done >= kBytes / 2) {
      world.sign() = 1;
      while (!has_ended()) {
        ::usleep(10);
      }
    }
    // Read before the fetch, because a process that ends after this line may still deliver data.
    ended = has_ended();
    const std::size_t more =
        mine.transport.fetch(kOfferer, done, got.data() + done, std::min(piece, kBytes - done));
    EXPECT_TRUE(!ended || more == 0) << more << " bytes of memory that is no more";
    done += more;
  }
  EXPECT_EQ(std::memcmp(got.data(), pattern().data(), done), 0) << "of " << done << " bytes";
  ::kill(offerer, SIGKILL);
  ::waitpid(offerer, nullptr, 0);
  EXPECT_EQ(mine.transport.fetch(kOfferer, 0, got.data(), 64), 0U);
  return done;
}

void expect_only_what_was_offered(End end) {
  constexpr std::size_t kPiece = std::size_t{64} << 10;
  EXPECT_EQ(fetch_until_it_ends(end, kPiece, 0, true), kBytes / 2);
  for (int trial = 0; trial < 20 && !::testing::Test::HasFailure(); ++trial) {
    fetch_until_it_ends(end, trial % 2 == 0 ? kPiece : kBytes, trial * 90, false);
  }
}

TEST(Offers, AReaderGetsNothingFalseFromAProcessThatIsKilled) {
  expect_only_what_was_offered(End::killed);
}

TEST(Offers, AReaderGetsNothingFalseFromAProcessThatExits) {
  expect_only_what_was_offered(End::exits);
}

TEST(Offers, AReaderGetsNothingFalseOfMemoryThatIsGivenUp) {
  expect_only_what_was_offered(End::gives_up);
}

}  // namespace
}  // namespace unisono::shm
