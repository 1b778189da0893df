// Whether what a rank computes keeps its own core busy, or waits for a device. Where the core is
// busy and there is no other, nothing can move behind the computing: the cycles are the same, and
// those of the switches between two threads come on top.
#pragma once

#include <chrono>

#include "unisono/communicator.hpp"

namespace unisono::parallel {

class CoreUse {
 public:
  // The calling thread's, from how it computed in its latest such call: engines compute as they
  // did.
  static CoreUse& of_this_thread() noexcept;

  // Runs `compute` and notes how much of its time it had the core.
  template <typename Compute>
  void observe(const Compute& compute) {
    const double cpu = cpu_seconds();
    const auto begin = Clock::now();
    compute();
    note(cpu_seconds() - cpu, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  void note(double cpu_s, double wall_s) noexcept;
  bool computes() const noexcept { return computes_; }

 private:
  using Clock = std::chrono::steady_clock;
  static double cpu_seconds() noexcept;
  bool computes_ = false;
};

// Whether it pays to move data while this thread computes: it waits for a device then, or each rank
// of this group on this host has a core to compute on and one more, as far as this process may use
// the cores.
bool can_move_behind(const Communicator& communicator);

}  // namespace unisono::parallel
