// Runs the kernel's source on a CPU, with one thread per block, and signals that arrive late and
// out of order.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "device/block.h"
#include "device/dispatch.h"

namespace unisono::device {

// Called with each operand before the kernel uses it.
using Uses = std::function<void(const void*)>;

class DelayedBlock {
 public:
  DelayedBlock(std::uint32_t block, std::uint64_t seed, const Uses& uses)
      : block_(block), random_(static_cast<unsigned>(seed)), uses_(uses) {}
  DelayedBlock(const DelayedBlock&) = delete;
  DelayedBlock& operator=(const DelayedBlock&) = delete;
  ~DelayedBlock() { deliver_all(); }

  std::uint32_t thread() const { return 0; }
  std::uint32_t threads() const { return 1; }
  std::uint32_t block() const { return block_; }
  BlockMemory& shared() { return shared_; }
  void sync() {}
  // When a pass calls any(), its pointers are complete, so they are checked here.
  bool any(bool flag) {
    for (const auto& pointers : shared_.pointers) {
      for (const unsigned char* const pointer : pointers) {
        if (pointer != nullptr && uses_) {
          uses_(pointer);
        }
      }
    }
    return flag;
  }
  void signal(std::uint64_t* word, std::uint64_t value) {
    late_.emplace_back(word, value);
    if (random_() % 4 == 0) {
      std::this_thread::yield();
    }
    if (random_() % 2 == 0) {
      deliver_one();
    }
  }
  void tell(std::uint32_t* word, std::uint32_t value) { std::atomic_ref(*word).store(value); }
  bool reaches(const std::uint64_t* word, std::uint64_t value, const Launch& launch,
               std::uint32_t rank) {
    Status& status = launch.status[block_];
    for (int looks = 1;; ++looks) {
      if (std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(std::memory_order_acquire) >=
          value) {
        if (looks > kLooks) {
          std::atomic_ref(status.late).store(0);
        }
        return true;
      }
      deliver_one();
      if (looks > kLooks) {
        if (std::atomic_ref(*const_cast<std::uint32_t*>(launch.stop)).load() != 0) {
          return false;
        }
        std::atomic_ref(status.late).store(late_word(rank, value));
      }
      std::this_thread::yield();
    }
  }

 private:
  static constexpr int kLooks = 64;

  // Signals to the same word keep their order, because each one increases the word.
  void deliver_one() {
    if (late_.empty()) {
      return;
    }
    const std::size_t chosen = random_() % late_.size();
    std::uint64_t* const word = late_[chosen].first;
    for (std::size_t i = 0; i < late_.size(); ++i) {
      if (late_[i].first == word) {
        std::atomic_ref(*word).store(late_[i].second, std::memory_order_release);
        late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
    }
  }
  void deliver_all() {
    while (!late_.empty()) {
      deliver_one();
    }
  }

  BlockMemory shared_ = {};
  std::uint32_t block_;
  std::minstd_rand random_;
  const Uses& uses_;
  std::vector<std::pair<std::uint64_t*, std::uint64_t>> late_ = {};
};

// Runs all blocks of a launch to completion.
inline void run_on_cpu(const Launch& launch, Dtype dtype, std::uint64_t seed,
                       const Uses& uses = {}) {
  std::vector<std::thread> threads;
  for (std::uint32_t c = 0; c < launch.channels; ++c) {
    threads.emplace_back([&launch, &uses, dtype, seed, c] {
      DelayedBlock block(c, seed * 1000 + launch.rank * 100 + c + 1, uses);
      dispatch(dtype, static_cast<ReduceOp>(launch.op), [&](auto d, auto op) {
        run_block<Combiner<decltype(d)::value, decltype(op)::value>>(block, launch);
      });
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace unisono::device
