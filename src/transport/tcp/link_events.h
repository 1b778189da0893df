// The state that the links of a process publish for readers without their mutexes and for sleeping
// threads.
//
// A thread that reads a link reads for all lanes of the link. So it may take data from the socket
// while another thread sleeps until that data arrives. Therefore a thread that reads data for other
// threads counts an arrival, and every thread checks for arrivals before it sleeps.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace unisono::tcp {

struct LinkEvents {
  std::atomic<int> backlogs = 0;       // links with pending output
  std::atomic<int> failures = 0;       // links that failed, or whose peer left or aborted
  std::atomic<int> unread = 0;         // links that hold bytes which no descriptor shows any more
  std::atomic<int> first_failed = -1;  // the rank whose link failed first
  std::atomic<std::uint32_t> arrivals = 0;  // for other threads than the one that reads
  std::atomic<int> sleepers = 0;
  int waker = -1;  // an eventfd that sleeping threads wait for

  void arrived() noexcept {
    arrivals.fetch_add(1);
    if (sleepers.load() != 0) {
      ring();
    }
  }
  void ring() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t done = ::write(waker, &one, sizeof(one));
  }
  void failed() noexcept {
    failures.fetch_add(1, std::memory_order_release);
    arrived();
  }
};

}  // namespace unisono::tcp
