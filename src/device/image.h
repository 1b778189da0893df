// The kernel's input: one rank's passes as plain arrays, and the pointers of one launch. The same
// for a GPU and for the shim that runs the kernel's source on a CPU.
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
inline constexpr unsigned kThreads = 512;  // of a block

enum class OperandKind : std::uint8_t { input, output, scratch };

struct PassOperand {
  std::uint64_t offset = 0;  // of the chunk in the rank's input or output
  std::uint32_t slot = 0;    // of scratch
  std::int16_t rank = 0;
  OperandKind place = OperandKind::input;
};

struct PassWait {
  std::uint32_t rank = 0;
  std::uint32_t count = 0;  // of that rank's passes, its entry being the first
};

struct KernelPass {
  std::uint64_t bytes = 0;                               // of the chunk
  std::uint64_t signals = 0;                             // a bit for each rank that waits for it
  std::uint32_t operands = 0, sources = 0, targets = 0;  // sources first, in their order
  std::uint32_t waits = 0, wait_count = 0;
  std::uint32_t finish = 0;  // its result is a complete sum: divide it (avg)
  // In a v-form: the rank that the chunk is sent to, and the one that it comes from. The sizes are
  // those of the latter if `receives`.
  std::uint16_t to = 0, from = 0;
  std::uint32_t receives = 0;
};

struct Image {
  const KernelPass* passes = nullptr;
  const PassOperand* operands = nullptr;
  const PassWait* waits = nullptr;
  std::uint32_t pass_count = 0;
  std::uint32_t exit_waits = 0, exit_wait_count = 0;
  std::uint32_t slots = 0;   // of scratch
  std::uint32_t stride = 0;  // the most passes of any rank
};

// A rank's message to each other rank when it enters an operation.
struct Record {
  // Addresses in their owner's process. In a v-form `input` is the block for the receiver.
  std::uint64_t input = 0, output = 0;
  std::uint64_t signature = 0;
  std::uint32_t input_region = 0, output_region = 0;  // 0: accessed directly
  std::uint64_t bytes = 0;                            // of that block
  std::uint64_t most = 0;                             // of the rank's blocks
};

// A rank's memory for other ranks: counts [channel][from] first, then these offsets.
struct ArenaLayout {
  std::uint64_t records = 0;  // [channel][2][from]
  std::uint64_t epochs = 0;   // [channel]
  std::uint64_t scratch = 0;
};

struct Status {                // in host memory
  std::uint32_t late = 0;      // what this channel waits for: a late_word(), or 0
  std::uint32_t mismatch = 0;  // the rank that makes a different call, plus 1
};

// A rank that is waited for, with the operation from its count: a rank that is late repeatedly
// starts a new wait each time. Threads of a block that wait for different ranks take turns in
// writing.
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

// A v-form's block in the rank's own buffers.
struct Block {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// The argument of a kernel, which CUDA limits to 4 KiB.
struct Launch {
  Image image;
  std::uint64_t arenas[kMaxRanks] = {};  // their addresses on this rank
  ArenaLayout arena;
  // [region][rank]: the difference between the memory's address on its owner and on this rank.
  const std::uint64_t* shifts = nullptr;
  std::uint64_t input = 0, output = 0;
  std::uint32_t input_region = 0, output_region = 0;
  std::uint64_t signature = 0;
  std::uint64_t part = 0;   // bytes of a chunk's slice that are done at once
  std::uint64_t parts = 1;  // in a v-form they are counted when all blocks are known
  double factor = 1;        // premul_sum: each input is multiplied by it
  std::uint32_t op = 0;     // a ReduceOp
  std::uint32_t multiplies = 0;
  std::uint32_t divisor = 1;  // avg
  std::uint32_t rank = 0, ranks = 1, channels = 1;
  std::uint32_t has_blocks = 0;  // it is a v-form
  Block sent[kMaxRanks] = {};
  Block received[kMaxRanks] = {};
  const std::uint32_t* stop = nullptr;  // the host's signal to give up
  Status* status = nullptr;             // [channel]
};
static_assert(sizeof(Launch) <= 4096);

}  // namespace unisono::device
