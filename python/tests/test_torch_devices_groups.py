"""Works, groups and tools of PyTorch over tensors of a device, on a device without a GPU."""

from datetime import timedelta

import fake_gpu
import pytest
import torch
import torch.distributed as dist
from fake_gpu import BACKEND, NAME, WAYS, run

pytestmark = fake_gpu.needed


def works_and_futures():
    x = torch.ones(1_000, device=NAME)
    work = dist.all_reduce(x, async_op=True)
    future = work.get_future().then(lambda done: done.value()[0] * 3)
    assert future.wait().cpu().eq(3.0 * dist.get_world_size()).all()
    assert work.wait(timedelta(seconds=60)) and work.is_completed() and work.is_success()
    group = dist.new_group([1, 0], backend=BACKEND)
    dist.broadcast(x, 1, group=group)
    dist.destroy_process_group(group)
    half = dist.split_group(split_ranks=[[0], [1]])
    y = torch.full((5,), 3.0, device=NAME)
    dist.all_reduce(x, group=half)
    with dist._coalescing_manager(device=torch.device(NAME, 0), async_ops=True) as several:
        dist.all_reduce(x)
        dist.all_reduce(y)
    several.wait()
    assert x.cpu().eq(4.0).all() and y.cpu().eq(6.0).all()


@pytest.mark.parametrize("way", WAYS)
def test_works_futures_and_groups(way):
    run(2, works_and_futures, way=way)


def recorded():
    from torch._C._distributed_c10d import _dump_fr_trace_json  # noqa: F401: there is a recorder

    import pickle

    from unisono.torch import extension

    x = torch.ones(1_000, device=NAME)
    dist.all_reduce(x)
    dist.all_reduce(x, async_op=True).wait()
    x.cpu()
    entries = pickle.loads(extension().dump_flights(True, False, False))["entries"]
    return [entry["state"] for entry in entries]


def test_the_flight_recorder_sees_operations_end(monkeypatch):
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "20")
    assert run(2, recorded) == [["completed", "completed"]] * 2


def profiled():
    x = torch.ones(100, device=NAME)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(x)
        dist.broadcast(x, 0, async_op=True).wait()
    return sorted(event.name for event in profile.events() if event.name.startswith("unisono:"))


@pytest.mark.parametrize("way", WAYS)
def test_the_profiler_shows_operations(way):
    assert run(2, profiled, way=way) == [["unisono:all_reduce", "unisono:broadcast"]] * 2
