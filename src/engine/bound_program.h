// A program with sizes: flat arrays for the executor, in byte offsets and not in chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/layout.h"
#include "engine/program.h"
#include "kernels/kernels.h"

namespace unisono::engine {

struct BoundOperand {
  OperandPlace place = OperandPlace::input;
  int lane = 0;
  std::uint32_t sequence = 0;  // index among the lane's messages with bytes
  std::size_t offset = 0;      // in own buffers
};

struct BoundPass {
  std::size_t bytes = 0;
  bool send = false;
  bool transient = false;
  bool may_share = true;
  kernels::Store store = kernels::Store::cached;
  std::uint32_t step = 0;
  // Part of the signature of the pass's messages if only their two ends know their length
  // (all_to_all_v).
  std::uint64_t salt = 0;
  bool is_nothing = false;         // its message is one byte that nobody reads (bind.cc)
  MoveCode code = MoveCode::none;  // of its messages, or of what it copies (coded_pieces.h)
  bool rounds = false;             // it rounds what it copies
  // Bit i: source i holds one rank's contribution (Operand::single).
  std::uint64_t single_sources = 0;
  // Ranges in the arrays of BoundProgram.
  std::uint32_t sources = 0, sources_end = 0;
  std::uint32_t targets = 0, targets_end = 0;
  std::uint32_t waits = 0, waits_end = 0;
  std::uint32_t forwards = 0, forwards_end = 0;
};

struct BoundProgram {
  std::vector<BoundPass> passes = {};
  std::vector<BoundOperand> operands = {};
  std::vector<Dependency> waits = {};
  std::vector<std::uint32_t> forwards = {};
  std::size_t scratch_bytes = 0;
  std::size_t element = 1;
  // True if every message is short and each lane gets few messages, so that the passes may run one
  // after another. This cannot deadlock. A lane has room for all messages of two operations, so a
  // send never waits for a rank in the same operation. A receive at step s waits for a send at a
  // step <= s. Before this send, the sending rank waits only at earlier steps.
  bool small = false;
  // True if no message is reduced, so that all messages may be offered.
  bool copies_only = false;
  std::uint32_t coded_sources = 0;  // the most sources of a pass with a code
};

// Limits of a small program: the length of a message, and the number of bytes, headers included,
// that one lane may get. Every transport accepts this much without waiting for the reader.
inline constexpr std::size_t kSmallMessage = 256;
inline constexpr std::size_t kSmallLane = 768;

// Outputs of at least this size bypass the cache.
inline constexpr std::size_t kStreamingBytes = std::size_t{16} << 20;

// `private_sizes` is true if only a message's two ends know its length, so that they must compare
// it.
BoundProgram bind(const Program& program, std::span<const ChunkPlace> places, std::size_t element,
                  Extent extent, bool private_sizes = false);

}  // namespace unisono::engine
