"""CUDA graphs with captured calls of the backend, on a device without a GPU."""

import os
import pickle
import signal
from datetime import timedelta

import fake_gpu
import jobs
import pytest
import torch
import torch.distributed as dist
from fake_gpu import BACKEND, NAME, WAYS, Graph, run
from jobs import caught

pytestmark = fake_gpu.needed


def replayed():
    """Calls on the current stream and on the group's own stream, beside calls outside the graph."""
    rank = dist.get_rank()
    x, y, z, sums, mean = (torch.ones(5_000, device=NAME) for _ in range(5))
    dist.all_reduce(x)
    with Graph() as graph:
        y.copy_(x)
        dist.all_reduce(y)
        z.copy_(y)
        work = dist.all_reduce(z, async_op=True)
        dist.all_reduce(mean, dist.ReduceOp.AVG)  # the previous call must still run first
        assert work.is_completed() and work.is_success()
        assert work.wait(timedelta(seconds=60))
        sums.copy_(z)
        future = dist.all_reduce(sums, async_op=True).get_future()
        future.wait()
        x.copy_(sums)
    got = []
    for turn in range(6):
        x.copy_(torch.full((5_000,), float(rank + turn)))
        graph.replay()
        got.append([t.cpu().unique().tolist() for t in (y, z, sums, x, mean)])
        dist.all_reduce(mean, async_op=True).wait()
    return got


def test_a_graph_makes_its_calls_at_each_replay():
    sums = [2.0 * turn + 1 for turn in range(6)]
    want = [[[s], [2 * s], [4 * s], [4 * s], [2.0**turn]] for turn, s in enumerate(sums)]
    assert run(2, replayed) == [want] * 2


def with_a_factor_there():
    x, factor = torch.ones(8, device=NAME), torch.tensor(3.0, device=NAME)
    dist.all_reduce(x, dist._make_nccl_premul_sum(factor))
    with Graph():
        said = caught(dist.all_reduce, x, dist._make_nccl_premul_sum(factor))
    return said, x.cpu().unique().tolist()


def test_a_factor_on_the_device_is_not_read_in_a_graph():
    for (kind, text), x in run(2, with_a_factor_there):
        assert kind == "ValueError" and "factor of PREMUL_SUM" in text and "give a number" in text, text
        assert x == [6.0]


def with_a_first_call():
    x = torch.ones(8, device=NAME)
    with Graph():
        said = caught(dist.all_reduce, x)
    dist.all_reduce(x)
    return said, x.cpu().unique().tolist()


def test_the_first_call_of_a_group_is_not_in_a_graph():
    for (kind, text), x in run(2, with_a_first_call):
        assert kind == "ValueError" and f"the first call on {NAME}:0" in text, text
        assert "make a call before the capture" in text, text
        assert x == [2.0]


def what_the_host_does():
    x = torch.ones(8, device=NAME)
    dist.all_reduce(x)
    with Graph():
        said = [caught(dist.all_reduce, x)] if os.environ.get("UNISONO_CUDA") == fake_gpu.NO_DRIVER else []
        said.append(caught(dist.isend, x, 1 - dist.get_rank()))
        said.append(caught(dist.irecv, x, 1 - dist.get_rank()))
        said.append(caught(dist.barrier, device_ids=[0]))
    dist.all_reduce(x)
    return said, x.cpu().unique().tolist()


@pytest.mark.parametrize("way", WAYS)
def test_what_the_host_would_wait_for_is_refused(way):
    for said, x in run(2, what_the_host_does, way=way):
        for kind, text in said:
            assert kind == "ValueError" and "the host would wait for a stream that captures a graph" in text, text
        assert x == [4.0]


def seen_meanwhile():
    """A query of earlier calls must not end a capture, and captured calls are not recorded."""
    from unisono.torch import extension

    def entries():
        return [entry["state"] for entry in pickle.loads(extension().dump_flights(True, False, False))["entries"]]

    x = torch.ones(1_000, device=NAME)
    before = dist.all_reduce(x, async_op=True)
    before.wait()
    x.cpu()
    with Graph() as graph:
        dist.all_reduce(x)
        ended, seen = before.is_completed(), entries()
    graph.replay()
    return ended, seen, entries(), x.cpu().unique().tolist()


def test_calls_before_a_graph_can_be_asked_while_it_is_captured(monkeypatch):
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "20")
    assert run(2, seen_meanwhile) == [(True, ["completed"], ["completed"], [4.0])] * 2


def one_dies_in_a_replay():
    x = torch.ones(1_000, device=NAME)
    dist.all_reduce(x)
    with Graph() as graph:
        dist.all_reduce(x)
    graph.replay()
    x.cpu()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    graph.replay()
    x.cpu()  # returns with the kernel
    return caught(dist.all_reduce, x)


def test_a_rank_that_dies_while_others_replay_is_named():
    with jobs.Job(2, one_dies_in_a_replay, backend=BACKEND, prepare=fake_gpu.load) as job:
        ending = job.ending(0)
    assert ending is not None and ending.value is not None, ending
    kind, text = ending.value
    assert kind == "DistBackendError" and "rank 1" in text, text
