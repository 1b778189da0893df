// What a kernel is told: one rank's passes as plain arrays, and the pointers of one launch. The same
// for a GPU and for the shim that runs the kernel's source on a CPU.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define UNISONO_DEVICE __host__ __device__
#else
#define UNISONO_DEVICE
#endif

namespace unisono::device {

inline constexpr int kMaxRanks = 64;

enum class Place : std::uint8_t { input, output, scratch };

struct Operand {
  std::uint64_t offset = 0;  // of the chunk in the rank's input or output
  std::uint32_t slot = 0;    // of scratch
  std::int16_t rank = 0;
  Place place = Place::input;
};

struct Wait {
  std::uint32_t rank = 0;
  std::uint32_t count = 0;  // of passes of that rank, its entry being the first
};

struct Pass {
  std::uint64_t bytes = 0;                         // of the chunk
  std::uint64_t signals = 0;                       // a bit for each rank that waits for it
  std::uint32_t operands = 0, sources = 0, targets = 0;  // first the sources, in their order
  std::uint32_t waits = 0, wait_count = 0;
  std::uint32_t finish = 0;  // its result is a whole sum: divide it (avg)
};

struct Image {
  const Pass* passes = nullptr;
  const Operand* operands = nullptr;
  const Wait* waits = nullptr;
  std::uint32_t pass_count = 0;
  std::uint32_t exit_waits = 0, exit_wait_count = 0;
  std::uint32_t slots = 0;   // of scratch
  std::uint32_t stride = 0;  // the most passes that any rank has
};

// What a rank tells each other when it enters an operation.
struct Record {
  std::uint64_t input = 0, output = 0;  // addresses, as their owner has them
  std::uint64_t signature = 0;
  std::uint32_t input_region = 0, output_region = 0;  // 0: reached as it is
};

// A rank's memory for others: counts [channel][from], records [channel][2][from], epochs [channel].
struct Arena {
  std::uint64_t* counts = nullptr;
  Record* records = nullptr;
  std::uint64_t* epochs = nullptr;
  unsigned char* scratch = nullptr;
};

struct Status {  // in memory of the host
  std::uint64_t done = 0;      // epochs
  std::uint32_t late = 0;      // the rank that this channel waits for, plus 1
  std::uint32_t mismatch = 0;  // the rank that means another call, plus 1
};

struct Launch {
  Image image;
  Arena arenas[kMaxRanks];
  // [region][rank]: from where a rank has its memory to where this rank has it.
  const std::uint64_t* shifts = nullptr;
  std::uint64_t input = 0, output = 0;
  std::uint32_t input_region = 0, output_region = 0;
  std::uint64_t signature = 0;
  std::uint64_t part = 0;   // bytes of a chunk's slice that are done at once
  std::uint64_t parts = 1;
  double factor = 1;  // premul_sum: each input is multiplied by it
  std::uint32_t op = 0;  // a ReduceOp
  std::uint32_t multiplies = 0;
  std::uint32_t divisor = 1;  // avg
  std::uint32_t rank = 0, ranks = 1, channels = 1;
  const std::uint32_t* stop = nullptr;  // the host's word: give up
  Status* status = nullptr;             // [channel]
};

}  // namespace unisono::device
