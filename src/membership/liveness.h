// How the other ranks of a host hear that this process has begun to end: before the kernel takes
// its memory apart, which can take seconds, and only then closes its connections.
//
// A robust futex (get_robust_list(2)) in the shared memory: the kernel marks it first of all when
// the thread ends that holds it. That is a thread of our own which does nothing else, so nothing
// but the end of the process ends it.
#pragma once

#include <atomic>
#include <thread>

#include "bootstrap/host_memory.h"

namespace unisono::comm {

class LivenessToken {
 public:
  // Where the kernel knows no robust futexes, nothing is marked. Throws resource.
  explicit LivenessToken(LivenessWord& word);
  LivenessToken(const LivenessToken&) = delete;
  LivenessToken& operator=(const LivenessToken&) = delete;
  // Lets go without a mark.
  ~LivenessToken();

 private:
  void hold() noexcept;

  LivenessWord& word_;
  std::atomic<bool> stopping_ = false;
  std::thread holder_;
};

}  // namespace unisono::comm
