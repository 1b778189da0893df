// Collectives on GPU memory, between ranks on one host. A kernel on each rank's stream does this
// rank's part of a call. No host thread waits.
//
//   unisono::DeviceGroup group(comm, {.device = 0});
//   group.run({.collective = unisono::Collective::all_reduce, .in = gradients, .out = gradients,
//              .count = n, .dtype = unisono::Dtype::bf16, .reduction = unisono::avg}, stream);
//   group.synchronize(stream);
//
// Buffers and streams must be on the rank's device. Each device must be able to access the memory
// of the other devices.
// - Ranks that are threads of one process access each other's buffers directly. On several devices,
//   the buffers must be from cudaMalloc. Each rank needs its own stream: kernels wait for each
//   other, and would block on a shared stream.
// - Ranks that are processes access buffers from allocate() directly.
// - A buffer in other memory is first copied to a staging buffer.
//
// Within one call, all ranks must use the same kind of memory. A rank without elements may pass
// null. Null counts as directly accessible memory, but between processes only if the group has
// memory from allocate().
//
// Limits: `user`, premul_sum of integers, and a timeout_ms in the call throw usage.
// DeviceOptions::timeout_ms sets the time limit.
// In place: as in rules.h, with three exceptions. An all_reduce must be in place on all ranks or on
// none. A broadcast must be in place on all ranks (`in` may be null). An all_to_all must not be in
// place on any rank.
//
// CUDA graphs: calls may be captured. Within a graph, the collectives run in the order of the
// calls, even on different streams. All ranks must replay their graphs in the same order. Only the
// stream of a replay orders the replay relative to the group's other calls, so make other streams
// wait for the replay with an event. The replay must finish before the group is closed.
//
// Errors: an invalid call throws usage at once. A later failure (a rank dies, is late or makes a
// different call) stops the kernels of all ranks within about 20 ms. The next run(), check() or
// synchronize() throws the error. Do not use the outputs of the stopped kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "unisono/communicator.hpp"

namespace unisono {

namespace detail {
class DeviceState;
}

// A CUstream, or the equivalent cudaStream_t; nullptr: the legacy default stream.
using DeviceStream = void*;

// Options of a DeviceGroup.
struct DeviceOptions {
  int device = 0;       // CUDA device number
  int channels = 0;     // thread blocks per operation, the same on all ranks; 0: automatic
  int timeout_ms = -1;  // limit of the wait for a late rank; -1: five minutes; 0: no limit
  std::size_t scratch_bytes = std::size_t{32} << 20;  // in device memory, the same on all ranks
};

// Threads: one thread at a time may call run(), allocate() and close(). Any thread may call
// check(), synchronize() and set_timeout().
class UNISONO_EXPORT DeviceGroup {
 public:
  // Collective. Makes a group of all ranks of `comm`. `comm` must outlive the group.
  // Errors: config (no driver, no such device, a library without kernels, a device that cannot
  // access another device's memory), usage (ranks on several hosts, different options), resource.
  explicit DeviceGroup(Communicator& comm, const DeviceOptions& options = {});
  DeviceGroup(DeviceGroup&&) noexcept;
  DeviceGroup& operator=(DeviceGroup&&) noexcept;
  // Closes the group. If other ranks still run a collective of the group, they detect that this
  // rank has left.
  ~DeviceGroup();

  // Collective. Starts a collective on the stream, after the work that the stream already holds,
  // and returns.
  // Shapes: see rules.h.
  // In place: see the top of this file.
  // Errors: usage at once; the error that has ended the group.
  void run(const Call& call, DeviceStream stream);
  // Collective. Returns device memory that all ranks can access while the group lives. `bytes` may
  // differ between ranks.
  // Units: bytes.
  // Errors: usage, resource, the error that has ended the group.
  void* allocate(std::size_t bytes);

  // Collective. Waits until this rank's calls are done and all other ranks have called close();
  // until then, other ranks may access this rank's memory. If a rank has not called close() after
  // timeout_ms, the world ends. No other call of the group may follow.
  // Units: milliseconds; -1: the limit of `comm`.
  void close(int timeout_ms = -1);
  // Local. Changes DeviceOptions::timeout_ms on this rank.
  // Threads: any.
  // Errors: usage if the limit is negative.
  void set_timeout(int timeout_ms);
  // Local. Throws the error that has ended the group, if any.
  // Threads: any.
  void check() const;
  // Local. Returns when all work on the stream is done.
  // Units: milliseconds; 0: no limit.
  // Threads: any.
  // Errors: timeout; the error that has ended the group.
  void synchronize(DeviceStream stream, int timeout_ms = 0) const;

 private:
  std::unique_ptr<detail::DeviceState> state_;
};

}  // namespace unisono
