"""Collectives on the memory of GPUs, between ranks of one host.

    group = unisono.device.DeviceGroup(comm, device=0)
    group.all_reduce(gradients, op="avg")         # on torch's current stream, and returns at once
    group.synchronize()

The methods are those of a communicator, with `stream` in place of `timeout_ms`, and nothing waits
on the host. Buffers are tensors of torch, arrays of CuPy or Numba, or what allocate() gives: whatever
has __dlpack__ or __cuda_array_interface__, C-contiguous, and alive until the stream has passed.
`stream`: that of torch or CuPy, one with __cuda_stream__, or its number; None: the one that torch uses now, or the legacy
default stream where a program does not use CUDA by torch. docs/guides/gpus.md is the guide.
"""

import atexit
import weakref

from unisono import _core
from unisono._core import DeviceArray

__all__ = ["DeviceArray", "DeviceGroup"]

_open = weakref.WeakSet()


class DeviceGroup(_core.DeviceGroup):
    """The ranks of `comm`, each with a GPU, or several with one. Collective.

    device: as CUDA counts them. channels: thread blocks of an operation, the same on all ranks; 0:
    chosen. timeout_ms: for a rank that does not come; -1: five minutes; 0: for ever. scratch_bytes: of
    device memory, the same on all ranks.

    allocate(shape, dtype) is memory that all ranks can reach, and gives no copy on the way between
    processes: torch.from_dlpack() and cupy.from_dlpack() take it. check() raises what has ended the
    group, synchronize(stream, timeout_ms) waits for all of the stream. Errors are those of the
    communicator: what is wrong with a call at once, what happens later by the next call.
    """

    def __init__(self, comm, *, device=0, channels=0, timeout_ms=-1, scratch_bytes=32 << 20):
        super().__init__(
            comm, device=device, channels=channels, timeout_ms=timeout_ms, scratch_bytes=scratch_bytes
        )
        _open.add(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@atexit.register
def _close_all():
    for group in list(_open):
        group.close()
