// What the links of a process say without their mutexes: to each other's readers, and to those who
// sleep.
//
// A thread that reads a link reads for all of its lanes, and so may take what another thread waits
// for out of the socket that this one sleeps on. So a thread that finds something for others counts
// an arrival; and a thread that goes to sleep first looks whether there has been one.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace unisono::tcp {

struct LinkEvents {
  std::atomic<int> backlogs = 0;       // links whose output waits
  std::atomic<int> failures = 0;       // links that failed, whose peer left, or told of an abort
  std::atomic<int> unread = 0;         // links that hold bytes which no descriptor shows any more
  std::atomic<int> first_failed = -1;  // the rank whose link failed first
  std::atomic<std::uint32_t> arrivals = 0;  // for other threads than the one that reads
  std::atomic<int> sleepers = 0;
  int waker = -1;  // an eventfd that sleepers wait for

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
