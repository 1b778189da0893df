// What an executor knows of the operation that it runs, whichever way it runs it: small programs
// pass by pass (small_run.h), others all passes at once (segmented_run.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/bound_program.h"
#include "trace/trace_writer.h"
#include "transport/transport.h"

namespace unisono::engine {

enum class Progress : std::uint8_t { idle, advanced, finished, failed };

// Combines by a kernel, or by a function of the user's.
struct Reducer {
  kernels::ReduceFunction kernel = nullptr;
  // In place of `kernel`: multiplies each rank's contribution by `scale` where it is first summed.
  kernels::ScaledSumFunction scaled_sum = nullptr;
  double scale = 1;
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

// For messages: whom an operation waits for, at which step.
struct Wait {
  int rank = -1;
  std::uint32_t step = 0;
};

// When a pass moved bytes; only of operations that are recorded.
struct BusyTicks {
  std::uint64_t begin = 0;
  std::uint64_t ticks = 0;
};

struct Execution {
  // An incoming lane that was empty, or an outgoing one that was not read.
  static constexpr int kNothing = -1;

  Execution(transport::Transport& lanes, int most_looks)
      : transport(lanes),
        ranks(lanes.ranks()),
        through_kernel(lanes.limits().through_kernel),
        looks(most_looks) {}

  std::byte* own(const BoundOperand& operand) const noexcept {
    return operation.buffers[static_cast<std::size_t>(operand.place)] + operand.offset;
  }
  int rank_of(int lane) const noexcept { return lane < ranks ? lane : lane - ranks; }
  std::uint64_t signature_of(const BoundPass& pass) const noexcept {
    return operation.signature ^ pass.salt;
  }
  // The signature of a piece says which one it is. So a piece that lost or gained bytes is noticed.
  std::uint64_t signature_of(const BoundPass& pass, std::size_t done,
                             std::size_t bytes) const noexcept {
    const std::uint64_t piece = bytes == pass.bytes ? 0 : done + bytes * 0x9e3779b97f4a7c15U;
    return signature_of(pass) + piece;
  }
  void lacks_message(int lane) noexcept { lacked = lacked == kNothing ? lane : lacked; }
  void lacks_reader(int lane) noexcept { lacked = lacked == kNothing ? -2 - lane : lacked; }
  // A message came that does not belong to this operation.
  void note_fault(const BoundPass& pass, int lane, const transport::Incoming& message) noexcept {
    fault = {.from = rank_of(lane),
             .signature = message.signature,
             .expected = pass.is_nothing ? 0 : pass.bytes,
             .step = pass.step};
  }
  // Nothing of what was sent waits in this process.
  bool flushed() noexcept { return !through_kernel || transport.flush(transport::kEveryLane); }
  // From `sources` to so many of `targets`.
  void combine(const BoundPass& pass, std::size_t bytes, int count, kernels::Store store) noexcept;
  // The pass is done: a message for a message. REQUIRES: the operation is recorded.
  void record(const BoundPass& pass, const BusyTicks& busy) noexcept;

  transport::Transport& transport;
  int ranks;
  bool through_kernel;
  int looks;  // of one poll for a short message
  Operation operation;
  std::uint32_t next = 0;  // of a small program: the pass that is next
  // One segment, once a user-defined operation comes; one of each source, once codes come.
  std::vector<std::byte> bounce;
  const void* sources[kernels::kMaxSources] = {};
  void* targets[kernels::kMaxSources + 1] = {};
  Fault fault;
  int lacked = kNothing;  // of this poll
  trace::TraceWriter writer;
};

}  // namespace unisono::engine
