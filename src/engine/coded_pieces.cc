#include "engine/coded_pieces.h"

#include <algorithm>

#include "engine/coded_lengths.h"
#include "kernels/coded_blocks.h"

namespace unisono::engine {
namespace {

// Number of bytes of each source that are decoded at once, small enough that all sources stay in
// the cache.
constexpr std::size_t kDecodedBytes = 128 * kBlockBytes;

}  // namespace

transport::Sent send_coded(Execution& run, const BoundPass& pass, std::size_t slot_bytes,
                           std::size_t done, std::size_t ready) noexcept {
  const BoundOperand* const operands = run.operation.program->operands.data();
  const int lane = operands[pass.targets].lane;
  const std::size_t block = coded_bytes(pass.code, kCodeBlock);
  const std::size_t most = slot_bytes / block * kBlockBytes;
  const std::size_t bytes = whole_blocks(pass, done, std::min(ready - done, most));
  if (bytes == 0) {
    return {};  // its writer has not made a whole block yet
  }
  const std::size_t coded = message_bytes(pass, bytes);
  std::byte* const slot = run.transport.reserve(lane, coded);
  if (slot == nullptr) {
    return {};
  }
  kernels::find_coded_blocks(pass.code).encode(slot, run.own(operands[pass.sources]) + done,
                                               bytes / sizeof(float));
  run.transport.commit(lane, coded, run.signature_of(pass, done, coded));
  return {.bytes = bytes, .shared = false};
}

bool decode_sources(Execution& run, const BoundPass& pass, std::size_t done,
                    std::size_t& bytes) noexcept {
  bytes = whole_blocks(pass, done, std::min(bytes, kDecodedBytes));
  const kernels::CodedBlockFunctions functions = kernels::find_coded_blocks(pass.code);
  const std::size_t count = bytes / sizeof(float);
  std::byte* room = run.bounce.data();
  for (std::uint32_t i = pass.sources; i < pass.sources_end && bytes != 0; ++i) {
    const void*& source = run.sources[i - pass.sources];
    if (pass.rounds) {
      functions.encode(room + kDecodedBytes, source, count);
      source = room + kDecodedBytes;
    } else if (run.operation.program->operands[i].place != OperandPlace::lane) {
      continue;
    }
    functions.decode(room, source, count);
    source = room;
    room += kDecodedBytes;
  }
  return bytes != 0;
}

std::size_t coded_bounce_bytes(std::size_t sources) {
  return std::max<std::size_t>(sources, 2) * kDecodedBytes;
}

}  // namespace unisono::engine
