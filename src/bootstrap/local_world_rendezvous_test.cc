// Peers that connect to rank 0: tokens, strangers, other versions.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/abstract_address.h"
#include "bootstrap/auth.h"
#include "bootstrap/job_log.h"
#include "bootstrap/testing.h"
#include "bootstrap/wire.h"

namespace unisono::comm {
namespace {

using testing::as_threads;
using testing::Child;
using testing::FewDescriptors;
using testing::join;
using testing::kToken;
using testing::options_for;
using testing::unique_name;
using Clock = std::chrono::steady_clock;

UniqueFd open_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

// Connects as soon as rank 0 listens.
UniqueFd connect_raw(const std::string& job) {
  const AbstractAddress address(address_of(job));
  UniqueFd socket = open_socket();
  while (::connect(socket.get(), address.get(), address.length()) != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return socket;
}

TEST(Rendezvous, TokenLetsIn) {
  const std::string job = unique_name("token");
  const auto results = as_threads(9, [&](int rank) {
    ConnectOptions options = options_for(rank, 9, job);
    options.token = kToken;
    return join(options);
  });
  EXPECT_EQ(results, std::vector<std::string>(9, "joined"));
}

// A peer without the token cannot end the job: rank 0 waits for the true rank 1, which comes later.
TEST(Rendezvous, WrongTokenIsTurnedAwayAndDisturbsNobody) {
  for (const std::string wrong : {"", "fedcba9876543210"}) {
    const std::string job = unique_name("intruder");
    std::atomic<bool> turned_away = false;
    const auto results = as_threads(3, [&](int rank) {
      ConnectOptions options = options_for(rank % 2, 2, job);
      options.token = rank == 1 ? wrong : kToken;
      if (rank == 1) {
        const std::string text = testing::run_one([&](int) { return join(options); }, 1);
        turned_away = true;
        return text;
      }
      while (rank == 2 && !turned_away) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      options.rank = rank == 2 ? 1 : 0;
      return join(options);
    });
    EXPECT_EQ(results[0], "joined");
    EXPECT_EQ(results[2], "joined");
    EXPECT_EQ(results[1].rfind("config: ", 0), 0U) << results[1];
    EXPECT_NE(results[1].find("token"), std::string::npos) << results[1];
  }
}

TEST(Rendezvous, WrongTokenIsInTheReportOfTheMissingRank) {
  const std::string job = unique_name("refused");
  const auto results = as_threads(2, [&](int rank) {
    ConnectOptions options = options_for(rank, 2, job, 3000);
    options.token = rank == 0 ? kToken : "fedcba9876543210";
    return join(options);
  });
  EXPECT_NE(results[0].find("missing rank 1 after"), std::string::npos) << results[0];
  EXPECT_NE(results[0].find("as rank 1, was turned away: it has another job token"),
            std::string::npos)
      << results[0];
}

TEST(Rendezvous, TokenOnOneSideOnly) {
  const std::string job = unique_name("onesided");
  const auto results = as_threads(2, [&](int rank) {
    ConnectOptions options = options_for(rank, 2, job);
    options.token = rank == 1 ? kToken : "";
    return join(options);
  });
  EXPECT_EQ(results[0],
            "config: rank 1 has a job token, but rank 0 has none\nset the same UNISONO_TOKEN on "
            "all ranks");
  EXPECT_EQ(results[1], results[0]);
}

// If a child holds the connection of a dead rank, the connection stays open. Rank 0 must count one
// rank, not two, and still wait for the late rank.
TEST(Rendezvous, RankThatDiesBeforeItsProofIsCountedOnce) {
  const std::string job = unique_name("once");
  const std::string log = ::testing::TempDir() + job;
  std::ofstream(log) << job_line(job, 3);
  ::setenv("UNISONO_LAUNCHER", log.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  std::atomic<bool> is_told = false;
  const auto results = as_threads(3, [&](int rank) {
    if (rank == 1) {
      const UniqueFd socket = connect_raw(job);
      const AwaitSocket wait = [&](short events) {
        wait_for(socket.get(), events, Deadline::never());
      };
      send_hello(socket.get(), make_hello(1, 3, true, 0));
      const auto challenge = receive_frame(socket.get(), wait);
      SharedJobLog().add(end_line(1, "was killed by SIGKILL"));
      const auto error = receive_frame(socket.get(), wait);
      is_told = true;
      return challenge && error ? std::string(error_from(*error).what()) : "no words";
    }
    while (rank == 2 && !is_told) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ConnectOptions options = options_for(rank, 3, job, rank == 2 ? 3000 : 60'000);
    options.token = kToken;
    return join(options);
  });
  for (const std::string& text : results) {
    EXPECT_EQ(text.rfind("connection: rank 1 was killed by SIGKILL before it joined", 0), 0U)
        << text;
  }
  ::unsetenv("UNISONO_LAUNCHER");  // NOLINT(concurrency-mt-unsafe)
  std::filesystem::remove(log);
}

// A rank with a token rejects a listener that has not proved the token.
TEST(Rendezvous, FalseListenerIsNotBelieved) {
  const std::string job = unique_name("false");
  const AbstractAddress address(address_of(job));
  for (const FrameType first : {FrameType::welcome, FrameType::challenge}) {
    UniqueFd listener = open_socket();
    ASSERT_EQ(::bind(listener.get(), address.get(), address.length()), 0);
    ASSERT_EQ(::listen(listener.get(), 8), 0);
    std::string result;
    std::thread rank([&] {
      ConnectOptions options = options_for(1, 2, job, 2000);
      options.token = kToken;
      result = testing::run_one([&](int) { return join(options); }, 1);
    });
    const UniqueFd pending(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    listener.reset();
    const std::vector<std::byte> zeros(first == FrameType::welcome ? 16 : 48);
    send_packet(pending.get(), first, false, zeros, {});
    rank.join();
    EXPECT_NE(result, "joined");
    EXPECT_NE(result.find(first == FrameType::welcome ? "does not follow the protocol of rank 0"
                                                      : "is not that of rank 0"),
              std::string::npos)
        << result;
  }
}

// Rank 0 also rejects a peer that does not check the listener's proof.
TEST(Rendezvous, FalseProofIsTurnedAway) {
  const std::string job = unique_name("proof");
  std::string told;
  const auto results = as_threads(2, [&](int rank) {
    if (rank == 1) {
      const UniqueFd socket = connect_raw(job);
      const AwaitSocket wait = [&](short events) {
        wait_for(socket.get(), events, Deadline::never());
      };
      send_hello(socket.get(), make_hello(1, 2, true, 0));
      if (!receive_frame(socket.get(), wait)) {
        return std::string("no challenge");
      }
      send_packet(socket.get(), FrameType::proof, false, std::vector<std::byte>(sizeof(Proof)), {});
      const auto answer = receive_frame(socket.get(), wait);
      told = answer && answer->type == FrameType::error ? error_from(*answer).what() : "let in";
    }
    ConnectOptions options = options_for(rank, 2, job);
    options.token = kToken;
    return join(options);
  });
  EXPECT_EQ(told.rfind("config: rank 1 was turned away by rank 0: it has another job token", 0), 0U)
      << told;
  EXPECT_EQ(results, std::vector<std::string>(2, "joined"));
}

TEST(Rendezvous, VersionsDiffer) {
  const std::string job = unique_name("version");
  std::string told;
  std::thread other([&] {
    const UniqueFd socket = connect_raw(job);
    Hello hello = make_hello(1, 2, false, 0);
    std::memset(hello.version, 0, sizeof(hello.version));
    std::memcpy(hello.version, "9.8.7", 5);
    send_hello(socket.get(), hello);
    const auto frame = receive_frame(
        socket.get(), [&](short events) { wait_for(socket.get(), events, Deadline::never()); });
    told = frame ? error_from(*frame).what() : "";
  });
  const std::string text = testing::run_one([&](int) { return join(options_for(0, 2, job)); }, 0);
  other.join();
  EXPECT_EQ(text.rfind("config: process ", 0), 0U) << text;
  EXPECT_NE(text.find("it runs unisono 9.8.7 (protocol 2), rank 0 runs "), std::string::npos)
      << text;
  EXPECT_EQ(told, text);
}

// Closes at once, sends garbage of many lengths, or stays silent.
void disturb(const std::string& job, std::vector<UniqueFd>& held) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    UniqueFd stray = connect_raw(job);
    if (i % 2 == 0) {
      held.push_back(std::move(stray));
      continue;
    }
    std::vector<unsigned char> rubbish(i % 5 == 1 ? 64 : random() % 300);
    for (auto& byte : rubbish) {
      byte = static_cast<unsigned char>(random());
    }
    if (i % 5 != 2) {
      ::send(stray.get(), rubbish.data(), rubbish.size(), MSG_NOSIGNAL);
    }
  }
}

TEST(Rendezvous, StrayConnectionsDoNotDisturb) {
  for (const char* token : {"", kToken}) {
    const std::string job = unique_name("stray");
    const auto start = Clock::now();
    std::vector<UniqueFd> held;
    const auto results = as_threads(5, [&](int rank) {
      if (rank == 4) {
        disturb(job, held);
        return std::string("joined");
      }
      if (rank != 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20 * rank));
      }
      ConnectOptions options = options_for(rank, 4, job);
      options.token = token;
      return join(options);
    });
    EXPECT_EQ(results, std::vector<std::string>(5, "joined"));
    EXPECT_EQ(held.size(), 250U);
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));
  }
}

