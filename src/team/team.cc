#include "unisono/team.hpp"

#include <array>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtypes.h"
#include "comm/slices.h"
#include "team/arrival.h"

namespace unisono {
namespace {

// Private data of one thread.
struct alignas(64) Member {
  Member(Communicator group, int ranks) : comm(std::move(group)), parts(ranks) {}
  Communicator comm;
  comm::Parts parts;
  Call call;  // its current call; other threads compare theirs with it
};

bool is_for_teams(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::barrier:
      return true;
    default:
      return false;
  }
}

bool is_same(const Call& a, const Call& b) {
  return a.collective == b.collective && a.in == b.in && a.out == b.out && a.count == b.count &&
         a.dtype == b.dtype && a.root == b.root && a.reduction.op == b.reduction.op &&
         a.reduction.factor == b.reduction.factor && a.algorithm == b.algorithm;
}

bool sums(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter;
}

// Returns an algorithm that sums in rank order. All of them give the same bits.
std::string_view rank_order(const Call& call) {
  constexpr std::size_t kShortBytes = 16 << 10;
  const Dtype moved = moved_dtype(call.collective, call.dtype, call.reduction.op);
  const bool is_short = call.count <= kShortBytes / size_of(moved);
  return call.collective == Collective::all_reduce && is_short ? "one_shot" : "flat";
}

// Returns true if a communicator would first copy the whole input. It would then read slices that
// other threads are writing, so one thread must make the whole call.
bool copies_input(const Call& call, int rank) {
  if (call.collective == Collective::all_to_all) {
    return call.in == call.out;
  }
  if (call.collective != Collective::reduce_scatter) {
    return false;
  }
  const std::size_t before = static_cast<std::size_t>(rank) * call.count * size_of(call.dtype);
  return call.reduction.op == ReduceOp::premul_sum ||
         moved_dtype(call.collective, call.dtype, call.reduction.op) != call.dtype ||
         (call.in != nullptr && static_cast<const std::byte*>(call.in) + before == call.out);
}

void agree_on(Communicator& comm, int threads) {
  std::array<int, 2> most{threads, -threads};
  comm.all_reduce(most, max);
  if (most[0] != -most[1]) {
    throw Error(ErrorCode::mismatch,
                "a team has " + std::to_string(-most[1]) + " threads on one rank and " +
                    std::to_string(most[0]) +
                    " on another\ngive the team the same number of threads on all ranks",
                {.rank = comm.rank()});
  }
  if (threads < 1 || threads > kMostTeamThreads) {
    throw Error(ErrorCode::usage,
                "a team of " + std::to_string(threads) + " threads\ngive it 1 to " +
                    std::to_string(kMostTeamThreads),
                {.rank = comm.rank()});
  }
}

}  // namespace

struct Team::State {
  State(Communicator& comm, int threads, const TeamOptions& given)
      : options(given), arrival(threads), ranks(comm.size()), rank(comm.rank()) {
    members.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      members.emplace_back(comm.split(0, rank), ranks);
    }
  }

  // Stores the first error for all threads, and ends the waits of this team and of the other ranks.
  void fail(const Error& error) {
    {
      const std::lock_guard lock(mutex);
      if (!first.has_value()) {
        first = error;
      }
    }
    arrival.fail();
    members.front().comm.abort(error.summary());
  }
  [[noreturn]] void rethrow() {
    const std::lock_guard lock(mutex);
    throw Error(*first);
  }
  std::string place(const Call& call) const {
    return std::string(to_string(call.collective)) + " of a team on rank " + std::to_string(rank);
  }
  void meet(int thread, const Call& call, int timeout_ms);
  void compare(int thread);
  void move(int thread);

  TeamOptions options;
  team::ArrivalBarrier arrival;
  int ranks;
  int rank;
  std::vector<Member> members;
  std::mutex mutex;  // guards `first`
  std::optional<Error> first;
};

