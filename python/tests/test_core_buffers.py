"""Buffers that unisono accepts, and the errors for objects that it refuses."""

import array

import ml_dtypes
import numpy as np
import pytest
import torch
import unisono


@pytest.fixture
def comm():
    with unisono.connect(rank=0, size=1, job="buffers") as alone:
        yield alone


def both(make, read, **options):
    """Sums on two ranks, each with its own buffer."""
    results = unisono.run_threads(2, lambda comm: comm.all_reduce(make(comm.rank), **options))
    return [read(result) for result in results]


def test_things_with_the_buffer_protocol():
    assert both(lambda rank: bytearray([1, rank]), bytes) == [b"\x02\x01"] * 2
    assert both(lambda rank: array.array("d", [rank, 2.5]), list) == [[1.0, 5.0]] * 2
    assert both(lambda rank: memoryview(bytearray(4)).cast("i"), list) == [[0]] * 2
    assert both(lambda rank: np.array(rank + 1.5), float) == [4.0] * 2  # no dimension
    assert both(lambda rank: np.ones((2, 0, 3)), np.size) == [0, 0]


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2, torch.int64, torch.uint8, torch.complex64],
)  # fmt: skip
def test_dlpack(dtype):
    def check(comm):
        tensor = torch.ones(2, 3).to(dtype)
        assert comm.all_reduce(tensor) is tensor
        assert torch.equal(tensor.to(torch.complex64), torch.full((2, 3), 2 + 0j))
        out = torch.zeros(comm.size, 6).to(dtype)
        comm.all_gather(tensor, out)
        assert torch.equal(out.to(torch.complex64), torch.full((2, 6), 2 + 0j))

    unisono.run_threads(2, check)


class Producer:
    """The export of an old library: a capsule without a version."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OfCuda(Producer):
    def __dlpack_device__(self):
        return (2, 0)


def test_dlpack_of_before_version_1(comm):
    data = np.ones(3)
    unisono.run_threads(1, lambda comm: comm.all_reduce(Producer(data), op=unisono.premul_sum(4)))
    assert data.tolist() == [4.0] * 3


def test_dlpack_exports_are_given_back():
    import gc
    import weakref

    data = torch.ones(3)
    alive = weakref.ref(data)
    unisono.run_threads(1, lambda comm: comm.all_reduce_async(data).wait())
    del data
    gc.collect()
    assert alive() is None


def test_a_dtype_says_what_bytes_are(comm):
    bits = np.array([1.5, -2.0], ml_dtypes.bfloat16).view("u2")
    for dtype in ("bf16", "bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16), torch.bfloat16):
        out = comm.all_reduce(bits.copy(), op=unisono.premul_sum(2), dtype=dtype)
        assert out.view(ml_dtypes.bfloat16).tolist() == [3.0, -4.0]
    raw = bytearray(bits.tobytes())
    comm.all_reduce(raw, op=unisono.premul_sum(2), dtype="bf16")
    assert np.frombuffer(raw, ml_dtypes.bfloat16).tolist() == [3.0, -4.0]
    moved = np.zeros(1, "M8[s]")
    comm.all_gather(np.array(["2026-11-21"], "M8[s]"), moved, dtype="i64")
    assert moved[0] == np.datetime64("2026-11-21")


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda c: c.all_reduce(np.ones((4, 4))[:, ::2]), ValueError, "data is not C-contiguous"),
        (lambda c: c.all_reduce(np.ones((4, 4)).T), ValueError, "data is not C-contiguous"),
        (lambda c: c.all_reduce(torch.ones(4, 4).T), ValueError, "data is not C-contiguous"),
        (lambda c: c.all_reduce(np.ones((4, 4), ml_dtypes.bfloat16).T), ValueError, "not C-contiguous"),
        (lambda c: c.all_reduce(np.frombuffer(b"abcd")), ValueError, ""),
        (lambda c: c.all_reduce(b"abcd"), ValueError, "data is read-only"),
        (lambda c: c.all_reduce(np.broadcast_to(np.ones(1), 1)), ValueError, "data is read-only"),
        (lambda c: c.all_gather(b"abcd", b"abcd"), ValueError, "out is read-only"),
        (lambda c: c.all_reduce([1, 2]), TypeError, "data is a list, which has no memory"),
        (lambda c: c.all_reduce(None), TypeError, "data is a NoneType"),
        (lambda c: c.all_reduce(np.array(["a"])), TypeError, "which unisono does not know; pass dtype="),
        (lambda c: c.all_reduce(np.ones(2, ">f4")), TypeError, "which unisono does not know"),
        (lambda c: c.all_reduce(np.ones(2, "g")), TypeError, "which unisono does not know"),
        (lambda c: c.all_reduce(np.ones(2), dtype="float33"), TypeError, "unknown dtype 'float33'"),
        (lambda c: c.all_reduce(np.ones(2), dtype="bf16"), TypeError, "cannot be treated as bfloat16"),
        (lambda c: c.all_reduce(np.ones(2, "i2")), TypeError, "int16 can be moved but not reduced"),
        (lambda c: c.all_reduce(np.ones(2, "c8"), op="max"), TypeError, "complex numbers support only"),
        (lambda c: c.all_reduce(np.ones(2), op="mean"), ValueError, "op='mean'; known are sum"),
        (lambda c: c.all_reduce(np.ones(2), op=3), TypeError, "op must be"),
        (lambda c: c.all_reduce(np.ones(2), op="band"), ValueError, ""),
        (lambda c: c.all_reduce(np.ones(2), np.ones(3)), ValueError, "out has 3 elements; it must have 2"),
        (lambda c: c.all_reduce(np.ones(2), np.ones(2, "f4")), TypeError, "out is of float32, but data of"),
        (lambda c: c.all_reduce(OfCuda(np.ones(2))), ValueError, "not in CPU memory"),
        (lambda c: c.broadcast(np.ones(2), 3), ValueError, "root 3 is not a rank"),
        (lambda c: c.all_gather_v(np.ones(2), np.ones(2), [1, 1]), ValueError, "must have 1 entries"),
        (lambda c: c.all_gather_v(np.ones(2), np.ones(2), [3]), ValueError, "add up to 3"),
        (lambda c: c.all_gather_v(np.ones(2), np.ones(2), [2], [1]), ValueError, "reach to 3"),
        (lambda c: c.all_gather_v(np.ones(2), np.ones(2), [-1]), TypeError, ""),
        (lambda c: c.gather(np.ones(2)), TypeError, "out is a NoneType"),
        (lambda c: c.send(np.ones(2), 4), ValueError, ""),
        (lambda c: c.split(), TypeError, ""),
        (lambda c: c.explain("all_cheer", 1), ValueError, "no collective 'all_cheer'"),
    ],
)  # fmt: skip
def test_what_cannot_be(comm, call, error, text):
    with pytest.raises(error, match=text):
        call(comm)
    assert comm.all_reduce(np.ones(1))[0] == 1  # the communicator works as before


def test_a_closed_communicator(comm):
    other = unisono.connect(rank=0, size=1, job="closed")
    plan = other.all_reduce_plan(np.ones(2))
    other.close()
    other.close()
    assert other.closed and "closed" in repr(other)
    for call in (other.barrier, lambda: other.rank, plan.start, lambda: other.allocate(3)):
        with pytest.raises(ValueError, match="closed"):
            call()
