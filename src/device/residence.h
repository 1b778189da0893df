// Locates and checks a call's buffers and stream.
#pragma once

namespace unisono::device {

class Context;

// The location of a buffer.
struct Residence {
  bool on_device = true;
  int device = 0;  // number in this process
  // Other devices can access memory from cudaMalloc. They can access pool memory or mapped memory
  // only if its owner permits it.
  bool for_peers = true;
};

// Returns the location of `data`. Null and managed memory count as located on device `own`.
Residence residence_of(const void* data, int own);

// Checks buffers before a launch, because a kernel that accesses unreachable memory destroys the
// process's context on that device. Errors: usage.
void check_buffers(const Residence& in, const Residence& out, const Context& context, int rank);
// Checks for problems that make the driver refuse a launch without an explanation. Errors: usage.
void check_stream(void* stream, const Context& context, int rank);

}  // namespace unisono::device
