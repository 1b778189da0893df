"""unisono without PyTorch: every collective x type x form, ranks as threads, against numpy."""

import threading

import ml_dtypes
import numpy as np
import pytest
import unisono

NUMBERS = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
NARROW = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
TYPES = [np.dtype(t) for t in NUMBERS + ["bool", "int16", "uint16", "complex64", "complex128"] + NARROW]
REDUCED = [dtype for dtype in TYPES if dtype.name not in ("bool", "int16", "uint16")]
COUNT = 7


def values(dtype, count, rank):
    """Small numbers, whose sums are exact in every type."""
    numbers = np.random.default_rng(rank).integers(0, 3, count)
    return (numbers > 0) if dtype == bool else numbers.astype(dtype)


def total(dtype, count, ranks):
    wide = "c16" if dtype.kind == "c" else "f8"
    return sum(values(dtype, count, rank).astype(wide) for rank in range(ranks)).astype(dtype)


def whole(dtype, counts):
    return np.concatenate([values(dtype, count, rank) for rank, count in enumerate(counts)])


def call(comm, form, name, *args, **options):
    """The three forms of a call: blocking, asynchronous, prepared."""
    if form == "blocking":
        return getattr(comm, name)(*args, **options)
    if form == "async":
        return getattr(comm, f"{name}_async")(*args, **options).wait()
    return getattr(comm, f"{name}_plan")(*args, **options).start()


FORMS = pytest.mark.parametrize("form", ["blocking", "async", "plan"])
RANKS = pytest.mark.parametrize("ranks", [1, 2, 3, 4])


def everywhere(ranks, check, *args):
    """Runs `check(comm, *args)` on each rank."""
    unisono.run_threads(ranks, lambda comm: check(comm, *args), timeout_ms=60_000)


def moves(comm, form):
    n, rank = comm.size, comm.rank
    for dtype in TYPES:
        mine = values(dtype, COUNT, rank)
        every = whole(dtype, [COUNT] * n)
        for root in range(n):
            data = mine.copy()
            assert call(comm, form, "broadcast", data, root) is data
            np.testing.assert_array_equal(data, values(dtype, COUNT, root))
            out = np.zeros(n * COUNT, dtype) if rank == root else None
            call(comm, form, "gather", mine, out, root)
            if rank == root:
                np.testing.assert_array_equal(out, every)
            part = np.zeros(COUNT, dtype)
            call(comm, form, "scatter", every if rank == root else None, part, root)
            np.testing.assert_array_equal(part, mine)
        out = np.zeros((n, COUNT), dtype)
        assert call(comm, form, "all_gather", mine, out) is out
        np.testing.assert_array_equal(out.ravel(), every)
        out[:] = 0
        out[rank] = mine
        call(comm, form, "all_gather", out[rank], out)  # in place
        np.testing.assert_array_equal(out.ravel(), every)
        out = np.zeros(n * COUNT, dtype)
        sent = np.concatenate([values(dtype, COUNT, rank * n + to) for to in range(n)])
        call(comm, form, "all_to_all", sent, out)
        want = np.concatenate([values(dtype, COUNT, source * n + rank) for source in range(n)])
        np.testing.assert_array_equal(out, want)


def reductions(comm, form):
    n, rank = comm.size, comm.rank
    for dtype in REDUCED:
        mine = values(dtype, COUNT, rank)
        want = total(dtype, COUNT, n)
        out = np.zeros_like(mine)
        assert call(comm, form, "all_reduce", mine, out) is out
        np.testing.assert_array_equal(out, want)
        data = mine.copy()
        assert call(comm, form, "all_reduce", data) is data
        np.testing.assert_array_equal(data, want)
        for root in range(n):
            data = mine.copy()
            call(comm, form, "reduce", data, root=root)
            np.testing.assert_array_equal(data, want if rank == root else mine)
        long = values(dtype, n * COUNT, rank)
        out = np.zeros(COUNT, dtype)
        call(comm, form, "reduce_scatter", long, out)
        np.testing.assert_array_equal(out, total(dtype, n * COUNT, n)[rank * COUNT :][:COUNT])


