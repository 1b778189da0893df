// Where the buffers and the stream of a call are.
#pragma once

namespace unisono::device {

class Context;

// Where a buffer lies.
struct Residence {
  bool on_device = true;
  int device = 0;  // as this process counts
  // Other devices have access to all that cudaMalloc gave, but not to what came from a pool or was
  // mapped, unless its owner says so.
  bool for_peers = true;
};

// `own`: the device of what lies on all devices, and of what is nowhere.
Residence residence_of(const void* data, int own);

// A kernel that uses memory which its device does not reach ends all that the process has there.
// Errors: usage.
void check_buffers(const Residence& in, const Residence& out, const Context& context, int rank);
// What the driver does not say of a launch that it refuses. Errors: usage.
void check_stream(void* stream, const Context& context, int rank);

}  // namespace unisono::device
