"""The behaviour of each operation if the other rank does not arrive, or dies."""

import os
import signal
from datetime import timedelta

import jobs
import pytest
import torch
import torch.distributed as dist


def lists(count):
    return [torch.zeros(count) for _ in range(dist.get_world_size())]


def on_root(value):
    return value if dist.get_rank() == 0 else None


# Rank 0 can end none of these without rank 1. A short send would end, so the send is long.
OPERATIONS = {
    "broadcast": lambda x: dist.broadcast(x, 1),
    "all_reduce": lambda x: dist.all_reduce(x),
    "reduce": lambda x: dist.reduce(x, 0),
    "all_gather": lambda x: dist.all_gather(lists(x.numel()), x),
    "all_gather_into_tensor": lambda x: dist.all_gather_into_tensor(torch.zeros(2 * x.numel()), x),
    "gather": lambda x: dist.gather(x, on_root(lists(x.numel())), 0),
    "scatter": lambda x: dist.scatter(x, lists(x.numel()) if dist.get_rank() == 1 else None, 1),
    "reduce_scatter": lambda x: dist.reduce_scatter(x, lists(x.numel())),
    "reduce_scatter_tensor": lambda x: dist.reduce_scatter_tensor(x, torch.zeros(2 * x.numel())),
    "all_to_all": lambda x: dist.all_to_all(lists(x.numel()), lists(x.numel())),
    "all_to_all_single": lambda x: dist.all_to_all_single(torch.zeros_like(x), x),
    "send": lambda x: dist.send(x, 1),
    "recv": lambda x: dist.recv(x, 1),
    "recv from any": lambda x: dist.recv(x),
    "barrier": lambda x: dist.barrier(),
    "all_reduce, async": lambda x: dist.all_reduce(x, async_op=True).wait(),
    "all_to_all, async": lambda x: dist.all_to_all_single(torch.zeros_like(x), x, async_op=True).wait(),
}


def what_it_raises(name):
    try:
        OPERATIONS[name](torch.zeros(300_000))
    except Exception as error:
        return type(error).__name__, str(error)
    return None, "no error"


def alone_in_each(folder):
    """Rank 1 joins a group for each operation, and waits until rank 0 has given up."""
    rank, found = int(os.environ["RANK"]), {}
    for number, name in enumerate(OPERATIONS):
        store = dist.FileStore(f"{folder}/{number}", 2)
        dist.init_process_group("unisono", store=store, rank=rank, world_size=2)
        if rank == 0:
            backend = dist.group.WORLD._get_backend(torch.device("cpu"))
            backend._set_default_timeout(timedelta(milliseconds=100))
            found[name] = what_it_raises(name)
            jobs.say("over")
        else:
            jobs.hear("over")
        dist.destroy_process_group()
    return found


def test_every_operation_ends_in_time_and_names_who_has_not_come(tmp_path):
    found, _ = jobs.run(2, alone_in_each, str(tmp_path), backend=None)
    assert set(found) == set(OPERATIONS)
    for name, (kind, text) in found.items():
        assert kind == "DistBackendError" and "timeout: " in text, (name, text)
        assert "rank 1" in text or name == "recv from any", (name, text)


def with_one_that_dies(name):
    dist.barrier()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return what_it_raises(name)


@pytest.mark.parametrize(
    "name", [name if name == "gather" else pytest.param(name, marks=pytest.mark.slow) for name in OPERATIONS]
)
def test_every_operation_ends_when_a_rank_dies_and_names_it(name):
    with jobs.Job(2, with_one_that_dies, name) as job:
        kind, text = job.ending(0).value
    assert kind == "DistBackendError" and "rank 1" in text and "SIGKILL" in text, text
