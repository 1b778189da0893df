// Measures whether a rank's computation keeps its core busy or waits for a device. If the core is
// busy and the rank has no other core, moving data in the background saves nothing: the move costs
// the same cycles, and thread switches cost additional cycles.
#pragma once

#include <chrono>

#include "unisono/communicator.hpp"

namespace unisono::parallel {

class CoreUse {
 public:
  // Returns the calling thread's record of its latest observed computation: the next one is
  // expected to behave alike.
  static CoreUse& of_this_thread() noexcept;

  // Runs `compute`, and records for how much of its time it used the core.
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

// Returns true if it pays to move data while this thread computes. Either the thread waits for a
// device during its computations, or each of the group's ranks on this host has a core to compute
// on and a spare one, among the cores that this process may use.
bool can_move_behind(const Communicator& communicator);

}  // namespace unisono::parallel
