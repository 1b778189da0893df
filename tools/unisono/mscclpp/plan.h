// An execution plan: a collective in the form of MSCCL++'s executor, with the operations of each
// thread block of each GPU, in order.
//
// MSCCL++ (github.com/microsoft/mscclpp) reads plans as JSON. The meaning of fields and operations
// is defined here by its parser (src/core/executor/execution_plan.cc) and its kernel
// (src/core/include/execution_kernel.hpp), both at commit 00668b4a41ac: the format with
// `input_chunks`, `remote_buffers` and `semaphores`. That executor has run none of these plans.
//
// Thread blocks run concurrently. A GPU accesses the memory of other GPUs directly: a `put` is done
// when its block continues. Channels order operations between GPUs: a `signal` increments a counter
// at the other end, and a `wait` decrements it. Between thread blocks of one GPU, semaphores work
// in the same way, and at a barrier all blocks wait for each other. Within a block, threads are
// unordered until a `nop` synchronises them: reads, writes, signals and waits before the `nop`
// precede those after it; nothing else is ordered. Counters outlive a launch, so each counter must
// have its initial value again when the plan ends.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "executors/buffers.h"
#include "schedule/schedule.h"

namespace unisono::mscclpp {

enum class OperationType : std::uint8_t {
  nop,
  barrier,
  put,
  get,
  copy,
  reduce,
  reduce_send,
  read_reduce,
  read_reduce_send,
  signal,
  wait,
  relaxed_signal,
  relaxed_wait,
  release,
  acquire
};

// The effect of an operation: `moves` copies its sources to its targets one by one, `adds` puts the
// sum of all sources into all targets.
enum class Effect : std::uint8_t { joins, moves, adds, raises, lowers };

struct OperationTraits {
  OperationType type;
  std::string_view word;  // name in the JSON
  Effect effect;
  // The places on other GPUs: always the first place, or all from the second one on.
  bool remote_source;
  bool remote_target;
};

inline constexpr std::array<OperationTraits, 15> kOperations = {
    {{OperationType::nop, "nop", Effect::joins, false, false},
     {OperationType::barrier, "barrier", Effect::joins, false, false},
     {OperationType::put, "put", Effect::moves, false, true},
     {OperationType::get, "get", Effect::moves, true, false},
     {OperationType::copy, "copy", Effect::moves, false, false},
     {OperationType::reduce, "re", Effect::adds, false, false},
     {OperationType::reduce_send, "res", Effect::adds, false, true},
     {OperationType::read_reduce, "rre", Effect::adds, true, false},
     {OperationType::read_reduce_send, "rres", Effect::adds, true, true},
     {OperationType::signal, "signal", Effect::raises, false, false},
     {OperationType::wait, "wait", Effect::lowers, false, false},
     {OperationType::relaxed_signal, "rlxsignal", Effect::raises, false, false},
     {OperationType::relaxed_wait, "rlxwait", Effect::lowers, false, false},
     {OperationType::release, "sem_release", Effect::raises, false, false},
     {OperationType::acquire, "sem_acquire", Effect::lowers, false, false}}};

constexpr const OperationTraits& traits_of(OperationType type) {
  return kOperations.at(static_cast<std::size_t>(type));
}
constexpr bool has_data(OperationType type) {
  const Effect effect = traits_of(type).effect;
  return effect == Effect::moves || effect == Effect::adds;
}

// Consecutive chunks in a buffer of a GPU.
struct PlanPlace {
  int gpu = 0;
  Buffer buffer = Buffer::input;
  int offset = 0;  // in chunks
  int chunks = 1;

  friend bool operator==(const PlanPlace&, const PlanPlace&) = default;
};

// One of its chunks, in the terms of tools/unisono/executors.
constexpr executors::BufferPlace chunk_of(const PlanPlace& place, int chunk) {
  return {.buffer = place.buffer, .offset = place.offset + chunk};
}

bool overlap(const PlanPlace& one, const PlanPlace& other);

struct PlanOperation {
  OperationType type = OperationType::nop;
  std::vector<PlanPlace> sources = {};
  std::vector<PlanPlace> targets = {};
  std::vector<int> channels = {};    // channels of the GPU, for signal and wait
  std::vector<int> semaphores = {};  // semaphores of the GPU, for acquire and release
  int barrier = 0;
  int barrier_blocks = 0;  // number of blocks that join it
};

using ThreadBlock = std::vector<PlanOperation>;

struct PlanGpu {
  std::array<int, 3> chunks = {0, 0, 0};  // in input, output and scratch
  // The GPU at the other end of each channel. The k-th one to a GPU is one channel with the k-th
  // one from there.
  std::vector<int> channels = {};
  std::vector<int> semaphores = {};  // initial count of each
  std::vector<ThreadBlock> blocks = {};
};

struct ExecutionPlan {
  std::string name = {};
  Collective collective = Collective::all_reduce;
  // Files do not contain it: a plan that is read gets the one for which it is valid, if any.
  int root = 0;
  bool in_place = false;
  int threads = 1024;  // threads per block
  int alignment = 16;  // in bytes; a chunk is a multiple of it
  bool doubles_scratch = false;
  std::uint64_t least_bytes = 0;
  std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
  std::vector<PlanGpu> gpus = {};
};

// The executor's limits (execution_common.hpp, the same commit).
inline constexpr std::size_t kMostOperationsOfBlock = 64;
inline constexpr std::size_t kMostChannelsOfBlock = 16;
inline constexpr std::size_t kMostRemoteBuffersOfBlock = 16;
inline constexpr std::size_t kMostChannelsOfOperation = 8;
inline constexpr std::size_t kMostSemaphoresOfOperation = 16;
inline constexpr int kMostBarriers = 16;

// Returns, without moves, the schedule whose effect a plan must have.
Schedule shape_of(const ExecutionPlan& plan);

// The other end of each channel of each GPU: its number at the other GPU, -1 if that one has none
// for it.
std::vector<std::vector<int>> other_ends(const ExecutionPlan& plan);

// Returns a collective's name in these files; empty: it has none.
std::string_view word_of(Collective collective);

}  // namespace unisono::mscclpp
