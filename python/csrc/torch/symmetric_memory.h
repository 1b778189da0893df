// torch.distributed._symmetric_memory on the CPU: an allocator of shared memory for process groups
// on one host.
#pragma once

namespace unisono_torch {

// Registers the allocator for the device "cpu", unless another one is registered. set_backend()
// knows it as "UNISONO". May be called repeatedly.
void register_symmetric_memory();

}  // namespace unisono_torch
