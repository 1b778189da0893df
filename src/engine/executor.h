// Runs bound programs of one group on its transport, one at a time: a state machine that never
// blocks.
//
// Every pass that may go on goes on by one segment per poll(): when its sources have come, its turn
// in its lanes is there, and the passes that it depends on are ahead of it. So all lanes move at
// once, and the only order is that of the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/bound_program.h"
#include "trace/trace_writer.h"
#include "transport/send.h"

namespace unisono::engine {

enum class Progress : std::uint8_t { idle, advanced, finished, failed };

// Combines by a kernel, or by a function of the user's.
struct Reducer {
  kernels::ReduceFunction kernel = nullptr;
  void (*user)(void* inout, const void* in, std::size_t count, void* context) = nullptr;
  void* context = nullptr;
};

struct Operation {
  const BoundProgram* program = nullptr;
  std::byte* buffers[3] = {};  // by Place: the input, which is only read, the output, the scratch
  std::size_t output_bytes = 0;
  Reducer reducer;
  std::uint64_t signature = 0;
};

// Why poll() failed: the message that came does not belong to this operation.
struct Fault {
  int from = -1;  // rank of the group
  std::uint64_t signature = 0;
  std::size_t expected = 0;  // bytes of the whole message that should have come
  std::uint32_t step = 0;
};

class Executor {
 public:
  // `patient`: waits for a peer are short, so one poll may look for a short message for some 0.2
  // us. Not where the peer may need this very core.
  explicit Executor(transport::Transport& transport, bool patient = true);

  // REQUIRES: the previous operation has finished or failed.
  void start(const Operation& operation) {
    operation_ = operation;
    next_ = 0;
    if (writer_.on()) {
      writer_.start();
    }
    if (!operation.program->small || operation.reducer.user != nullptr) {
      start_general();
    }
  }
  Progress poll() noexcept {
    if (writer_.on()) {
      writer_.poll();
    }
    return operation_.program->small ? poll_small() : poll_general();
  }
  // For those who play a recording again: one pass goes on, and nothing else but the sends that
  // ride along with it. Finished: the pass is. REQUIRES: the program is not small.
  Progress poll_pass(std::uint32_t pass) noexcept;
  // Its passes go to this writer. REQUIRES: no operation runs.
  void record(const trace::TraceWriter& writer) { writer_ = writer; }
  trace::TraceWriter& writer() noexcept { return writer_; }
  const Fault& fault() const noexcept { return fault_; }
  // After an idle poll: the first rank that it lacked, whose message has not come or who has not
  // read ours; -1: none in particular.
  int missing() const noexcept {
    return lacked_ == kNothing ? -1
           : lacked_ >= 0      ? rank_of(lacked_)
                               : transport_.slowest_reader(-2 - lacked_);
  }

  // For messages: whom the operation waits for, at which step. It needs all of them: those first
  // whose messages do not come, then those who do not read ours.
  struct Wait {
    int rank = -1;
    std::uint32_t step = 0;
  };
  std::vector<Wait> waits() const;
  // The first of them; -1: nobody.
  Wait waiting() const {
    const std::vector<Wait> all = waits();
    return all.empty() ? Wait{} : all.front();
  }

 private:
  struct State {
    std::size_t done = 0;
    transport::Mark mark = 0;
    bool shared = false;    // its readers look at our memory
    bool finished = false;  // and they are done
  };
  // When a pass moved bytes; only of operations that are recorded.
  struct Busy {
    std::uint64_t begin = 0;
    std::uint64_t ticks = 0;
  };
  struct Arriving {
    transport::Incoming message;
    std::size_t fetched = 0;  // of an offer
    std::uint32_t sequence = 0;
    bool open = false;
  };