def written_behind(mine, other):
    """Appends the digits of `mine` to those of `other`: an operation that does not commute."""
    high, low = np.asarray(mine), np.asarray(other)  # the digits, and their power of ten
    tens = high & 0xFFFFFFFF
    high[:] = ((low >> 32) * tens + (high >> 32)) << 32 | (low & 0xFFFFFFFF) * tens


def scans(comm, form):
    n, rank = comm.size, comm.rank
    for dtype in REDUCED:
        mine = values(dtype, COUNT, rank)
        for name, terms in (("scan", rank + 1), ("exclusive_scan", rank)):
            want = total(dtype, COUNT, terms) if terms else np.zeros(COUNT, dtype)
            out = np.full_like(mine, 1)
            assert call(comm, form, name, mine, out) is out
            np.testing.assert_array_equal(out, want)
            data = mine.copy()
            assert call(comm, form, name, data) is data
            np.testing.assert_array_equal(data, want)
    out = np.array([rank + 1])
    call(comm, form, "exclusive_scan", out, op="max")
    assert out[0] == (rank if rank else np.iinfo(out.dtype).min)
    out = call(comm, form, "scan", np.array([rank + 1 << 32 | 10]), op=written_behind)
    assert str(out[0] >> 32) == "1234"[: rank + 1]
    with pytest.raises(unisono.UsageError, match="scans do not support avg"):
        call(comm, form, "scan", np.ones(1), op="avg")


def v_forms(comm, form):
    n, rank = comm.size, comm.rank
    counts = [(3 * other) % 5 for other in range(n)]  # some are zero
    for dtype in (np.dtype("float32"), np.dtype("int16"), np.dtype("complex64")):
        mine, every = values(dtype, counts[rank], rank), whole(dtype, counts)
        out = np.zeros(sum(counts), dtype)
        call(comm, form, "all_gather_v", mine, out, counts)
        np.testing.assert_array_equal(out, every)
        spread = np.zeros(sum(counts) + n, dtype)  # one unused element behind each part
        displs = [sum(counts[:other]) + other for other in range(n)]
        call(comm, form, "all_gather_v", mine, spread, counts, displs)
        for other in range(n):
            np.testing.assert_array_equal(
                spread[displs[other] :][: counts[other]], values(dtype, counts[other], other)
            )
        for root in range(n):
            out = np.zeros(sum(counts), dtype) if rank == root else None
            call(comm, form, "gather_v", mine, out, counts, root)
            if rank == root:
                np.testing.assert_array_equal(out, every)
            part = np.zeros(counts[rank], dtype)
            call(comm, form, "scatter_v", every if rank == root else None, part, counts, root)
            np.testing.assert_array_equal(part, mine)
        sent = [(rank + to) % 3 for to in range(n)]
        got = [(source + rank) % 3 for source in range(n)]
        out = np.zeros(sum(got), dtype)
        call(comm, form, "all_to_all_v", np.full(sum(sent), rank + 1, dtype), sent, out, got)
        np.testing.assert_array_equal(out, np.repeat(np.arange(1, n + 1), got).astype(dtype))
    data = values(np.dtype("f4"), sum(counts), rank)
    out = np.zeros(counts[rank], "f4")
    call(comm, form, "reduce_scatter_v", data, out, counts)
    begin = sum(counts[:rank])
    want = total(np.dtype("f4"), sum(counts), n)[begin : begin + counts[rank]]
    np.testing.assert_array_equal(out, want)
    call(comm, form, "barrier")


@FORMS
@RANKS
@pytest.mark.parametrize("check", [moves, reductions, scans, v_forms])
def test_against_numpy(ranks, check, form):
    everywhere(ranks, check, form)


