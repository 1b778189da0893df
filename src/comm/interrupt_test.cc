// ConnectOptions::interrupted: a rank that waits in connect() or in an operation asks this function
// whether it should give up.
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing_sanitizers.h"
#include "base/unique_fd.h"
#include "bootstrap/testing.h"
#include "unisono/communicator.hpp"

namespace unisono::comm {
namespace {

TEST(Interrupt, EndsAWaitOnAllRanks) {
  std::vector<std::string> said(2);
  const std::string job = "interrupt-" + std::to_string(::getpid());
  std::atomic<bool> connected = false;
  const testing::SharedEvent ended;
  const auto body = [&](int rank) {
    ConnectOptions options;
    options.rank = rank;
    options.size = 2;
    options.job = job;
    options.interrupted = [&, rank] { return rank == 0 && connected; };
    Communicator world = Communicator::connect(options);
    try {
      if (rank == 0) {
        connected = true;
      } else {  // rank 0 waits for a rank that does not come
        EXPECT_TRUE(ended.wait());
      }
      world.barrier();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::aborted);
      said[static_cast<std::size_t>(rank)] = error.what();
    }
    ended.happen();
  };
  std::thread other(body, 1);
  body(0);
  other.join();
  for (const std::string& text : said) {
    EXPECT_NE(text.find("rank 0 was interrupted"), std::string::npos) << text;
  }
}

std::atomic<bool> is_asleep = false;
std::atomic<bool> may_wake = false;

// Blocks the thread that receives this signal.
void sleep_in_signal(int /*signal*/) {
  is_asleep = true;
  for (int ms = 0; ms < 30'000 && !may_wake; ++ms) {
    ::usleep(1000);
  }
}

// Returns the error of shrink() (empty if it succeeded) and its duration in seconds.
std::pair<std::string, double> said_by_shrink(Communicator& world) {
  const auto begin = std::chrono::steady_clock::now();
  std::string said;
  try {
    const Communicator shrunk = world.shrink({.timeout_ms = 100'000});
  } catch (const Error& error) {
    said = error.what();
  }
  return {said, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

// After the interrupt, no rank may start another agreement and wait for a rank that will not come.
TEST(Interrupt, OfRankZeroEndsShrinkForAll) {
  const std::string job = "interrupt-shrink-" + std::to_string(::getpid());
  is_asleep = may_wake = false;
  std::atomic<bool> is_shrinking = false;
  std::atomic<bool> has_begun = false;
  std::vector<std::pair<std::string, double>> said(2);
  const auto connect = [&](int rank) {
    ConnectOptions options;
    options.rank = rank;
    options.size = 2;
    options.job = job;
    options.interrupted = [&is_shrinking, rank] {
      const bool is_interrupted = rank == 0 && is_shrinking;
      may_wake = may_wake || is_interrupted;
      return is_interrupted;
    };
    return Communicator::connect(options);
  };
  std::thread other([&] {
    Communicator world = connect(1);
    has_begun = true;
    said[1] = said_by_shrink(world);
  });
  {
    Communicator world = connect(0);
    ::signal(SIGUSR2, sleep_in_signal);
    while (!has_begun) {
      ::usleep(1000);
    }
    // By now rank 1 has started the agreement, so rank 0 goes to the meeting and waits there for
    // rank 1.
    ::usleep(300'000);
    ::pthread_kill(other.native_handle(), SIGUSR2);
    while (!is_asleep) {
      ::usleep(1000);
    }
    is_shrinking = true;
    said[0] = said_by_shrink(world);
    other.join();  // while this rank must not look as if it had left
  }
  ::signal(SIGUSR2, SIG_DFL);
  for (const auto& [text, seconds] : said) {
    EXPECT_EQ(text.find("aborted: rank 0 was interrupted"), 0U) << text;
    EXPECT_LT(seconds, 60);  // well before the time limit
  }
}

// Simulates a host whose name server does not answer, for this thread and the threads that it
// starts. Returns an empty string on success.
std::string let_no_name_be_found(UniqueFd& server) {
  if (::unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) {
    return "no namespaces for this user: run it as root";
  }
  const std::string config = ::testing::TempDir() + "resolv-" + std::to_string(::getpid());
  std::ofstream(config) << "nameserver 127.0.0.1\n";
  ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  const bool mounted = ::mount(config.c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr) == 0;
  std::filesystem::remove(config);
  server = UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback = {};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_port = ::htons(53);
  place.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  const bool silent =
      ::ioctl(server.get(), SIOCSIFFLAGS, &loopback) == 0 &&
      ::bind(server.get(), reinterpret_cast<const sockaddr*>(&place), sizeof(place)) == 0;
  return mounted && silent ? ""
                           : "cannot make a server of names: run it as root, or where user "
                             "namespaces are allowed";
}

// The C library would try for five seconds, and more than once.
TEST(Interrupt, EndsALookUpOfAName) {
  if (kThreadSanitizer) {
    GTEST_SKIP() << "ThreadSanitizer crashes in the threads with which the C library looks; other "
                    "builds run it";
  }
  std::string cannot;
  std::string said;
  std::chrono::duration<double> took{};
  std::thread([&] {
    UniqueFd server;
    cannot = let_no_name_be_found(server);
    const auto begin = std::chrono::steady_clock::now();
    const auto elapsed = [begin] { return std::chrono::steady_clock::now() - begin; };
    ConnectOptions options;
    options.rank = 1;
    options.size = 2;
    options.token = "0123456789abcdef";
    options.address = "node0.example.com:29600";
    options.interrupted = [&] { return elapsed() > std::chrono::milliseconds(300); };
    try {
      if (cannot.empty()) {
        Communicator::connect(options);
      }
    } catch (const Error& error) {
      said = error.what();
    }
    took = elapsed();
  }).join();
  if (!cannot.empty()) {
    GTEST_SKIP() << cannot;
  }
  EXPECT_NE(said.find("was interrupted"), std::string::npos) << said;
  EXPECT_GE(took.count(), 0.2);
  EXPECT_LT(took.count(), 4.5);
}

enum class Way { name, file, network };

class InterruptedMeeting : public ::testing::TestWithParam<Way> {
 protected:
  ConnectOptions options(int rank, std::function<bool()> interrupted) const {
    ConnectOptions options;
    options.rank = rank;
    options.size = 2;
    options.job = job_;
    options.interrupted = std::move(interrupted);
    if (GetParam() == Way::file) {
      options.file = ::testing::TempDir() + job_;
    }
    if (GetParam() == Way::network) {
      options.address = testing::loopback_address(job_);
      options.token = "0123456789abcdef";
      options.transport = TransportKind::tcp;
    }
    return options;
  }

  // Returns the error of connect().
  std::string said_by(int rank, std::function<bool()> interrupted) const {
    try {
      Communicator::connect(options(rank, std::move(interrupted)));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::aborted) << error.what();
      return error.what();
    }
    return "nothing";
  }

  std::string job_ = "interrupted-meeting-" + std::to_string(::getpid()) + "-" +
                     std::to_string(static_cast<int>(GetParam()));
};

TEST_P(InterruptedMeeting, EndsAndLeavesNothingBehind) {
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_NE(said_by(rank, [] { return true; }).find("was interrupted"), std::string::npos);
  }
  // The job name and the rank are free again.
  std::thread other([&] { EXPECT_EQ(said_by(1, nullptr), "nothing"); });
  EXPECT_EQ(said_by(0, nullptr), "nothing");
  other.join();
}

TEST_P(InterruptedMeeting, OfRankZeroIsToldToThoseThatHaveCome) {
  ConnectOptions three = options(0, nullptr);
  three.size = 3;
  ConnectOptions second = three;
  second.rank = 1;
  std::atomic<bool> is_waiting = false;
  second.interrupted = [&] {
    is_waiting = true;
    return false;
  };
  std::string said;
  std::thread other([&] {
    try {
      Communicator::connect(second);
    } catch (const Error& error) {
      said = error.what();
    }
  });
  three.interrupted = [&] { return is_waiting.load(); };
  EXPECT_THROW(Communicator::connect(three), Error);
  other.join();
  EXPECT_NE(said.find("rank 0 was interrupted"), std::string::npos) << said;
}

TEST_P(InterruptedMeeting, OfRankZeroIsToldToThoseThatComeALittleLater) {
  std::atomic<bool> is_asked = false;
  std::string said;
  std::thread other([&] {
    while (!is_asked) {
      ::usleep(1000);
    }
    ::usleep(200'000);
    try {
      Communicator::connect(options(1, nullptr));
    } catch (const Error& error) {
      said = error.what();
    }
  });
  said_by(0, [&] { return is_asked = true; });
  other.join();
  EXPECT_NE(said.find("rank 0 was interrupted"), std::string::npos) << said;
}

TEST_P(InterruptedMeeting, IsNotBegunWithAFlagThatCannotBe) {
  ::setenv("UNISONO_QUIET", "x", 1);
  try {
    Communicator::connect(options(1, [] { return true; }));
    ADD_FAILURE() << "UNISONO_QUIET=x passes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::config) << error.what();
  }
  ::unsetenv("UNISONO_QUIET");
}

INSTANTIATE_TEST_SUITE_P(ByNameByFileAndOverTheNetwork, InterruptedMeeting,
                         ::testing::Values(Way::name, Way::file, Way::network));

}  // namespace
}  // namespace unisono::comm
