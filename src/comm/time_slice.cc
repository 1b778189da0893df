#include "comm/time_slice.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace unisono::comm {
namespace {

// The first version of `struct sched_attr`. The kernel's header is not used because it conflicts
// with <sched.h>.
struct Attributes {
  std::uint32_t size = sizeof(Attributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // the time slice in the usual scheduling class
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};
static_assert(sizeof(Attributes) == 48);

// Returns true if the thread belongs to this process. Another process may have reused the number of
// a thread that has ended.
bool is_here(int thread) noexcept {
  return ::syscall(SYS_tgkill, ::getpid(), thread, 0) == 0;
}

}  // namespace

std::uint64_t change_time_slice(int thread, std::uint64_t ns) noexcept {
  Attributes now;
  if (!is_here(thread) || ::syscall(SYS_sched_getattr, thread, &now, sizeof(now), 0) != 0) {
    return 0;
  }
  // The runtime is 0 on kernels without time slices.
  const std::uint64_t before = now.runtime;
  if (now.policy != SCHED_OTHER || before == 0 || before == ns) {
    return 0;
  }
  now.runtime = ns;
  return ::syscall(SYS_sched_setattr, thread, &now, 0) == 0 ? before : 0;
}

void ShortSlices::take(int thread) noexcept {
  const std::lock_guard lock(taking_);
  const auto end = taken_.begin() + count_;
  const bool has = std::any_of(taken_.begin(), end,
                               [thread](const Taken& taken) { return taken.thread == thread; });
  if (!has && end != taken_.end()) {
    taken_[count_++] = {.thread = thread, .before = change_(thread, kNs)};
  }
}

void ShortSlices::give_back() noexcept {
  const std::lock_guard lock(taking_);
  for (; count_ > 0; --count_) {
    const Taken& taken = taken_[count_ - 1];
    if (taken.before != 0) {
      change_(taken.thread, taken.before);
    }
  }
}

}  // namespace unisono::comm
