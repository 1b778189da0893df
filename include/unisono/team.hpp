// Team: several threads of each rank make one collective call together, each moving its share.
//
//   unisono::Team team(comm, 4);              // once, on every rank
//   ... in thread t of 4 ...
//   team.all_reduce(t, data, unisono::sum);   // the same buffers and arguments in all four
//
// All threads of a rank make the same calls in the same order, with the whole buffers. The team
// gives each a fixed slice that begins on a cache line of the buffer if the buffer does; so one
// thread finds the same memory in its cache from call to call. A call returns when all the slices
// of this rank are done; each thread then sees the whole result. Short vectors are moved by as many
// threads as have 32 KiB to do. all_to_all and reduce_scatter in place, and reduce_scatter with
// premul_sum, are made by thread 0 alone.
//
// Results: sums are taken in the order of the ranks, so they have the same bits whatever the number
// of threads is, and on all ranks.
//
// Thread rule: thread number t belongs to one thread at a time. Calls allocate nothing themselves
// and take no lock. The communicator that the team was made from stays usable.
//
// Errors: those of Communicator; besides, usage (a thread number or a collective that a team does
// not have), mismatch (two threads make different calls) and timeout (a thread has not come; the
// message says which). An error in a call of several threads ends the team and its world, because
// other slices of that call may be under way.
#pragma once

#include <memory>

#include "unisono/call.hpp"
#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/typed_call.hpp"

namespace unisono {

inline constexpr int kMostTeamThreads = 1024;

struct TeamOptions {
  // The longest that a call waits for the other threads of its rank to begin it. 0: for ever.
  int timeout_ms = 300'000;
};

class UNISONO_EXPORT Team {
 public:
  // All ranks of `comm` call it, with the same number of threads: 1 to kMostTeamThreads. Takes one
  // group of `comm` for each thread. Errors: usage; mismatch where the numbers differ.
  Team(Communicator& comm, int threads, const TeamOptions& options = {});
  Team(Team&&) noexcept;
  Team& operator=(Team&&) noexcept;
  ~Team();

  int threads() const;

  // The untyped form: all_reduce, broadcast, all_gather, reduce_scatter, all_to_all and barrier.
  // `algorithm` empty: "flat" ("one_shot" for a short all_reduce) for sums, whose order is that
  // of the ranks; else chosen.
  // `timeout_ms` of the call, if given, also limits the wait for the other threads.
  void run(int thread, const Call& call);

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
  // In place.
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
