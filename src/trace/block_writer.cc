#include "trace/block_writer.h"

namespace unisono::trace {

void BlockWriter::take_block() noexcept {
  recording::RecordingHeader& header = *view_.header;
  const std::uint64_t block = header.taken.fetch_add(1, std::memory_order_relaxed);
  next_ = block * recording::kBlockEvents;
  at_ = &event(next_);
  free_ = recording::kBlockEvents;
  label_ = recording::kNoLabel;
  end_block_at(at_);
  if (block % 16 == 0) {
    recording::note_clock(header.latest, view_.counter);
  }
}

}  // namespace unisono::trace