void Team::State::meet(int thread, const Call& call, int timeout_ms) {
  const team::ArrivalBarrier::Outcome outcome = arrival.arrive(thread, timeout_ms);
  if (outcome == team::ArrivalBarrier::Outcome::late) {
    const int missing = arrival.missing(thread);
    fail(Error(ErrorCode::timeout,
               place(call) + ": thread " + std::to_string(missing) + " of " +
                   std::to_string(members.size()) + " has not arrived for " +
                   std::to_string(timeout_ms) +
                   " ms\nevery thread of a team must make every call: check whether this thread "
                   "has ended or waits for another one",
               {.rank = rank}));
  }
  if (outcome != team::ArrivalBarrier::Outcome::all) {
    rethrow();
  }
}

void Team::State::compare(int thread) {
  const Call& mine = members[static_cast<std::size_t>(thread)].call;
  if (!is_same(mine, members.front().call)) {
    fail(Error(ErrorCode::mismatch,
               place(mine) + ": thread " + std::to_string(thread) +
                   " makes another call than thread 0 (" +
                   std::string(to_string(members.front().call.collective)) +
                   ")\ngive the same buffers, counts and arguments on all threads of a team",
               {.rank = rank}));
    rethrow();
  }
}

void Team::State::move(int thread) {
  Member& member = members[static_cast<std::size_t>(thread)];
  const Call& call = member.call;
  if (call.collective == Collective::barrier) {
    if (thread == 0) {
      member.comm.run(call);
    }
    return;
  }
  const int useful = comm::movers_of(call.count, call.dtype, static_cast<int>(members.size()));
  const int movers = copies_input(call, rank) ? 1 : useful;
  if (thread < movers) {
    const comm::Slice slice = comm::slice_of(call.count, call.dtype, movers, thread);
    member.comm.run(movers == 1 ? call : comm::sliced(call, slice, member.parts));
  }
}

Team::Team(Communicator& comm, int threads, const TeamOptions& options) {
  agree_on(comm, threads);
  state_ = std::make_unique<State>(comm, threads, options);
}
Team::Team(Team&&) noexcept = default;
Team& Team::operator=(Team&&) noexcept = default;
Team::~Team() = default;

int Team::threads() const {
  return static_cast<int>(state_->members.size());
}

int Team::ranks() const {
  return state_->ranks;
}

void Team::run(int thread, const Call& call) {
  State& state = *state_;
  if (thread < 0 || thread >= threads() || !is_for_teams(call.collective)) {
    throw Error(ErrorCode::usage,
                state.place(call) + " by thread " + std::to_string(thread) + " of " +
                    std::to_string(threads()) +
                    "\nthreads are numbered from 0; a team can call all_reduce, broadcast, "
                    "all_gather, reduce_scatter, all_to_all and barrier",
                {.rank = state.rank});
  }
  if (detail::has_own_max_error(call)) {  // a slice would have different block boundaries
    throw Error(ErrorCode::usage,
                state.place(call) +
                    ": a team does not support a max_error\nremove it, or call the communicator "
                    "from one thread",
                {.rank = state.rank});
  }
  Member& member = state.members[static_cast<std::size_t>(thread)];
  member.call = call;
  member.call.max_error = 0;
  if (sums(call.collective) && call.algorithm.empty()) {
    member.call.algorithm = rank_order(call);
  }
  if (threads() == 1) {
    state.move(0);
    return;
  }
  const int timeout_ms = call.timeout_ms >= 0 ? call.timeout_ms : state.options.timeout_ms;
  state.meet(thread, call, timeout_ms);
  state.compare(thread);
  try {
    state.move(thread);
  } catch (const Error& error) {
    state.fail(error);
    throw;
  } catch (const std::exception& error) {
    state.fail(
        Error(ErrorCode::internal, state.place(call) + ": " + error.what(), {.rank = state.rank}));
    throw;
  }
  // No limit is needed: every thread is in the call, which has its own limit.
  state.meet(thread, call, 0);
}

}  // namespace unisono