  // Programs of short messages: the passes one after the other (executor_small.cc).
  Progress poll_small() noexcept;
  bool send_small(const BoundPass& pass) noexcept;
  bool receive_small(const BoundPass& pass) noexcept;
  bool await_small(const BoundPass& pass, int lane, transport::Incoming& message) noexcept;
  std::vector<Wait> waits_small() const;
  std::uint64_t signature_of(const BoundPass& pass) const noexcept {
    return operation_.signature ^ pass.salt;
  }
  // The signature of a piece says which one it is. So a piece that lost or gained bytes is noticed.
  std::uint64_t signature_of(const BoundPass& pass, std::size_t done,
                             std::size_t bytes) const noexcept {
    const std::uint64_t piece = bytes == pass.bytes ? 0 : done + bytes * 0x9e3779b97f4a7c15U;
    return signature_of(pass) + piece;
  }
  void start_general();
  Progress poll_general() noexcept;
  std::size_t allowed(const BoundPass& pass) const noexcept;
  Progress advance_send(const BoundPass& pass, State& state) noexcept;
  Progress advance_compute(const BoundPass& pass, State& state) noexcept;
  bool open_sources(const BoundPass& pass, const State& state, std::size_t& bytes) noexcept;
  bool fetch(const BoundPass& pass, const State& state, std::size_t& bytes) noexcept;
  void close_sources(const BoundPass& pass, const State& state, std::size_t bytes) noexcept;
  void combine(const BoundPass& pass, std::size_t bytes, int targets,
               kernels::Store store) noexcept;
  kernels::Store store_to_readers(const BoundPass& pass, std::size_t bytes) const noexcept;
  int open_forwards(const BoundPass& pass, const State& state, std::size_t bytes) noexcept;
  void commit_forwards(int taken, std::size_t bytes) noexcept;
  // A pass, or a piece of it, has been done, from `begin` until now (executor_record.cc).
  void record_whole(const BoundPass& pass, std::uint64_t begin) noexcept;
  void record_piece(const BoundPass& pass, const State& state, std::uint64_t begin,
                    std::size_t bytes, bool riding = false) noexcept;
  void record_forwards(int taken, std::uint64_t begin, std::size_t bytes) noexcept;
  void emit(const BoundPass& pass, const Busy& busy) noexcept;
  bool shows(const BoundOperand& target, std::size_t bytes) const noexcept;
  // Nothing of what was sent waits in this process.
  bool flushed() noexcept { return !through_kernel_ || transport_.flush(transport::kEveryLane); }
  bool is_missing(const BoundOperand& source) const noexcept;
  bool settle(const BoundPass& pass, State& state) noexcept;
  std::byte* own(const BoundOperand& operand) const noexcept {
    return operation_.buffers[static_cast<std::size_t>(operand.place)] + operand.offset;
  }
  int rank_of(int lane) const noexcept { return lane < ranks_ ? lane : lane - ranks_; }
  // An incoming lane that was empty, or an outgoing one that was not read.
  static constexpr int kNothing = -1;
  void lacks_message(int lane) noexcept { lacked_ = lacked_ == kNothing ? lane : lacked_; }
  void lacks_reader(int lane) noexcept { lacked_ = lacked_ == kNothing ? -2 - lane : lacked_; }

  transport::Transport& transport_;
  int ranks_;
  transport::SendLimits send_limits_;
  bool through_kernel_;
  int looks_;  // of one poll for a short message
  Operation operation_;
  bool output_shared_ = false;
  std::uint32_t next_ = 0;  // of a small program: the pass that is next
  std::vector<State> states_;
  std::vector<Busy> busy_;
  std::vector<std::uint32_t> active_;
  std::vector<Arriving> in_;
  std::vector<std::uint32_t> out_sequence_;
  std::vector<std::byte> bounce_;  // one segment, once a user-defined operation comes
  const void* sources_[kernels::kMaxSources] = {};
  void* targets_[kernels::kMaxSources + 1] = {};
  std::uint32_t took_[kernels::kMaxSources] = {};  // the sends that go with the targets
  Fault fault_;
  int lacked_ = kNothing;  // of this poll
  trace::TraceWriter writer_;
};

}  // namespace unisono::engine
