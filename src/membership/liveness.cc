#include "membership/liveness.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <system_error>

#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

static_assert(LivenessWord::kMark == FUTEX_OWNER_DIED);

// Blocks signals, because a thread that the program does not know of must not handle them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_ = {};
};

}  // namespace

LivenessToken::LivenessToken(LivenessWord& word) : word_(word) {
  const SignalsBlocked blocked;
  try {
    holder_ = std::thread([this] { hold(); });
  } catch (const std::system_error& error) {
    throw Error(
        ErrorCode::resource,
        std::string(
            "cannot start the thread through which other ranks notice the end of this process: ") +
            error.what() + "\nraise the limits on threads and memory (ulimit -u, ulimit -v)");
  }
}

LivenessToken::~LivenessToken() {
  stopping_.store(true, std::memory_order_release);
  stopping_.notify_one();
  holder_.join();
}

void LivenessToken::hold() noexcept {
  pthread_setname_np(pthread_self(), "unisono-life");
  robust_list_head* usual = nullptr;
  std::size_t bytes = 0;
  robust_list_head held = {};
  held.futex_offset =
      static_cast<long>(offsetof(LivenessWord, holder) - offsetof(LivenessWord, next));
  word_.next = &held.list;
  held.list.next = reinterpret_cast<robust_list*>(&word_.next);
  if (syscall(SYS_get_robust_list, 0, &usual, &bytes) != 0 ||
      syscall(SYS_set_robust_list, &held, sizeof(held)) != 0) {
    return;
  }
  word_.holder.store(static_cast<std::uint32_t>(syscall(SYS_gettid)), std::memory_order_release);
  stopping_.wait(false, std::memory_order_acquire);
  syscall(SYS_set_robust_list, usual, sizeof(*usual));
  word_.holder.store(0, std::memory_order_release);
}

}  // namespace unisono::comm
