"""Collectives on GPU memory, between ranks on one host.

    group = unisono.device.DeviceGroup(comm, device=0)
    group.all_reduce(gradients, op="avg")         # on torch's current stream, and returns at once
    group.synchronize()

The collectives are those of a communicator, with `stream` instead of `timeout_ms`. None of them
waits on the host. Buffers are torch tensors, CuPy or Numba arrays, or memory from allocate(). They
must be C-contiguous, have __dlpack__ or __cuda_array_interface__, and live until the stream has
completed the call.

`stream` is a torch or CuPy stream, an object with __cuda_stream__, or the number of a stream. None
stands for torch's current stream, or for the legacy default stream if the program does not use CUDA
through torch. The guide is docs/guides/gpus.md.
"""

import atexit
import weakref

from unisono import _core
from unisono._core import DeviceArray

__all__ = ["DeviceArray", "DeviceGroup"]

_open = weakref.WeakSet()


class DeviceGroup(_core.DeviceGroup):
    """A group of the ranks of `comm`. Several ranks may share one GPU. Collective.

    device: the number of the CUDA device.
    channels: thread blocks per operation; 0: automatic. All ranks pass the same number.
    timeout_ms: the longest wait for a late rank; -1: five minutes, 0: no limit.
    scratch_bytes: bytes of device memory for scratch data. All ranks pass the same number.

    allocate(shape, dtype) returns memory that all ranks can access, which avoids copies between
    processes. torch.from_dlpack() and cupy.from_dlpack() accept this memory. check() raises the
    error that has ended the group. synchronize(stream, timeout_ms) waits for all work of the
    stream.

    Errors are those of the communicator. An invalid call raises at once. After a failure on the
    device, the next call raises.
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
