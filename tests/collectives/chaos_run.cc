// Runs a chaos trial, and judges how it ended.
#include <memory>

#include "algorithms/catalog.h"
#include "chaos.h"
#include "engine/around.h"
#include "engine/bound_program.h"
#include "engine/executor.h"
#include "engine/layout.h"
#include "oracle.h"
#include "run_case.h"
#include "schedule/verify.h"

namespace unisono::testing {
namespace {

using engine::End;
using engine::RankEnd;
using sim::InjectedFault;

// One rank's part in one of the collectives.
struct Part {
  std::unique_ptr<CaseRun> run;
  engine::BoundProgram program;
  std::vector<std::byte> scratch;
  std::byte token[2] = {};  // data of a barrier
  engine::Operation operation;
};

engine::Around around_of(const Case& one, int rank) {
  return engine::around(one.collective, one.dtype, one.op, rank, one.ranks);
}

Part make_part(const ChaosTrial& trial, std::size_t which, const Schedule& schedule, int rank) {
  const Case& one = trial.cases[which];
  const bool pairs = plain_form(one.collective) == Collective::all_to_all;
  Part part;
  Case mine = one;
  mine.algorithm = std::string(base_name(one.algorithm));
  mine.in_place = one.in_place && !pairs && verify_in_place(schedule).empty();
  part.run = std::make_unique<CaseRun>(mine, rank, nullptr);
  const Call& call = part.run->call();
  const std::size_t element = size_of(one.dtype);
  const bool barrier = one.collective == Collective::barrier;
  const auto places = engine::lay_out(schedule, rank,
                                      {.element = barrier ? 1 : element,
                                       .count = barrier ? 1 : call.count,
                                       .counts = call.counts,
                                       .displs = call.displs,
                                       .recv_counts = call.recv_counts,
                                       .recv_displs = call.recv_displs});
  const engine::Extent extent = engine::extent_of(schedule, rank, places);
  const engine::Program program = engine::lower(schedule, rank,
                                                {.multicast = trial.network.multicast,
                                                 .in_place = part.run->in_place(),
                                                 .contiguous = !is_v(one.collective) && !pairs});
  part.program = engine::bind(program, places, barrier ? 1 : element, extent,
                              one.collective == Collective::all_to_all_v);
  // Small programs require that the lanes have room for them.
  part.program.small = part.program.small && trial.network.inline_bytes >= engine::kSmallMessage;
  part.scratch.assign(part.program.scratch_bytes, std::byte{0xee});
  part.operation = {.buffers = {static_cast<std::byte*>(const_cast<void*>(call.in)),
                                static_cast<std::byte*>(call.out), part.scratch.data()},
                    .output_bytes = extent.output,
                    .reducer = {},
                    .signature = scramble(trial.seed * 8 + which)};
  engine::Reducer& reducer = part.operation.reducer;
  if (one.op == ReduceOp::user) {
    reducer.user = call.reduction.user.combine;
    reducer.context = call.reduction.user.context;
  } else {
    reducer = engine::reducer_of(one.collective, one.op, around_of(one, rank));
  }
  return part;
}

// Does the communicator's work after the engine has finished.
void finish_reduction(const Case& one, int rank, const engine::Operation& operation) {
  const engine::Around around = around_of(one, rank);
  const std::size_t count = engine::fills_output(one.collective, one.op, rank)
                                ? one.count
                                : operation.output_bytes / size_of(one.dtype);
  if (around.after != nullptr && count != 0) {
    std::byte* const output = operation.buffers[1];
    around.after(output, output, count, around.divisor);
  }
}

class Chaos {
 public:
  explicit Chaos(const ChaosTrial& trial) : trial_(trial), network_(trial.network) {
    const auto n = static_cast<std::size_t>(trial.network.ranks);
    ranks_.resize(n);
    for (std::size_t which = 0; which < trial.cases.size(); ++which) {
      const Case& one = trial.cases[which];
      const Algorithm& algorithm = *find_algorithm(one.collective, one.algorithm);
      Schedule schedule =
          build_schedule(algorithm, {.ranks = one.ranks,
                                     .root = one.root,
                                     .parameters = parse_parameters(algorithm, one.algorithm)});
      for (std::size_t rank = 0; rank < n; ++rank) {
        ranks_[rank].parts.push_back(make_part(trial, which, schedule, static_cast<int>(rank)));
      }
    }
  }

