// Notifies the other ranks on a host that this process has begun to end. Without the notification
// they would notice late: the kernel first frees the memory of a process, which can take seconds,
// and only then closes its connections.
//
// The notification is a robust futex (get_robust_list(2)) in shared memory. When the thread that
// holds the futex ends, the kernel marks the futex before anything else. The holder is a thread
// that does nothing else, so it ends only together with the process.
#pragma once

#include <atomic>
#include <thread>

#include "bootstrap/host_memory.h"

namespace unisono::comm {

class LivenessToken {
 public:
  // Has no effect if the kernel has no robust futexes. Throws resource.
  explicit LivenessToken(LivenessWord& word);
  LivenessToken(const LivenessToken&) = delete;
  LivenessToken& operator=(const LivenessToken&) = delete;
  // Releases the futex, so that the kernel does not mark it.
  ~LivenessToken();

 private:
  void hold() noexcept;

  LivenessWord& word_;
  std::atomic<bool> stopping_ = false;
  std::thread holder_;
};

}  // namespace unisono::comm
