"""Rounding between hosts: `max_error` of calls and of a communicator."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import unisono


def on_hosts(ranks, body, **options):
    """Returns the results of `body` on each rank, with every rank on its own host."""
    meeting = threading.Barrier(ranks, timeout=600)
    texts = [None] * ranks

    def run(rank):
        def exchange(mine):
            texts[rank] = mine
            meeting.wait()
            return list(texts)

        with unisono.connect(
            rank=rank,
            size=ranks,
            bootstrap=exchange,
            host=f"host-{rank}",
            token="a token of the test",
            timeout_ms=60_000,
            **options,
        ) as comm:
            return body(comm)

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(run, range(ranks)))


def draw(rank):
    return np.random.default_rng(rank).standard_normal(50_000).astype(np.float32)


@pytest.mark.parametrize("max_error", [1e-2, 4e-3])
def test_error_and_same_bits(max_error):
    def body(comm):
        data = draw(comm.rank)
        comm.all_reduce(data, max_error=max_error)
        plan = comm.all_reduce_plan(again := draw(comm.rank), max_error=max_error)
        plan.start()
        return data.tobytes() if np.array_equal(data, again) else "a plan has other bits"

    said = on_hosts(3, body)
    assert said[0] == said[1] == said[2]
    exact = sum(draw(rank).astype(np.float64) for rank in range(3))
    error = np.frombuffer(said[0], np.float32) - exact
    assert 1e-3 < np.sqrt((error**2).mean() / (exact**2).mean()) < max_error


def test_refusals():
    def body(comm):
        texts = []
        for data, op, max_error in [
            (np.zeros(8, np.float64), "sum", 1e-2),
            (np.zeros(8, np.float32), "max", 1e-2),
            (np.zeros(8, np.float32), "sum", 1e-6),
        ]:
            with pytest.raises(unisono.Error, match="max_error") as refused:
                comm.all_reduce(data, op=op, max_error=max_error)
            texts.append(str(refused.value))
        return texts

    said = on_hosts(2, body)
    assert "only f32 is encoded" in said[0][0] and "only sums are encoded" in said[0][1]
    assert "below the error of the most precise code" in said[0][2]


def test_of_a_communicator():
    def body(comm):
        results = []
        for max_error in ({}, {"max_error": 0}):
            comm.all_reduce(data := draw(comm.rank), **max_error)
            results.append(data)
        integers = np.full(1000, comm.rank, np.int32)
        comm.all_reduce(integers)
        return results, integers.max()

    exact = sum(draw(rank).astype(np.float64) for rank in range(2))
    for (rounded, kept), most in on_hosts(2, body, max_error=1e-2):
        assert 1e-3 < np.sqrt(((rounded - exact) ** 2).mean() / (exact**2).mean()) < 1e-2
        assert np.abs(kept - exact).max() < 1e-5
        assert most == 1


def test_communicator_refuses_what_no_code_can_keep():
    with pytest.raises(unisono.Error, match="max_error for all calls is 0.001"):
        unisono.connect(max_error=1e-3)


def test_data_that_is_moved():
    def body(comm):
        data = draw(5) if comm.rank == 1 else np.zeros(50_000, np.float32)
        comm.broadcast(data, root=1, max_error=1e-2)
        parts = np.zeros(3 * 50_000, np.float32)
        comm.all_gather(draw(comm.rank), parts, max_error=1e-2)
        return data.tobytes(), parts.tobytes()

    said = on_hosts(3, body)
    assert said[0] == said[1] == said[2]
    for got, sent in [(said[0][0], draw(5)), (said[0][1], np.concatenate([draw(rank) for rank in range(3)]))]:
        error = np.frombuffer(got, np.float32) - sent
        assert 1e-3 < np.sqrt((error**2).mean()) < 1e-2
