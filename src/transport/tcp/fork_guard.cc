#include "transport/tcp/fork_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

// fork() calls its handlers without arguments, so the handlers' data is static.
struct Guarded {
  std::mutex mutex;
  std::vector<const std::vector<int>*> lists;
  int nothing = -1;  // /dev/null
};

Guarded& guarded() {
  static Guarded* const all = new Guarded;  // outlives every thread
  return *all;
}

void before_fork() {
  guarded().mutex.lock();
}

void after_fork_in_parent() {
  guarded().mutex.unlock();
}

// Makes only system calls, because the child may not use anything else after a fork.
void after_fork_in_child() {
  for (const std::vector<int>* list : guarded().lists) {
    for (const int descriptor : *list) {
      ::dup3(guarded().nothing, descriptor, O_CLOEXEC);
    }
  }
  guarded().mutex.unlock();
}

void prepare() {
  Guarded& all = guarded();
  if (all.nothing < 0) {
    all.nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (all.nothing < 0 ||
        ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) {
      throw Error(
          ErrorCode::resource,
          "this process has no free file descriptor for its connections\nraise the limit of "
          "open files (ulimit -n)");
    }
  }
}

}  // namespace

ForkGuard::ForkGuard(std::vector<int> descriptors) : descriptors_(std::move(descriptors)) {
  const std::lock_guard lock(guarded().mutex);
  prepare();
  guarded().lists.push_back(&descriptors_);
}

ForkGuard::~ForkGuard() {
  const std::lock_guard lock(guarded().mutex);
  std::erase(guarded().lists, &descriptors_);
}

}  // namespace unisono::tcp
