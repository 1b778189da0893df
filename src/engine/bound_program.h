// A program with sizes: flat arrays that the executor walks, with byte offsets in place of chunks.
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
  std::uint32_t sequence = 0;  // which message of the lane, of those that have bytes
  std::size_t offset = 0;      // of own buffers
};

struct BoundPass {
  std::size_t bytes = 0;
  bool send = false;
  bool transient = false;
  bool may_share = true;
  kernels::Store store = kernels::Store::cached;
  std::uint32_t step = 0;
  // Part of the signature of its messages, where only their two ends know their length
  // (all_to_all_v).
  std::uint64_t salt = 0;
  bool is_nothing = false;         // its message is one byte that nobody reads (bind.cc)
  MoveCode code = MoveCode::none;  // of its messages, or of what it copies (coded_pieces.h)
  bool rounds = false;             // what it copies
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
  // Every message is short and a lane gets few of them: the passes may run one after the other.
  // That cannot block for ever: a lane has room for all that two operations put into it, so sends
  // never wait for a rank that is in the same operation; and a receive at step s waits for a send
  // at a step <= s, before which its sender waits only at earlier steps.
  bool small = false;
  // No message is reduced with anything: all may be offered.
  bool copies_only = false;
  std::uint32_t coded_sources = 0;  // the most sources of a pass that has a code
};

// The longest message of a small program, and how many bytes with their headers one lane may get.
// Every transport carries this much without waiting for the reader.
inline constexpr std::size_t kSmallMessage = 256;
inline constexpr std::size_t kSmallLane = 768;

// Outputs of at least this much bypass the cache.
inline constexpr std::size_t kStreamingBytes = std::size_t{16} << 20;

// `private_sizes`: a message's length is known to its two ends alone, so that they must compare it.
BoundProgram bind(const Program& program, std::span<const ChunkPlace> places, std::size_t element,
                  Extent extent, bool private_sizes = false);

}  // namespace unisono::engine
