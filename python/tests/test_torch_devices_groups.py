"""Works, groups and tools of PyTorch with device tensors, on a device without a GPU."""

import os
import warnings
from datetime import timedelta

import fake_gpu
import pytest
import torch
import torch.distributed as dist
from fake_gpu import BACKEND, NAME, WAYS, run
from jobs import caught

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


def own_device():
    return torch.device(NAME, int(os.environ["RANK"]) % torch.accelerator.device_count())


def each_on_its_own():
    rank, device = dist.get_rank(), own_device()
    x = torch.full((20_000,), rank + 1.0, device=device)
    outs = torch.zeros(2, 20_000, device=device)
    dist.all_gather_into_tensor(outs, x)
    work = dist.all_reduce(x, async_op=True)
    y = torch.full((5, 4), float(rank), device=device)[:, 1]
    dist.broadcast(y, 1)
    work.wait()
    dist.barrier(device_ids=[device.index])
    got = torch.zeros(3, device=device)
    other = dist.P2POp(dist.isend, x[:3], 1 - rank), dist.P2POp(dist.irecv, got, 1 - rank)
    for request in dist.batch_isend_irecv(list(other)):
        request.wait()
    return [t.cpu().unique().tolist() for t in (outs[0], outs[1], x, y, got)]


@fake_gpu.two_devices
@pytest.mark.parametrize("way", WAYS)
def test_each_rank_has_its_own_device(way):
    assert run(2, each_on_its_own, way=way) == [[[1.0], [2.0], [3.0], [1.0], [3.0]]] * 2


def on_two_devices():
    x, y = (torch.ones(5, device=torch.device(NAME, index)) for index in range(2))
    dist.all_reduce(x)
    said = caught(dist.all_reduce, y)
    other = dist.new_group([0, 1], backend=BACKEND)
    dist.all_reduce(y, group=other)
    dist.all_reduce(x)
    return said, x.cpu().unique().tolist(), y.cpu().unique().tolist()


@fake_gpu.two_devices
def test_a_group_has_one_device_on_each_rank():
    for (kind, text), x, y in run(2, on_two_devices):
        assert kind == "ValueError", text
        assert text == (
            f"unisono: this group works on {NAME}:0, but a tensor is on {NAME}:1; a group supports one device per rank"
        )
        assert (x, y) == ([4.0], [2.0])


def with_device_id(store):
    """Everything that PyTorch does when a default group has a device."""
    device, rank = own_device(), int(os.environ["RANK"])
    dist.init_process_group(
        BACKEND, store=dist.FileStore(store, 2), rank=rank, world_size=2, device_id=device
    )
    # Created at once: a tensor of another device is refused, even as the first one.
    said = None
    if torch.accelerator.device_count() > 1:
        said = caught(dist.all_reduce, torch.ones(3, device=torch.device(NAME, 1 - device.index)))
    alone = dist.new_group([0], device_id=device)
    pair = dist.new_group([1, 0], device_id=device, group_desc="both")
    half = dist.split_group(split_ranks=[[0], [1]], group_desc="a half")
    x = torch.full((9,), rank + 1.0, device=device)
    many, more = (torch.ones(200_000, device=device) for _ in range(2))
    if rank == 0:
        dist.all_reduce(x, group=alone)
    dist.all_reduce(x, group=half)
    dist.all_reduce(x, group=pair)
    for group in (dist.group.WORLD, pair, half):
        for _ in range(100):
            many.copy_(more)
        copied = torch.accelerator.current_stream(device).record_event()
        dist.barrier(group)
        assert copied.query(), "it waits for the group's device"
    bound = [group.bound_device_id == device for group in (dist.group.WORLD, pair, half)]
    names = [group.group_desc for group in (dist.group.WORLD, pair, half)]
    dist.destroy_process_group()
    return said, bound, names, x.cpu().unique().tolist()


def test_device_id_makes_groups_that_have_their_device(tmp_path):
    for rank, (said, bound, names, x) in enumerate(run(2, with_device_id, str(tmp_path / "store"), backend=None)):
        if said is not None:
            assert said[0] == "ValueError" and f"this group works on {NAME}:{rank}" in said[1], said
        assert bound == [True] * 3
        assert names == ["default_pg", "both", "a half"]
        assert x == [3.0]


