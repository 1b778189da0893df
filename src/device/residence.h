// The location of a call's buffers and stream.
#pragma once

namespace unisono::device {

class Context;

// The location of a buffer.
struct Residence {
  bool on_device = true;
  int device = 0;  // by the numbering of this process
  // Other devices can access memory from cudaMalloc, but not pool or mapped memory, unless its
  // owner permits it.
  bool for_peers = true;
};

// `own`: returned for memory on all devices, and for memory on none.
Residence residence_of(const void* data, int own);

// A kernel that uses memory which its device cannot reach destroys the process's whole context
// there, so this checks first. Errors: usage.
void check_buffers(const Residence& in, const Residence& out, const Context& context, int rank);
// Checks for the reasons why the driver would refuse a launch without saying why. Errors: usage.
void check_stream(void* stream, const Context& context, int rank);

}  // namespace unisono::device
