// Runs a group's bound programs on its transport, one at a time: a state machine that never blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/execution.h"
#include "engine/segmented_run.h"
#include "engine/small_run.h"

namespace unisono::engine {

class Executor {
 public:
  // With `patient`, one poll may look for a short message for about 0.2 us, because waits for peers
  // are short. Do not use it if a peer may need this very core.
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
  // Advances only one pass, and the sends that are fused with it; used to replay a recording.
  // Returns finished once the pass has finished. REQUIRES: the program is not small.
  Progress poll_pass(std::uint32_t pass) noexcept { return segmented_.poll_pass(pass); }
  // Records passes with this writer. REQUIRES: no operation runs.
  void record(const trace::TraceWriter& writer) { run_.writer = writer; }
  trace::TraceWriter& writer() noexcept { return run_.writer; }
  const Fault& fault() const noexcept { return run_.fault; }
  // After an idle poll: returns the first rank that the poll waited for, because that rank's
  // message had not come, or because that rank had not read ours. Returns -1 if there is no
  // particular rank.
  int missing() const noexcept {
    return run_.lacked == Execution::kNothing ? -1
           : run_.lacked >= 0                 ? run_.rank_of(run_.lacked)
                                              : run_.transport.slowest_reader(-2 - run_.lacked);
  }
  // Returns the ranks that the operation waits for; it needs all of them. First come the ranks
  // whose messages are missing, then the ranks that have not read ours.
  std::vector<Wait> waits() const;
  // Returns the first entry of waits(); its rank is -1 if there is none.
  Wait waiting() const {
    const std::vector<Wait> all = waits();
    return all.empty() ? Wait{} : all.front();
  }
  // Returns true if a part of a message has come; waits() does not list the message's missing rest.
  // REQUIRES: an operation has begun.
  bool is_amid_message() const noexcept {
    return !run_.operation.program->small && segmented_.is_amid_message();
  }

 private:
  // Starts a program that is not small, or that uses a user-defined operation.
  void start_large();

  Execution run_;
  transport::SendLimits send_limits_;
  SegmentedRun segmented_;
};

}  // namespace unisono::engine
