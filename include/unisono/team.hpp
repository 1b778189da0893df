// Team: several threads of each rank make one collective call together. Each thread moves a share
// of the data.
//
//   unisono::Team team(comm, 4);              // once, on every rank
//   ... in thread t of 4 ...
//   team.all_reduce(t, data, unisono::sum);   // the same buffers and arguments in all four
//
// All threads of a rank make the same calls in the same order, with the whole buffers. The team
// assigns each thread a fixed slice of the vector, so that the slice stays in the thread's cache
// between calls. If the buffer begins on a cache line, so does every slice. A call returns when all
// slices of this rank are done; each thread then sees the whole result. Fewer threads move a short
// vector, so that each of them moves at least 32 KiB. Thread 0 alone moves these calls:
// - all_to_all in place,
// - reduce_scatter in place or with premul_sum,
// - reduce_scatter with avg of integers of up to 32 bits, or of floats of fewer than 32 bits.
//
// Results: a team sums in rank order, so sums have the same bits for any number of threads and on
// all ranks.
//
// Threads: two threads must not use one thread number at the same time. The team's own code
// allocates no memory in a call, and takes no lock. The team's communicator stays usable.
//
// Errors: those of Communicator::run(); usage (an invalid thread number, or an unsupported
// collective); mismatch (two threads make different calls); timeout (a thread has not arrived; the
// text names this thread). If several threads move the data of a call, an error in the call ends
// the team and its world, because other slices of the call may be in progress.
#pragma once

#include <memory>

#include "unisono/call.hpp"
#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/typed_call.hpp"

namespace unisono {

inline constexpr int kMostTeamThreads = 1024;  // threads of one Team

struct TeamOptions {  // Options of a Team.
  // Limit of the time for which a call waits for the other threads of its rank. 0: no limit.
  int timeout_ms = 300'000;
};

class UNISONO_EXPORT Team {
 public:
  // Collective. Makes a team of 1 to kMostTeamThreads threads, the same number on all ranks. Splits
  // one group from `comm` for each thread.
  // Errors: usage; mismatch if the numbers differ.
  Team(Communicator& comm, int threads, const TeamOptions& options = {});
  Team(Team&&) noexcept;
  Team& operator=(Team&&) noexcept;
  ~Team();

  int threads() const;  // Local. Returns the number of threads of this team.

  // Collective. The untyped form of all_reduce, broadcast, all_gather, reduce_scatter, all_to_all
  // and barrier. If `algorithm` is empty, a short all_reduce uses "one_shot", and other sums use
  // "flat"; both sum in rank order. For other collectives, the library chooses. A `timeout_ms` in
  // the call also limits the wait for the other threads.
  // Shapes: see rules.h.
  // In place: see rules.h.
  // Errors: those of Communicator::run(); usage, mismatch and timeout as above.
  void run(int thread, const Call& call);

  // Collective. Typed forms, as in Communicator.
  template <OutBuffer Data>
  void broadcast(int thread, Data&& data, int root) {
    run(thread, detail::vector_call(Collective::broadcast, detail::view(data),
                                    detail::out_view(data), sum, root));
  }
  template <InBuffer In, OutBufferLike<In> Out>
  void all_reduce(int thread, In&& in, Out&& out, Reduction reduction) {
    run(thread, detail::vector_call(Collective::all_reduce, detail::view(in), detail::out_view(out),
                                    reduction, 0));
  }
  // In-place form.
  template <OutBuffer Data>
  void all_reduce(int thread, Data&& data, Reduction reduction) {
    run(thread, detail::vector_call(Collective::all_reduce, detail::view(data),
                                    detail::out_view(data), reduction, 0));
  }
  template <InBuffer In, OutBufferLike<In> Out>
  void all_gather(int thread, In&& in, Out&& out) {
    run(thread, detail::all_gather_call(detail::view(in), detail::out_view(out), ranks()));
  }
  template <InBuffer In, OutBufferLike<In> Out>
  void reduce_scatter(int thread, In&& in, Out&& out, Reduction reduction) {
    run(thread,
        detail::reduce_scatter_call(detail::view(in), detail::out_view(out), ranks(), reduction));
  }
  template <InBuffer In, OutBufferLike<In> Out>
  void all_to_all(int thread, In&& in, Out&& out) {
    run(thread, detail::pair_call(detail::view(in), detail::out_view(out), ranks()));
  }
  void barrier(int thread) { run(thread, {.collective = Collective::barrier}); }

 private:
  struct State;
  int ranks() const;
  std::unique_ptr<State> state_;
};

}  // namespace unisono