@RANKS
def test_operations(ranks):
    reference = {
        "sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum,
        "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
    }  # fmt: skip

    def check(comm):
        every = [values(np.dtype("i4"), COUNT, rank) + 1 for rank in range(comm.size)]
        for name, function in reference.items():
            want = every[0]
            for other in every[1:]:
                want = function(want, other)
            np.testing.assert_array_equal(comm.all_reduce(every[comm.rank].copy(), op=name), want)
        mean = comm.all_reduce(every[comm.rank].astype("f8"), op="avg")
        np.testing.assert_allclose(mean, np.mean(every, axis=0))
        half = comm.all_reduce(every[comm.rank].astype("f4"), op=unisono.premul_sum(0.5))
        np.testing.assert_allclose(half, np.sum(every, axis=0) / 2)
        flags = comm.all_reduce(np.array([comm.rank == 0, True, False]), op="land")
        np.testing.assert_array_equal(flags, [comm.size == 1, True, False])

    everywhere(ranks, check)


def test_an_operation_of_ones_own():
    def longest(inout, other):  # complex numbers have no max
        a, b = (np.frombuffer(view, "f4").view("c8") for view in (inout, other))
        inout[:] = memoryview(np.where(abs(a) >= abs(b), a, b).astype("c8").view("f4"))

    def check(comm):
        z = np.array([comm.rank + 0j, 3j - comm.rank * 1j], "c8")
        comm.all_reduce(z.view("f4"), op=longest)
        np.testing.assert_array_equal(z, np.array([comm.size - 1, 3j], "c8"))
        z = comm.all_reduce_async(z.view("f4"), op=longest).wait()

    everywhere(3, check)


def test_what_an_operation_of_ones_own_raises_is_raised():
    def broken(inout, other):
        raise KeyError("mine")

    def check(comm):
        with pytest.raises(KeyError, match="mine"):
            comm.all_reduce(np.ones(3), op=broken)
        with pytest.raises(KeyError, match="mine"):
            comm.all_reduce_async(np.ones(3), op=broken).wait()
        assert comm.all_reduce(np.ones(1))[0] == comm.size  # and the communicator still works

    everywhere(2, check)


def test_messages():
    def check(comm):
        after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        got = comm.send_recv(np.full(3, comm.rank), after, np.zeros(3, int), before)
        assert (got == before).all()
        request = comm.recv_async(got, before, tag=5)
        comm.send(np.full(3, comm.rank + 10), after, tag=5)
        assert (request.wait() == before + 10).all() and request.source() == before
        large = np.full(1 << 18, comm.rank, "f8")
        sending = comm.send_async(large, after)
        got = comm.recv(np.zeros_like(large), before)
        sending.wait()
        assert (got == before).all()
        request = comm.recv_async(room := bytearray(9), before, 6, exact=False)
        comm.send(b"four", after, 6)
        assert request.wait() is room and request.received() == 4 and room == b"four" + bytes(5)
        if comm.rank == 0:
            senders = set()
            for _ in range(comm.size - 1):
                request = comm.recv_async(bytearray(2), unisono.ANY_SOURCE, 7)
                assert request.wait() == b"hi"
                senders.add(request.source())
            assert senders == set(range(1, comm.size))
        else:
            comm.send(b"hi", 0, 7)
            # A type that no collective supports is treated as bytes.
        comm.send_recv(np.array(["2026-01-01"], "M8[D]"), after, np.zeros(1, "M8[D]"), before)

    everywhere(3, check)


@pytest.mark.parametrize("receive", ["recv", "recv_async", "send_recv"])
def test_a_shorter_message_is_a_mismatch(receive):
    said = []

    def check(comm):
        other, room = 1 - comm.rank, bytearray(9)
        try:
            if receive == "send_recv":
                comm.send_recv(bytes(4), other, room, other)
            elif comm.rank == 0:
                comm.send(bytes(4), 1)
                comm.recv(bytearray(1), 1)
            else:
                got = getattr(comm, receive)(room, 0)
                got.wait() if receive == "recv_async" else None
        except unisono.MismatchError as error:
            said.append("both sides must give the same number of bytes" in str(error))

    everywhere(2, check)
    assert said == [True, True]


