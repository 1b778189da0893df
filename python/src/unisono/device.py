"""Collectives on GPU memory, between ranks on one host.

    group = unisono.device.DeviceGroup(comm, device=0)
    group.all_reduce(gradients, op="avg")         # on torch's current stream, and returns at once
    group.synchronize()

The methods are those of a communicator, with `stream` instead of `timeout_ms`; none of them waits on
the host. Buffers are torch tensors, CuPy or Numba arrays, or memory from allocate(): objects with
__dlpack__ or __cuda_array_interface__, C-contiguous, and alive until the stream has passed.
`stream`: a stream of torch or CuPy, an object with __cuda_stream__, or its number; None: torch's
current stream, or the legacy default stream if the program does not use CUDA through torch. The guide
is docs/guides/gpus.md.
"""

import atexit
import weakref

from unisono import _core
from unisono._core import DeviceArray

__all__ = ["DeviceArray", "DeviceGroup"]

_open = weakref.WeakSet()


class DeviceGroup(_core.DeviceGroup):
    """A group of the ranks of `comm`, each with its own GPU or sharing one. Collective.

    device: CUDA device number. channels: thread blocks per operation, equal on all ranks; 0: automatic.
    timeout_ms: limit of the wait for a late rank; -1: five minutes, 0: no limit. scratch_bytes: bytes of
    device memory for scratch data, equal on all ranks.

    allocate(shape, dtype) returns memory that all ranks can access, which avoids copies between processes;
    torch.from_dlpack() and cupy.from_dlpack() accept it. check() raises the error that has ended the group.
    synchronize(stream, timeout_ms) waits for all work of the stream. Raises the communicator's errors: an
    invalid call raises at once, a later failure raises at the next call.
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
