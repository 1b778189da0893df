// Collectives on the memory of GPUs, between ranks of one host: a kernel on each rank's stream
// makes the passes of the rank; nothing waits on the host.
//
//   unisono::DeviceGroup group(comm, {.device = 0});
//   group.run({.collective = unisono::Collective::all_reduce, .in = gradients, .out = gradients,
//              .count = n, .dtype = unisono::Dtype::bf16, .reduction = unisono::avg}, stream);
//   group.synchronize(stream);
//
// Buffers and streams are those of the rank's device, and each device must reach the memory of the
// others. Ranks that are threads of one process reach each other's memory as it is, on several
// devices what cudaMalloc gave; each has a stream of its own: on a shared one a kernel would stand
// behind those that wait for it. Ranks that are processes reach what allocate() gave. Other memory
// is copied aside on the way. All ranks' buffers are of the one or the other kind; null, of a rank
// without any elements, stands for memory that is reached, and between processes for that of
// allocate() in a group that has some.
// There is no kernel for `user`, nor for premul_sum of integers. A call's own timeout_ms is
// refused: DeviceOptions has the group's. The in-place rule is that of communicator.hpp, but that
// an all_reduce is in place on all ranks or on none, a broadcast on all (`in` may be null), and
// all_to_all on none. Calls may be captured into CUDA graphs, where they run in their order
// whatever their streams; all ranks must replay theirs in the same order. To the group's other
// calls a replay has the order of its stream alone: let other streams wait for it by an event, and
// let it be done before the group is closed.
//
// Errors: what is wrong with a call is told at once (usage). What happens later (a rank that dies,
// is late or means another call) stops the kernels of all ranks within some 20 ms, and is thrown by
// the next run(), check() or synchronize(); what they were to write is not to be used.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "unisono/communicator.hpp"

namespace unisono {

namespace detail {
class DeviceState;
}

// A CUstream, or the cudaStream_t that is the same; nullptr: the legacy default stream.
using DeviceStream = void*;

struct DeviceOptions {
  int device = 0;       // as CUDA counts them
  int channels = 0;     // thread blocks of an operation, the same on all ranks; 0: chosen
  int timeout_ms = -1;  // for a rank that does not come; -1: five minutes; 0: for ever
  std::size_t scratch_bytes = std::size_t{32} << 20;  // of device memory
};

// Thread rule: one thread at a time calls run() and allocate(); check(), synchronize() and
// set_timeout() may be called from any thread.
class UNISONO_EXPORT DeviceGroup {
 public:
  // Collective. `comm` must live as long. Errors: config (no driver, no such device, a library
  // without kernels, a device that does not reach the memory of another), usage (ranks on several
  // hosts, other options on another rank).
  explicit DeviceGroup(Communicator& comm, const DeviceOptions& options = {});
  DeviceGroup(DeviceGroup&&) noexcept;
  DeviceGroup& operator=(DeviceGroup&&) noexcept;
  // As close(). Collective only where it must be: peers that run see a rank that left.
  ~DeviceGroup();

  // Starts a collective on the stream, after what was put there before, and returns.
  void run(const Call& call, DeviceStream stream);
  // Device memory that all ranks can reach, as long as the group lives. Collective: all ranks ask,
  // for as many bytes as each needs.
  void* allocate(std::size_t bytes);

  // Waits until this rank's calls are done and the other ranks leave as well, because they may
  // reach this one's memory. Who has not come after timeout_ms (-1: the limit of `comm`) ends the
  // communicator for all ranks. No other call may follow.
  void close(int timeout_ms = -1);
  // From now on the limit of DeviceOptions::timeout_ms, on this rank. Throws usage if it is
  // negative.
  void set_timeout(int timeout_ms);
  // Throws what has ended the group.
  void check() const;
  // Returns when all of the stream is done. timeout_ms 0: no limit.
  void synchronize(DeviceStream stream, int timeout_ms = 0) const;

 private:
  std::unique_ptr<detail::DeviceState> state_;
};

}  // namespace unisono
