// Runs bound programs of one group on its transport, one at a time: a state machine that never
// blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/execution.h"
#include "engine/segmented_run.h"
#include "engine/small_run.h"

namespace unisono::engine {

class Executor {
 public:
  // `patient`: waits for a peer are short, so one poll may look for a short message for some 0.2
  // us. Not where the peer may need this very core.
  explicit Executor(transport::Transport& transport, bool patient = true);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // REQUIRES: the previous operation has finished or failed.
  void start(const Operation& operation) {
    run_.operation = operation;
    run_.next = 0;
    if (run_.writer.on()) {
      run_.writer.start();
    }
    if (!operation.program->small || operation.reducer.user != nullptr) {
      start_large();
    }
  }
  Progress poll() noexcept {
    if (run_.writer.on()) {
      run_.writer.poll();
    }
    return run_.operation.program->small ? poll_small(run_) : segmented_.poll();
  }
  // For those who play a recording again: one pass goes on, and nothing else but the sends that
  // ride along with it. Finished: the pass is. REQUIRES: the program is not small.
  Progress poll_pass(std::uint32_t pass) noexcept { return segmented_.poll_pass(pass); }
  // Its passes go to this writer. REQUIRES: no operation runs.
  void record(const trace::TraceWriter& writer) { run_.writer = writer; }
  trace::TraceWriter& writer() noexcept { return run_.writer; }
  const Fault& fault() const noexcept { return run_.fault; }
  // After an idle poll: the first rank that it lacked, whose message has not come or who has not
  // read ours; -1: none in particular.
  int missing() const noexcept {
    return run_.lacked == Execution::kNothing ? -1
           : run_.lacked >= 0                 ? run_.rank_of(run_.lacked)
                                              : run_.transport.slowest_reader(-2 - run_.lacked);
  }
  // Whom the operation waits for. It needs all of them: those first whose messages do not come,
  // then those who do not read ours.
  std::vector<Wait> waits() const;
  // The first of them; -1: nobody.
  Wait waiting() const {
    const std::vector<Wait> all = waits();
    return all.empty() ? Wait{} : all.front();
  }

 private:
  // A program that is not small, or an operation of the user's.
  void start_large();

  Execution run_;
  transport::SendLimits send_limits_;
  SegmentedRun segmented_;
};

}  // namespace unisono::engine