def test_groups():
    def check(comm):
        part = comm.split(comm.rank % 2, key=-comm.rank)
        assert part.size == 2 and part.rank == (0 if comm.rank >= 2 else 1)
        assert part.all_reduce(np.array([comm.rank]))[0] == (2 if comm.rank % 2 == 0 else 4)
        assert comm.split(0 if comm.rank else -1) is None or comm.rank > 0
        arrays = [np.full(4, comm.rank + i, "f4") for i in range(5)]
        comm.group(lambda: [comm.all_reduce_async(array) for array in arrays])
        for i, array in enumerate(arrays):
            assert (array == sum(range(comm.size)) + i * comm.size).all()

        def broken():
            comm.all_reduce_async(arrays[0])
            raise LookupError("in the body")

        with pytest.raises(LookupError, match="in the body"):
            comm.group(broken)
        with pytest.raises(unisono.UsageError):
            comm.group(lambda: comm.barrier())
        comm.barrier()

    everywhere(4, check)


def test_registered_memory():
    def check(comm):
        region = comm.allocate(1 << 16)
        assert region.nbytes == 1 << 16
        array = np.frombuffer(region, "f4")
        del region  # the array keeps it
        array[:] = comm.rank + 1
        assert (comm.all_reduce(array) == sum(range(1, comm.size + 1))).all()
        mine = np.full(1 << 16, comm.rank + 1.0)
        region = comm.register_buffer(mine)
        assert 0 < region.nbytes <= mine.nbytes and region.nbytes % 4096 == 0
        assert (comm.all_reduce(mine) == sum(range(1, comm.size + 1))).all()
        comm.barrier()

    everywhere(2, check)


def test_threads_take_turns():
    """Several threads of a rank may call if their calls match in any order."""

    def check(comm):
        def work():
            for _ in range(50):
                assert comm.all_reduce(np.ones(3))[0] == comm.size

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    everywhere(2, check)


def test_a_call_lets_other_threads_of_python_run():
    """Rank 1 arrives only after a thread of rank 0's process has run Python: the lock is free."""
    ran = threading.Event()

    def check(comm):
        if comm.rank == 1:
            assert ran.wait(10)
            comm.barrier()
            comm.barrier_async().wait()
            return
        threading.Timer(0.05, ran.set).start()
        comm.barrier()
        comm.barrier_async().wait()

    everywhere(2, check)


def test_buffers_live_while_they_are_in_use():
    """Only the request refers to the arrays; memory of dropped arrays would be reused."""

    def check(comm):
        requests = [comm.all_reduce_async(np.full(50_000, comm.rank + i, "f8")) for i in range(8)]
        junk = [np.full(50_000, -1.0) for _ in range(16)]
        for i, request in enumerate(requests):
            assert (request.wait() == sum(range(comm.size)) + i * comm.size).all()
            assert (request.wait() == sum(range(comm.size)) + i * comm.size).all()  # again
        assert len(junk) == 16
        comm.all_reduce_async(np.ones(1000))  # no wait(): its destructor waits
        assert comm.all_reduce_async(np.ones(3)).wait()[0] == comm.size

    everywhere(2, check)


def test_an_algorithm_of_ones_own_runs(tmp_path):
    path = tmp_path / "mine.json"
    builder = unisono.schedule.Builder("all_reduce", ranks=3, chunks=1)
    for rank in (1, 2):
        builder.step()
        builder.move(rank, 0, 0, reduce=True)
    builder.step()
    builder.move(0, 1, 0)
    builder.move(0, 2, 0)
    schedule = builder.build()
    assert schedule.verify() == []
    schedule.save(path)

    def check(comm):
        assert comm.all_reduce(np.array([comm.rank]), algorithm=str(path))[0] == 3
        assert comm.all_reduce(np.array([comm.rank]), algorithm="ring")[0] == 3
        plan = comm.all_reduce_plan(np.zeros(2), algorithm="recursive_doubling")
        assert plan.algorithm == "recursive_doubling"
        with pytest.raises(unisono.UsageError, match="no_such"):
            comm.all_reduce(np.zeros(2), algorithm="no_such")
        explanation = comm.explain("all_reduce", 1000, "bf16")
        assert explanation.chosen in [row["algorithm"] for row in explanation.candidates]
        assert "chosen" in str(explanation) and explanation.why == "built_in"

    everywhere(3, check)
