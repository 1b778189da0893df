// The executor's state of the running operation. Small programs run pass by pass (small_run.h),
// other programs all passes at once (segmented_run.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/bound_program.h"
#include "trace/trace_writer.h"
#include "transport/transport.h"

namespace unisono::engine {

enum class Progress : std::uint8_t { idle, advanced, finished, failed };

// Combines with a kernel or with a user's function.
struct Reducer {
  kernels::ReduceFunction kernel = nullptr;
  // Used instead of `kernel`: multiplies each rank's contribution by `scale` when it is first
  // summed.
  kernels::ScaledSumFunction scaled_sum = nullptr;
  double scale = 1;
  void (*user)(void* inout, const void* in, std::size_t count, void* context) = nullptr;
  void* context = nullptr;
  // The user's function combines the sources of a pass from the last to the first.
  bool reversed = false;
};

struct Operation {
  const BoundProgram* program = nullptr;
  std::byte* buffers[3] = {};  // by Place: the read-only input, the output, the scratch
  std::size_t output_bytes = 0;
  Reducer reducer;
  std::uint64_t signature = 0;
};

// The reason why poll() failed: a received message does not belong to this operation.
struct Fault {
  int from = -1;  // rank of the group
  std::uint64_t signature = 0;
  std::size_t expected = 0;  // of the whole expected message
  std::uint32_t step = 0;
};

// The rank and the step that an operation waits for; used in error texts.
struct Wait {
  int rank = -1;
  std::uint32_t step = 0;
};

// The times at which a pass moved bytes; only for recorded operations.
struct BusyTicks {
  std::uint64_t begin = 0;
  std::uint64_t ticks = 0;
};

struct Execution {
  // Stands for no lane. Otherwise: an incoming lane that was empty, or an outgoing lane that was
  // full.
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
  // The signature of a piece contains the piece's position, so a piece that has lost or gained
  // bytes is detected.
  std::uint64_t signature_of(const BoundPass& pass, std::size_t done,
                             std::size_t bytes) const noexcept {
    const std::uint64_t piece = bytes == pass.bytes ? 0 : done + bytes * 0x9e3779b97f4a7c15U;
    return signature_of(pass) + piece;
  }
  void lacks_message(int lane) noexcept { lacked = lacked == kNothing ? lane : lacked; }
  void lacks_reader(int lane) noexcept { lacked = lacked == kNothing ? -2 - lane : lacked; }
  // Records a received message that does not belong to this operation.
  void note_fault(const BoundPass& pass, int lane, const transport::Incoming& message) noexcept {
    fault = {.from = rank_of(lane),
             .signature = message.signature,
             .expected = pass.is_nothing ? 0 : pass.bytes,
             .step = pass.step};
  }
  // Returns true if no sent data is still in this process.
  bool flushed() noexcept { return !through_kernel || transport.flush(transport::kEveryLane); }
  // Combines `sources` into the first `count` targets.
  void combine(const BoundPass& pass, std::size_t bytes, int count, kernels::Store store) noexcept;
  // Records a finished pass, one event per message. REQUIRES: the operation is recorded.
  void record(const BoundPass& pass, const BusyTicks& busy) noexcept;

  transport::Transport& transport;
  int ranks;
  bool through_kernel;
  int looks;  // of one poll for a short message
  Operation operation;
  std::uint32_t next = 0;  // of a small program: the next pass
  // Holds one segment if a user-defined operation is used, and one segment per source if codes are
  // used.
  std::vector<std::byte> bounce;
  const void* sources[kernels::kMaxSources] = {};
  void* targets[kernels::kMaxSources + 1] = {};
  Fault fault;
  int lacked = kNothing;  // in this poll
  trace::TraceWriter writer;
};

}  // namespace unisono::engine
