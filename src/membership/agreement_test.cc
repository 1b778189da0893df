// The agreement on one host, in memory that threads and processes share.
#include "membership/agreement.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <random>
#include <thread>

#include "bootstrap/testing.h"

namespace unisono::comm {
namespace {

using testing::as_threads;
using testing::Child;

// Memory that is zero at first, like a world's memory.
class Memory {
 public:
  explicit Memory(int ranks)
      : bytes_(WorldLayout(ranks).bytes),
        data_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::munmap(data_, bytes_); }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

std::string text_of(const HostAgreement::Answer& answer) {
  std::string text;
  for (const int rank : answer.ranks) {
    text += std::to_string(rank) + " ";
  }
  return text + std::to_string(answer.mark);
}

const auto kNobody = [](int) { return false; };

TEST(HostAgreement, AllGetTheSameAnswerRoundAfterRound) {
  const Memory memory(4);
  const auto answers = as_threads(4, [&](int rank) {
    HostAgreement agreement(memory.data(), rank, 4);
    std::string text;
    for (int round = 0; round < 50; ++round) {
      text += text_of(agreement.call(kNobody, Deadline::after_ms(20'000), true)) + "\n";
    }
    return text;
  });
  EXPECT_EQ(answers[0].rfind("0 1 2 3 ", 0), 0U) << answers[0];
  EXPECT_EQ(answers, std::vector<std::string>(4, answers[0]));
}

TEST(HostAgreement, WhoIsGoneIsNotWaitedFor) {
  const Memory memory(4);
  const auto answers = as_threads(3, [&](int rank) {
    return text_of(HostAgreement(memory.data(), rank, 4)
                       .call([](int one) { return one == 3; }, Deadline::never(), true));
  });
  EXPECT_EQ(answers[0].rfind("0 1 2 ", 0), 0U) << answers[0];
  EXPECT_EQ(answers, std::vector<std::string>(3, answers[0]));
}

TEST(HostAgreement, WhoComesTooLateIsEvicted) {
  const Memory memory(3);
  const auto answers = as_threads(2, [&](int rank) {
    return text_of(
        HostAgreement(memory.data(), rank, 3).call(kNobody, Deadline::after_ms(1500), true));
  });
  EXPECT_EQ(answers[0].rfind("0 1 ", 0), 0U) << answers[0];
  const auto late = testing::run_one(
      [&](int rank) {
        return text_of(
            HostAgreement(memory.data(), rank, 3).call(kNobody, Deadline::never(), true));
      },
      2);
  EXPECT_EQ(late.rfind("evicted: the other ranks continued without this rank", 0), 0U) << late;
}

TEST(HostAgreement, TheSmallerPartMayNotGoOn) {
  const Memory memory(4);
  const auto text = testing::run_one(
      [&](int rank) {
        return text_of(
            HostAgreement(memory.data(), rank, 4).call(kNobody, Deadline::after_ms(20), true));
      },
      1);
  EXPECT_EQ(text.rfind("evicted: 1 rank met to continue, without ranks 0, 2, 3", 0), 0U) << text;
  EXPECT_EQ(text_of(HostAgreement(memory.data(), 2, 4).call(kNobody, Deadline::after_ms(20), false))
                .rfind("1 2 ", 0),
            0U);
}

TEST(HostAgreement, WhoCouldNotMeetTheOthersIsEvictedOnceTheyHaveGoneOn) {
  const Memory memory(2);
  const auto texts = as_threads(2, [&](int rank) {
    HostAgreement agreement(memory.data(), rank, 2);
    agreement.call(kNobody, Deadline::never(), true);
    if (rank == 0) {
      agreement.go_on();
      return std::string();
    }
    return text_of(agreement.call(kNobody, Deadline::never(), true));
  });
  EXPECT_EQ(texts[1].rfind("evicted: ", 0), 0U) << texts[1];
}

// Processes are killed at random moments; the others still agree.
TEST(HostAgreement, SurvivesDeathsAtAnyMoment) {
  std::mt19937 random(1);
  int without = 0;
  for (int round = 0; round < 60; ++round) {
    const Memory memory(4);
    auto* dead = new (memory.data() + WorldLayout(4).pools) std::atomic<int>(-1);
    const auto body = [&](int rank) {
      return text_of(HostAgreement(memory.data(), rank, 4)
                         .call([dead](int one) { return dead->load() == one; },
                               Deadline::after_ms(20'000), true));
    };
    std::vector<std::unique_ptr<Child>> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.push_back(std::make_unique<Child>(body, rank));
    }
    const auto victim = static_cast<int>(random() % 4);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));
    ::kill(ranks[static_cast<std::size_t>(victim)]->pid(), SIGKILL);
    ranks[static_cast<std::size_t>(victim)]->result();
    dead->store(victim);
    std::string answer;
    for (int rank = 0; rank < 4; ++rank) {
      if (rank != victim) {
        const std::string mine = ranks[static_cast<std::size_t>(rank)]->result();
        EXPECT_TRUE(answer.empty() || answer == mine) << answer << " but " << mine;
        answer = mine;
      }
    }
    EXPECT_EQ(answer.find("evicted"), std::string::npos) << answer;
    without += answer.find(std::to_string(victim) + " ") == std::string::npos ? 1 : 0;
  }
  std::printf("%d of 60 answers without the victim\n", without);
}

}  // namespace
}  // namespace unisono::comm