TEST(Wire, ErrorCutsIntoALongFrame) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd in(ends[0]);
  const UniqueFd out(ends[1]);
  const std::vector<std::byte> part(100);
  send_packet(in.get(), FrameType::data, true, part, {});
  send_packet(in.get(), FrameType::error, false, error_bytes(ErrorCode::timeout, "late"), {});
  const auto frame = receive_frame(out.get(), [](short) {});
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->type, FrameType::error);
  EXPECT_STREQ(error_from(*frame).what(), "timeout: late");
}

// Rank 0 reports the lack of descriptors without spinning, and notifies the other ranks.
TEST(Rendezvous, WithoutADescriptorRankZeroSaysSo) {
  const std::string job = unique_name("starved");
  constexpr int kRanks = 3;
  std::vector<Child> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back(
        [&](int self) -> std::string {
          if (self != 0) {
            return join(options_for(self, kRanks, job));
          }
          const std::clock_t begin = std::clock();
          try {
            const FewDescriptors few(1);  // only the listener
            return join(options_for(0, kRanks, job));
          } catch (const Error& error) {
            const bool was_busy = std::clock() - begin > CLOCKS_PER_SEC / 2;
            return (was_busy ? "it was busy: " : "") + std::string(error.what());
          }
        },
        rank);
  }
  const std::string said = ranks[0].result();
  EXPECT_EQ(said.find("resource: rank 0 cannot accept the other ranks"), 0U) << said;
  EXPECT_NE(said.find("(ulimit -n)"), std::string::npos) << said;
  ranks[1].result();
  ranks[2].result();
}

TEST(Rendezvous, RankThatLeavesTooEarlyIsNamedOnAll) {
  const std::string job = unique_name("early");
  const auto results = as_threads(3, [&](int rank) {
    if (rank < 2) {
      return join(options_for(rank, 4, job));
    }
    const UniqueFd socket = connect_raw(job);
    send_hello(socket.get(), make_hello(2, 4, false, 0));
    std::this_thread::sleep_for(std::chrono::milliseconds(2000));  // until rank 1 is there
    return std::string();
  });
  EXPECT_EQ(results[0].rfind("connection: rank 2 (process ", 0), 0U) << results[0];
  EXPECT_NE(results[0].find("joined and left before all 4 ranks were there"), std::string::npos);
  EXPECT_EQ(results[1], results[0]);
}

}  // namespace
}  // namespace unisono::comm
