#include "transport/tcp/waiters.h"

#include <algorithm>

namespace unisono::tcp {

std::optional<std::uint32_t> Waiters::seen() noexcept {
  const std::lock_guard lock(mutex_);
  const Waiter* const me = find(std::this_thread::get_id());
  return me == nullptr ? std::nullopt : std::optional(me->seen);
}

void Waiters::note_seen(std::uint32_t arrivals) noexcept {
  const std::thread::id thread = std::this_thread::get_id();
  const std::lock_guard lock(mutex_);
  Waiter* me = find(thread);
  if (me == nullptr) {
    me = &waiters_[next_++ % kMost];
    me->thread = thread;
  }
  me->seen = arrivals;
}

Waiters::Waiter* Waiters::find(std::thread::id thread) noexcept {
  const auto found = std::find_if(waiters_.begin(), waiters_.end(),
                                  [thread](const Waiter& one) { return one.thread == thread; });
  return found == waiters_.end() ? nullptr : &*found;
}

}  // namespace unisono::tcp
