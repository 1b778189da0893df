// Limits of the plans that are read: larger than any executor's, and small enough to bound the
// memory of a proof to about 1 GB, because a short file can contain large numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mscclpp/plan.h"

namespace unisono::mscclpp {

inline constexpr std::int64_t kMostGpus = 4096;
inline constexpr std::int64_t kMostChunks = 1 << 20;    // of a buffer
inline constexpr std::int64_t kMostChannels = 1 << 14;  // of a GPU
inline constexpr std::int64_t kMostNumber = 1 << 20;    // that a file says of blocks and semaphores
inline constexpr std::int64_t kMostBlocks = 1 << 16;    // of all GPUs
inline constexpr std::int64_t kMostNamedChunks = 1 << 22;  // by all operations

// GPUs, times GPUs, times chunks: what a proof holds of all of them. And as much of their sums.
inline constexpr std::int64_t kMostContributions = 1 << 26;

// The limit of the knowledge that thread blocks (before and after the next nop) and signals in
// transit have about each thread block that accesses the memory of one GPU.
inline constexpr std::int64_t kMostKnown = 1 << 26;

// Why the operations of a plan are more than are read; empty if they are not.
std::string too_large(const ExecutionPlan& plan);

// The largest message that the executor takes a plan for: its kernel counts the bytes of a buffer
// in 32 bits.
std::uint64_t most_bytes_of(const ExecutionPlan& plan);

// Describes the parts of a plan that are right but exceed the executor's limits. Its other limits
// (plan.h) are enforced when reading.
std::vector<std::string> beyond_executor(const ExecutionPlan& plan, std::size_t longest_block);

}  // namespace unisono::mscclpp
