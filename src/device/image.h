// The kernel's input: a rank's passes as plain arrays, and the pointers of one launch. A GPU and
// the test shim that runs the kernel's source on a CPU use the same input.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define UNISONO_DEVICE __host__ __device__
#define UNISONO_UNROLL _Pragma("unroll")
#else
#define UNISONO_DEVICE
#define UNISONO_UNROLL
#endif

namespace unisono::device {

inline constexpr int kMaxRanks = 64;
inline constexpr unsigned kThreads = 512;  // per block

enum class OperandKind : std::uint8_t { input, output, scratch };

struct PassOperand {
  std::uint64_t offset = 0;  // offset of the chunk in the rank's input or output
  std::uint32_t slot = 0;    // scratch slot
  std::int16_t rank = 0;
  OperandKind place = OperandKind::input;
};

struct PassWait {
  std::uint32_t rank = 0;
  std::uint32_t count = 0;  // number of its passes that must be complete
};

struct KernelPass {
  std::uint64_t bytes = 0;                               // size of the chunk
  std::uint64_t signals = 0;                             // one bit per rank that waits for it
  std::uint32_t operands = 0, sources = 0, targets = 0;  // sources first, in order
  std::uint32_t waits = 0, wait_count = 0;
  std::uint32_t finish = 0;  // the result is a complete sum, which avg divides
  // In a v-form, the chunk's destination and source rank. If `receives`, its size is that of the
  // block received from `from`, otherwise that of the block sent to `to`.
  std::uint16_t to = 0, from = 0;
  std::uint32_t receives = 0;
};

struct Image {
  const KernelPass* passes = nullptr;
  const PassOperand* operands = nullptr;
  const PassWait* waits = nullptr;
  std::uint32_t pass_count = 0;
  std::uint32_t exit_waits = 0, exit_wait_count = 0;
  std::uint32_t slots = 0;   // scratch slots
  std::uint32_t stride = 0;  // greatest number of passes of any rank
};

// Message that a rank sends to every rank when it enters an operation.
struct Record {
  // Addresses in the sender's process. In a v-form, `input` is the address of the receiver's block.
  std::uint64_t input = 0, output = 0;
  std::uint64_t signature = 0;
  std::uint32_t input_region = 0, output_region = 0;  // 0: accessed directly
  std::uint64_t bytes = 0;                            // bytes of the receiver's block
  std::uint64_t most = 0;                             // bytes of the sender's longest block
};

// Layout of a rank's memory for other ranks: counts [channel][from] come first, the rest at these
// offsets.
struct ArenaLayout {
  std::uint64_t records = 0;  // [channel][2][from]
  std::uint64_t epochs = 0;   // [channel]
  std::uint64_t scratch = 0;
};

struct Status {                // in host memory
  std::uint32_t late = 0;      // late_word() of the current wait, or 0
  std::uint32_t mismatch = 0;  // rank that makes a different call, plus 1
};

// Encodes a wait: the awaited rank, and the operation from its count, so that each operation starts
// a new wait. Threads of a block that wait for different ranks overwrite each other's words.
UNISONO_DEVICE inline std::uint32_t late_word(std::uint32_t rank, std::uint64_t count) {
  return static_cast<std::uint32_t>(count >> 32) << 8 | (rank + 1);
}
UNISONO_DEVICE inline std::uint32_t late_rank(std::uint32_t word) {
  return (word & 255U) - 1;
}
UNISONO_DEVICE inline bool is_same_wait(std::uint32_t word, std::uint32_t other) {
  return word != 0 && other != 0 && word >> 8 == other >> 8;
}
static_assert(kMaxRanks < 255);

// Block of a v-form in the rank's own buffers.
struct Block {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// Kernel argument, which CUDA limits to 4 KiB.
struct Launch {
  Image image;
  std::uint64_t arenas[kMaxRanks] = {};  // addresses of the arenas on this rank
  ArenaLayout arena;
  // [region][rank]: added to an address on the owner, gives the address on this rank.
  const std::uint64_t* shifts = nullptr;
  std::uint64_t input = 0, output = 0;
  std::uint32_t input_region = 0, output_region = 0;
  std::uint64_t signature = 0;
  std::uint64_t part = 0;   // bytes of a chunk's slice that are processed at once
  std::uint64_t parts = 1;  // for a v-form, count_parts() computes the number instead
  double factor = 1;        // premul_sum multiplies each input by it
  std::uint32_t op = 0;     // a ReduceOp
  std::uint32_t multiplies = 0;
  std::uint32_t divisor = 1;  // avg
  std::uint32_t rank = 0, ranks = 1, channels = 1;
  std::uint32_t has_blocks = 0;  // the call is a v-form
  Block sent[kMaxRanks] = {};
  Block received[kMaxRanks] = {};
  const std::uint32_t* stop = nullptr;  // the host's signal to give up
  Status* status = nullptr;             // [channel]
};
static_assert(sizeof(Launch) <= 4096);

}  // namespace unisono::device
