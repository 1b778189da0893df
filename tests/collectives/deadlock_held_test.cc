// A correct program with ranks on three hosts, one of which receives a message late: no deadlock
// may be reported meanwhile. This is a separate program because it replaces a system call.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "comm/testing_ranks.h"
#include "transport/tcp/wire.h"

namespace {

constexpr std::size_t kHeldBytes = 12'000;  // length of the held message only
constexpr int kLooks = 40;                  // by each rank, before the message is released

thread_local bool is_late = false;  // this thread's rank receives the message late
std::atomic<bool> has_come = false;
std::array<std::atomic<int>, 3> looks = {};  // by rank, since the message arrived

bool is_held() {
  return std::any_of(looks.begin(), looks.end(), [](const auto& one) { return one < kLooks; });
}

// Returns how many of the arrived bytes precede the message. The data begins with a frame.
std::size_t bytes_before_it(std::span<const std::byte> data) {
  using unisono::tcp::kHeaderBytes;
  std::size_t at = 0;
  while (at + kHeaderBytes <= data.size()) {
    unisono::tcp::FrameHeader header;
    const auto bytes = data.subspan(at).first<kHeaderBytes>();
    if (unisono::tcp::decode(bytes, header) != unisono::tcp::BadFrame::none ||
        header.bytes == kHeldBytes) {
      break;
    }
    at += kHeaderBytes + header.bytes;
  }
  const bool is_it = at + kHeaderBytes <= data.size();
  return is_it ? at : data.size();
}

}  // namespace

extern "C" ssize_t recv(int fd, void* to, std::size_t bytes, int flags) {
  if (is_late && is_held()) {
    std::array<std::byte, std::size_t{64} << 10U> seen;
    const ssize_t got = ::syscall(SYS_recvfrom, fd, seen.data(), std::min(bytes, seen.size()),
                                  flags | MSG_PEEK | MSG_DONTWAIT, nullptr, nullptr);
    const std::size_t all = got < 0 ? 0 : static_cast<std::size_t>(got);
    const std::size_t before = bytes_before_it({seen.data(), all});
    if (before < all) {
      has_come = true;
      bytes = before;
    }
    if (before < all && before == 0) {
      errno = EAGAIN;
      return -1;
    }
  }
  return ::syscall(SYS_recvfrom, fd, to, bytes, flags, nullptr, nullptr);
}

namespace unisono::comm {
namespace {

// In a ring, rank 1 has its result before rank 2 has rank 1's message, and rank 0 gets its last
// part after that. So rank 0 waits in a collective that rank 1 has left; rank 1 has never reported
// this collective, and waits for rank 0 in another group.
TEST(Deadlock, IsNotSeenWhereARankHasFinishedTheCallThatAnotherOneWaitsIn) {
  ::setenv("UNISONO_DEADLOCK", "abort,after_ms=20", 1);
  const std::string job = testing::unique_name("held");
  const auto errors = testing::as_threads(3, [&](int rank) {
    ConnectOptions options = testing::net_options(rank, 3, job);
    options.timeout_ms = 120'000;  // bounds a hang
    // Called by a waiting rank after each search for deadlocks.
    options.interrupted = [rank] {
      looks[static_cast<std::size_t>(rank)] += has_come ? 1 : 0;
      return false;
    };
    Communicator world = Communicator::connect(options);
    is_late = rank == 2;  // before any rank can leave the split()
    Communicator pair = world.split(rank < 2 ? 0 : -1, rank);
    const std::vector<std::byte> part(kHeldBytes);
    std::vector<std::byte> all(3 * part.size());
    world.run({.collective = Collective::all_gather,
               .in = part.data(),
               .out = all.data(),
               .count = part.size(),
               .dtype = Dtype::u8,
               .algorithm = "ring"});
    is_late = false;
    if (rank < 2) {
      pair.barrier();
    }
    return std::string("no error");
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error, "no error");
  }
  EXPECT_TRUE(has_come && !is_held()) << "nothing was held back";
}

}  // namespace
}  // namespace unisono::comm
