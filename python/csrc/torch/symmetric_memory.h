// torch.distributed._symmetric_memory on the CPU: an allocator of shared memory, with any process
// group of one host.
#pragma once

namespace unisono_torch {

// Makes it the allocator of the device "cpu", unless somebody else's is there; known to
// set_backend() as "UNISONO". May be called again.
void register_symmetric_memory();

}  // namespace unisono_torch
