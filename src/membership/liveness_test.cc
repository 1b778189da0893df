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

// A rank's line in the segment of its world, shared by two processes.
class SharedWord {
 public:
  SharedWord()
      : memory_(mmap(nullptr, sizeof(LivenessWord), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        word_(new(memory_) LivenessWord{}) {}
  SharedWord(const SharedWord&) = delete;
  SharedWord& operator=(const SharedWord&) = delete;
  ~SharedWord() { munmap(memory_, sizeof(LivenessWord)); }
  LivenessWord& operator*() const { return *word_; }
  LivenessWord* operator->() const { return word_; }

 private:
  void* memory_;
  LivenessWord* word_;
};

bool comes_true(const std::function<bool()>& condition) {
  for (int tries = 0; tries < 20'000 && !condition(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

bool is_held(const LivenessWord& word) {
  return word.holder.load() != 0 && !word.has_ended();
}

pid_t start(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    body();
    ::_exit(7);
  }
  return pid;
}

TEST(LivenessToken, IsMarkedWhenItsProcessIsKilled) {
  const SharedWord word;
  const pid_t pid = start([&] {
    const LivenessToken token(*word);
    ::alarm(60);
    ::pause();
  });
  ASSERT_TRUE(comes_true([&] { return is_held(*word); }));
  ::usleep(50'000);
  EXPECT_FALSE(word->has_ended());
  ::kill(pid, SIGKILL);
  EXPECT_TRUE(comes_true([&] { return word->has_ended(); }));
  EXPECT_TRUE(comes_true([&] { return how_it_is_ending(pid) == "killed by SIGKILL"; }));
  ::waitpid(pid, nullptr, 0);
}

TEST(LivenessToken, IsMarkedWhenItsProcessExits) {
  const SharedWord word;
  const pid_t pid = start([&] {
    const auto* line = new LivenessToken(*word);  // NOLINT(cppcoreguidelines-owning-memory)
    comes_true([&] { return line != nullptr && is_held(*word); });
  });
  EXPECT_TRUE(comes_true([&] { return word->has_ended(); }));
  EXPECT_TRUE(comes_true([&] { return how_it_is_ending(pid) == "exited with code 7"; }));
  ::waitpid(pid, nullptr, 0);
}

TEST(LivenessToken, LetsGoWithoutAMark) {
  const SharedWord word;
  auto line = std::make_unique<LivenessToken>(*word);
  ASSERT_TRUE(comes_true([&] { return is_held(*word); }));
  line.reset();
  EXPECT_EQ(word->holder.load(), 0U);
}

TEST(LivenessToken, OutlivesTheThreadThatMadeIt) {
  const SharedWord word;
  std::unique_ptr<LivenessToken> line;
  std::thread([&] { line = std::make_unique<LivenessToken>(*word); }).join();
  ASSERT_TRUE(comes_true([&] { return is_held(*word); }));
  ::usleep(50'000);
  EXPECT_FALSE(word->has_ended());
}

TEST(LivenessToken, IsNotThatOfAChildOfItsProcess) {
  const SharedWord word;
  const LivenessToken token(*word);
  ASSERT_TRUE(comes_true([&] { return is_held(*word); }));
  ::waitpid(start([] {}), nullptr, 0);
  EXPECT_TRUE(is_held(*word));
}

}  // namespace
}  // namespace unisono::comm
