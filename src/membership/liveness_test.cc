#include "membership/liveness.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <thread>

#include "bootstrap/process.h"

namespace unisono::comm {
namespace {

// Of two processes, as the rank's line in the segment of its world.
class SharedLife {
 public:
  SharedLife()
      : memory_(
            mmap(nullptr, sizeof(Life), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        life_(new(memory_) Life{}) {}
  SharedLife(const SharedLife&) = delete;
  SharedLife& operator=(const SharedLife&) = delete;
  ~SharedLife() { munmap(memory_, sizeof(Life)); }
  Life& operator*() const { return *life_; }
  Life* operator->() const { return life_; }

 private:
  void* memory_;
  Life* life_;
};

bool comes_true(const std::function<bool()>& condition) {
  for (int tries = 0; tries < 20'000 && !condition(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

bool is_held(const Life& life) {
  return life.holder.load() != 0 && !life.has_ended();
}

pid_t start(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    body();
    ::_exit(7);
  }
  return pid;
}

TEST(Lifeline, IsMarkedWhenItsProcessIsKilled) {
  const SharedLife life;
  const pid_t pid = start([&] {
    const Lifeline line(*life);
    ::alarm(60);
    ::pause();
  });
  ASSERT_TRUE(comes_true([&] { return is_held(*life); }));
  ::usleep(50'000);
  EXPECT_FALSE(life->has_ended());
  ::kill(pid, SIGKILL);
  EXPECT_TRUE(comes_true([&] { return life->has_ended(); }));
  EXPECT_TRUE(comes_true([&] { return how_it_is_ending(pid) == "killed by SIGKILL"; }));
  ::waitpid(pid, nullptr, 0);
}

TEST(Lifeline, IsMarkedWhenItsProcessExits) {
  const SharedLife life;
  const pid_t pid = start([&] {
    const auto* line = new Lifeline(*life);  // NOLINT(cppcoreguidelines-owning-memory)
    comes_true([&] { return line != nullptr && is_held(*life); });
  });
  EXPECT_TRUE(comes_true([&] { return life->has_ended(); }));
  EXPECT_TRUE(comes_true([&] { return how_it_is_ending(pid) == "exited with code 7"; }));
  ::waitpid(pid, nullptr, 0);
}

TEST(Lifeline, LetsGoWithoutAMark) {
  const SharedLife life;
  auto line = std::make_unique<Lifeline>(*life);
  ASSERT_TRUE(comes_true([&] { return is_held(*life); }));
  line.reset();
  EXPECT_EQ(life->holder.load(), 0U);
}

TEST(Lifeline, OutlivesTheThreadThatMadeIt) {
  const SharedLife life;
  std::unique_ptr<Lifeline> line;
  std::thread([&] { line = std::make_unique<Lifeline>(*life); }).join();
  ASSERT_TRUE(comes_true([&] { return is_held(*life); }));
  ::usleep(50'000);
  EXPECT_FALSE(life->has_ended());
}

TEST(Lifeline, IsNotThatOfAChildOfItsProcess) {
  const SharedLife life;
  const Lifeline line(*life);
  ASSERT_TRUE(comes_true([&] { return is_held(*life); }));
  ::waitpid(start([] {}), nullptr, 0);
  EXPECT_TRUE(is_held(*life));
}

}  // namespace
}  // namespace unisono::comm
