// Tells the other ranks on a host that this process has begun to end, before the kernel frees its
// memory, which can take seconds, and only then closes its connections.
//
// It uses a robust futex (get_robust_list(2)) in shared memory, which the kernel marks first of all
// when the thread that holds it ends. The holder is a thread that does nothing else, so it ends
// only with the process.
#pragma once

#include <atomic>
#include <thread>

#include "bootstrap/host_memory.h"

namespace unisono::comm {

class LivenessToken {
 public:
  // Marks nothing if the kernel has no robust futexes. Throws resource.
  explicit LivenessToken(LivenessWord& word);
  LivenessToken(const LivenessToken&) = delete;
  LivenessToken& operator=(const LivenessToken&) = delete;
  // Releases the futex without a mark.
  ~LivenessToken();

 private:
  void hold() noexcept;

  LivenessWord& word_;
  std::atomic<bool> stopping_ = false;
  std::thread holder_;
};

}  // namespace unisono::comm