  ChaosResult run() {
    std::vector<engine::Executor*> executors;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      Rank& mine = ranks_[rank];
      mine.executor =
          std::make_unique<engine::Executor>(network_.transport(static_cast<int>(rank)));
      executors.push_back(mine.executor.get());
      start(mine);
    }
    const auto ends = engine::drive(network_, executors, trial_.order, trial_.seed,
                                    [this](std::size_t rank) { return finish(rank); });
    if (wrong_.empty() && !network_.violation().empty()) {
      wrong_ = network_.violation();
    }
    if (wrong_.empty()) {
      wrong_ = judge(ends);
      wrong_ += wrong_.empty() ? "" : ": " + engine::describe(ends);
    }
    return {.wrong = wrong_, .struck = network_.struck()};
  }

 private:
  struct Rank {
    std::vector<Part> parts;
    std::size_t at = 0;
    std::unique_ptr<engine::Executor> executor;
  };

  static void start(Rank& rank) {
    Part& part = rank.parts[rank.at];
    part.operation.program = &part.program;
    if (part.run->call().collective == Collective::barrier) {
      part.operation.buffers[0] = &part.token[0];
      part.operation.buffers[1] = &part.token[1];
    }
    rank.executor->start(part.operation);
  }

  // The caller gets its buffers back: it checks them, and frees them.
  bool finish(std::size_t which) {
    Rank& rank = ranks_[which];
    Part& part = rank.parts[rank.at];
    finish_reduction(trial_.cases[rank.at], static_cast<int>(which), part.operation);
    const std::string wrong = part.run->check();
    if (!wrong.empty() && wrong_.empty()) {
      wrong_ = "operation " + std::to_string(rank.at + 1) + ", rank " + std::to_string(which) +
               ": " + wrong;
    }
    part.run->scribble();
    if (++rank.at == rank.parts.size()) {
      return false;
    }
    start(rank);
    return true;
  }

  std::string judge(const std::vector<RankEnd>& ends) const {
    const InjectedFault& fault = trial_.network.fault;
    const bool stopped = fault.kind == InjectedFault::Kind::stops;
    if (!network_.struck()) {
      return engine::describe(ends).empty() ? "" : "not all have finished";
    }
    const std::vector<bool> caused = wait_for_cause(ends);
    int failed = 0;
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      if (ends[rank].end == End::failed) {
        ++failed;
        if (stopped || ends[rank].fault.from != fault.rank) {
          return "rank " + std::to_string(rank) + " blames the wrong one";
        }
      }
      if (ends[rank].end == End::waits && !caused[rank]) {
        return "rank " + std::to_string(rank) + " does not wait for the cause";
      }
    }
    const bool may_wait =
        fault.kind != InjectedFault::Kind::signature && !engine::describe(ends).empty();
    return stopped || failed != 0 || may_wait ? "" : "nobody noticed the damaged message";
  }

  // A rank that waits, directly or through others, for the rank that stopped or sent the damaged
  // message, or for a rank that failed because of it.
  std::vector<bool> wait_for_cause(const std::vector<RankEnd>& ends) const {
    std::vector<bool> cause;
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      const bool damaged = trial_.network.fault.kind != InjectedFault::Kind::signature &&
                           static_cast<int>(rank) == trial_.network.fault.rank;
      cause.push_back(damaged || ends[rank].end == End::stopped || ends[rank].end == End::failed);
    }
    for (std::size_t hops = 0; hops < ends.size(); ++hops) {
      for (std::size_t rank = 0; rank < ends.size(); ++rank) {
        for (const engine::Wait& wait : ends[rank].waits) {
          cause[rank] = cause[rank] || cause[static_cast<std::size_t>(wait.rank)];
        }
      }
    }
    return cause;
  }

  const ChaosTrial& trial_;
  sim::SimNetwork network_;
  std::vector<Rank> ranks_;
  std::string wrong_;
};

}  // namespace

ChaosResult run_chaos(const ChaosTrial& trial) {
  return Chaos(trial).run();
}

}  // namespace unisono::testing
