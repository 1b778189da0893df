#include "engine/executor.h"

#include <algorithm>

#include "engine/coded_pieces.h"

namespace unisono::engine {
namespace {

// Shorter pieces of registered memory are copied. A wait for the reader would cost more than the
// copy, in particular if the reader must first get a core.
constexpr std::size_t kShareBytes = 1024;
constexpr std::size_t kShareBytesOversubscribed = 8192;
// Number of times that a patient poll looks for a short message. The usual wait is one line
// transfer.
constexpr int kLooks = 16;

}  // namespace

Executor::Executor(transport::Transport& transport, bool patient)
    : run_(transport, patient && !transport.limits().through_kernel ? kLooks : 1),
      send_limits_(transport::send_limits(transport.limits(),
                                          patient ? kShareBytes : kShareBytesOversubscribed)),
      segmented_(run_, send_limits_) {}

void Executor::start_large() {
  if (run_.operation.reducer.user != nullptr) {
    // Large enough for the longest pass of a small program, and for a segment.
    run_.bounce.resize(std::max(send_limits_.slot_bytes, kSmallLane));
  }
  if (run_.operation.program->coded_sources != 0) {
    run_.bounce.resize(
        std::max(run_.bounce.size(), coded_bounce_bytes(run_.operation.program->coded_sources)));
  }
  if (!run_.operation.program->small) {
    segmented_.start();
  }
}

std::vector<Wait> Executor::waits() const {
  if (run_.operation.program == nullptr) {
    return {};  // the world ended before the first operation began
  }
  return run_.operation.program->small ? small_waits(run_) : segmented_.waits();
}

}  // namespace unisono::engine
