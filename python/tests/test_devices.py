"""Collectives on device memory, with a driver whose device memory the host can read."""

import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import unisono
from unisono.device import DeviceGroup

FAKE = Path(__file__).parents[2] / "build/dev/src/device/libunisono_testing_cuda.so"
with_fake = pytest.mark.skipif(not FAKE.exists(), reason=f"there is no {FAKE}: cmake --build --preset dev")


def host_view(array):
    """numpy's view of the simulated GPU memory."""
    import ml_dtypes

    address = array._address if isinstance(array, Foreign) else address_of(array)
    dtype = np.dtype(getattr(ml_dtypes, array.dtype, None) or array.dtype)
    count = int(np.prod(array.shape))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype).reshape(array.shape)


def address_of(array):
    """Returns the address by DLPack, which torch reads."""
    capsule = array.__dlpack__(stream=-1)
    name = ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p.from_address(name(capsule, b"dltensor")).value


class Foreign:
    """Offers only __cuda_array_interface__, as some libraries do."""

    def __init__(self, array, **more):
        self.shape, self.dtype, self._address = array.shape, array.dtype, address_of(array)
        self._array = array
        self.__cuda_array_interface__ = dict(array.__cuda_array_interface__, **more)


def collectives(comm):
    rank, ranks = comm.rank, comm.size
    with DeviceGroup(comm, timeout_ms=60_000) as group:
        assert (group.rank, group.size, group.device, group.closed) == (rank, ranks, 0, False)
        data, out = group.allocate([ranks, 3]), group.allocate([ranks, 3])
        host_view(data)[:] = rank + 1
        assert group.all_reduce(data, out) is out
        group.synchronize()
        assert (host_view(out) == sum(range(1, ranks + 1))).all()
        assert group.all_reduce(data, op="max", stream=0) is data
        group.synchronize(timeout_ms=60_000)
        assert (host_view(data) == ranks).all()
        one = group.allocate((3,))
        host_view(one)[:] = [rank, 10, 20]
        group.all_gather(Foreign(one), out)
        group.synchronize()
        assert (host_view(out) == [[r, 10, 20] for r in range(ranks)]).all()
        group.broadcast(one, root=1)
        group.reduce_scatter(out, one)
        group.synchronize()
        assert (host_view(one) == [rank * ranks, 10 * ranks, 20 * ranks]).all()
        halves = group.allocate([6], "bfloat16")
        host_view(halves)[:] = 0.5
        group.all_reduce(halves)
        parts = group.allocate([2 * ranks - 1])
        own = group.allocate([1 if rank == 0 else 2])
        host_view(own)[:] = rank
        group.all_gather_v(own, parts, [1] + [2] * (ranks - 1))
        group.barrier()
        group.synchronize()
        assert (host_view(halves) == 0.5 * ranks).all()
        assert host_view(parts).tolist() == [0] + [r for r in range(1, ranks) for _ in range(2)]
        mistakes(group, data, halves)
        group.check()
        comm.barrier()
    assert group.closed
    with pytest.raises(unisono.UsageError, match="the device group is closed"):
        group.all_reduce(data)
    assert host_view(data).shape == (ranks, 3), "it lives as long as somebody has it"


def mistakes(group, data, halves):
    with pytest.raises(ValueError, match="data is not in GPU memory"):
        group.all_reduce(np.zeros(3, "f4"))
    with pytest.raises(TypeError, match="data is a list, which has no GPU memory"):
        group.all_reduce([1])
    with pytest.raises(TypeError, match="out is of bfloat16, but data of float32"):
        group.all_reduce(data, halves)
    with pytest.raises(ValueError, match="out has 6 elements; it must have"):
        group.all_gather(halves, halves)
    with pytest.raises(ValueError, match="data is not C-contiguous"):
        group.all_reduce(Foreign(data, strides=(4, 12)))
    with pytest.raises(TypeError, match="stream is a str"):
        group.all_reduce(data, stream="mine")
    for shape in ([2**33, 2**31], [2**62], [2**64 - 20]):
        with pytest.raises(unisono.ResourceError, match="more than any device has"):
            group.allocate(shape, "uint8" if len(shape) == 2 else "float32")
    with pytest.raises(unisono.UsageError, match="no device kernel"):
        group.all_reduce(data, op=lambda mine, other: None)
    with pytest.raises(AttributeError, match="__cuda_array_interface__ has no bfloat16"):
        halves.__cuda_array_interface__
    assert data.__cuda_array_interface__["typestr"] == "<f4"
    assert halves.__dlpack_device__() == (2, 0)
    capsule = data.__dlpack__(stream=None, max_version=(1, 0), copy=None)
    del capsule
    gc.collect()


class Stream:
    def __cuda_stream__(self):
        return 0, 0


class TorchStream:
    cuda_stream = 0


class CupyStream:
    ptr = 0


def streams(comm):
    with DeviceGroup(comm) as group:
        data = group.allocate([4])
        host_view(data)[:] = 1
        for stream in (None, 0, Stream(), TorchStream(), CupyStream()):
            group.all_reduce(data, stream=stream)
            group.synchronize(stream)
        assert (host_view(data) == comm.size**5).all()
        comm.barrier()


def no_driver(comm):
    with pytest.raises(unisono.ConfigError, match="/no/driver"):
        DeviceGroup(comm)
    comm.barrier()


def stays_open(comm):
    """Ends without close(), as programs do."""
    group = DeviceGroup(comm)
    data = group.allocate([4])
    group.all_reduce(data)
    group.synchronize()
    comm.barrier()


def everywhere(name, ranks, driver):
    """Each rank is a process: a stream of the fake driver is a thread of its process."""
    program = [sys.executable, __file__, name]
    environment = dict(os.environ, UNISONO_CUDA=str(driver), UNISONO_JOB=f"devices-{os.getpid()}-{name}")
    jobs = [
        subprocess.Popen(
            program, env=dict(environment, UNISONO_RANK=str(rank), UNISONO_SIZE=str(ranks)),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for rank in range(ranks)
    ]  # fmt: skip
    for rank, job in enumerate(jobs):
        said, _ = job.communicate(timeout=100)
        assert (job.returncode, said) == (0, ""), f"rank {rank}: {said}"


@with_fake
@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives(ranks):
    everywhere("collectives", ranks, FAKE)


@with_fake
@pytest.mark.parametrize("name", ["streams", "stays_open"])
def test_groups(name):
    everywhere(name, 2, FAKE)


def test_without_a_driver():
    everywhere("no_driver", 2, "/no/driver")


if __name__ == "__main__":
    globals()[sys.argv[1]](unisono.connect())