def with_options():
    from unisono.torch import extension

    limit = timedelta(seconds=7)
    group = dist.new_group([0, 1], backend=BACKEND, pg_options=extension().Options(limit))
    x = torch.ones(3, device=NAME)
    dist.all_reduce(x, group=group)
    return group._get_backend(x.device).options._timeout == limit, x.cpu().tolist()


def test_a_group_takes_the_options_of_the_backend():
    assert run(2, with_options) == [(True, [2.0] * 3)] * 2


def with_two_limits():
    from unisono.torch import extension

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        group = dist.new_group(
            [0, 1], backend=BACKEND, timeout=timedelta(seconds=9), pg_options=extension().Options(timedelta(seconds=7))
        )
    limit = group._get_backend(torch.device(NAME, 0)).options._timeout
    return limit.seconds, [str(one.message) for one in said if "pg_options" in str(one.message)]


def test_the_limit_of_the_call_goes_before_that_of_its_options():
    for limit, said in run(2, with_two_limits):
        assert limit == 9
        assert said and "the timeout of the call, 0:00:09, is used" in said[0], said


def in_a_mesh(store):
    """A mesh of two dimensions, whose groups PyTorch splits off if the default group has a device."""
    device, rank = own_device(), int(os.environ["RANK"])
    dist.init_process_group(
        BACKEND, store=dist.FileStore(store, 4), rank=rank, world_size=4, device_id=device
    )
    mesh = dist.init_device_mesh(NAME, (2, 2), mesh_dim_names=("dp", "tp"))
    sums = []
    for name in ("dp", "tp"):
        x = torch.full((7,), float(rank), device=device)
        dist.all_reduce(x, group=mesh.get_group(name))
        sums.append(x.cpu().unique().tolist())
    dist.destroy_process_group()
    return sums


def test_a_mesh_of_two_dimensions_with_device_id(tmp_path):
    sums = run(4, in_a_mesh, str(tmp_path / "store"), backend=None)
    assert sums == [[[2.0], [1.0]], [[4.0], [1.0]], [[2.0], [5.0]], [[4.0], [5.0]]]


def shrunk():
    rank = dist.get_rank()
    x = torch.ones(5, device=NAME)
    dist.all_reduce(x)
    x.cpu()
    if rank == 1:
        return None
    group = dist.shrink_group([1])
    y, z = torch.ones(3), torch.ones(4, device=NAME)
    dist.all_reduce(y, group=group)
    dist.all_reduce(z, group=group)
    return y.tolist(), z.cpu().tolist()


def test_a_group_that_was_shrunk_works_on_its_devices():
    got = run(3, shrunk)
    assert got == [([2.0] * 3, [2.0] * 4), None, ([2.0] * 3, [2.0] * 4)]


def shrunk_on_the_cpu():
    dist.all_reduce(torch.ones(3))
    return None if dist.get_rank() == 1 else [str(device) for device in dist.shrink_group([1])._device_types]


def test_a_group_that_was_shrunk_has_no_device_that_its_parent_had_not():
    assert run(3, shrunk_on_the_cpu, backend="cpu:unisono") == [["cpu"], None, ["cpu"]]


def what_is_said(folder):
    said = os.open(f"{folder}/said-{dist.get_rank()}", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 2)
    x = torch.ones(4, device=NAME)
    dist.all_reduce(x)
    dist.all_reduce(x)
    assert x.cpu().eq(4.0).all()
    return os.pread(said, 100_000, 0).decode()


def test_a_warning_says_once_that_data_goes_through_memory_of_the_host(tmp_path):
    for said in run(2, what_is_said, str(tmp_path), way="host"):
        assert said.count(f"operations on {NAME}:0 go through host memory: ") == 1, said
        assert fake_gpu.NO_DRIVER in said, said
    for said in run(2, what_is_said, str(tmp_path)):
        assert "memory of the host" not in said, said
