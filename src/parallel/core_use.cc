#include "parallel/core_use.h"

#include <cstddef>
#include <ctime>

#include "bootstrap/process.h"

namespace unisono::parallel {

CoreUse& CoreUse::of_this_thread() noexcept {
  thread_local CoreUse use;
  return use;
}

// Half of the time is the threshold: a thread that shares its core with the thread that moves data
// gets no more, and a thread that waits for a device gets almost none.
void CoreUse::note(double cpu_s, double wall_s) noexcept {
  constexpr double kShort = 10e-6;  // shorter times are below the clocks' resolution
  if (wall_s >= kShort) {
    computes_ = cpu_s >= wall_s / 2;
  }
}

double CoreUse::cpu_seconds() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

bool can_move_behind(const Communicator& communicator) {
  if (!CoreUse::of_this_thread().computes()) {
    return true;
  }
  const int here = communicator.host(communicator.rank());
  std::size_t ranks_here = 0;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    ranks_here += communicator.host(rank) == here ? 1U : 0U;
  }
  return comm::allowed_cpus().size() >= 2 * ranks_here;
}

}  // namespace unisono::parallel
