"""Tensors of a device, through kernels and through memory of the host, on a device without a GPU."""

import gc
import os
import signal
import time
from datetime import timedelta

import fake_gpu
import jobs
import pytest
import reference
import torch
import torch.distributed as dist
from checks import run_case
from fake_gpu import NAME
from jobs import caught
from test_collectives import CASES

pytestmark = fake_gpu.needed

BACKEND = f"cpu:unisono,{NAME}:unisono"
NO_DRIVER = "/nonexistent/libcuda.so"


def without_kernels():
    """Operations go through memory of the host: the library finds no driver, the device has its own."""
    fake_gpu.load()
    torch.ones(1, device=NAME)
    os.environ["UNISONO_CUDA"] = NO_DRIVER


WAYS = {"kernels": fake_gpu.load, "host": without_kernels}


def run(ranks, body, *args, way="kernels", **options):
    return jobs.run(ranks, body, *args, backend=BACKEND, prepare=WAYS[way], **options)


def on_device(case):
    reference.ALL[:] = [
        torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int8, torch.uint16, torch.int64,
        torch.complex64, torch.bool,
    ]  # fmt: skip
    reference.LAYOUTS[:] = ["contiguous", "strided"]
    torch.set_default_device(NAME)
    return run_case(case)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ranks", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_results(case, ranks, way):
    for rank, wrong in enumerate(run(ranks, on_device, case, way=way)):
        assert wrong == [], f"rank {rank}"


def messages():
    """Sends, receives, and several of both at once."""
    rank, size = dist.get_rank(), dist.get_world_size()
    device = torch.device(NAME)
    mine, got = torch.full((70_000,), rank + 1.0, device=device), torch.zeros(70_000, device=device)
    requests = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, mine, (rank + 1) % size),
            dist.P2POp(dist.irecv, got, (rank - 1) % size),
        ]
    )
    for request in requests:
        request.wait()
    assert got.cpu().eq((rank - 1) % size + 1).all()
    wide = torch.zeros(50, 4, device=device)
    if rank == 0:
        dist.send(torch.arange(50.0, device=device), 1)
    elif rank == 1:
        dist.recv(wide[:, 1], 0)
        assert wide[:, 1].cpu().equal(torch.arange(50.0)) and wide[:, 0].cpu().eq(0).all()
    dist.barrier(device_ids=[0])
    dist.barrier()


@pytest.mark.parametrize("way", WAYS)
def test_messages(way):
    run(2, messages, way=way)


def streams():
    """What a stream makes is sent, and what comes is used, without waits of the host."""
    device = torch.device(NAME)
    sums = []
    for turn in range(30):
        x = torch.full((20_000,), 1.0, device=device) * (turn + dist.get_rank())
        work = dist.all_reduce(x, async_op=True)
        torch.full((20_000,), -5.0, device=device)  # would have its memory, were x not kept
        work.wait()
        sums.append(x * 2)
        del x, work
        side = torch.Stream(device)
        with side:
            y = torch.full((5_000,), float(turn), device=device)
            dist.all_reduce(y)
            sums.append(y[:3] + 0)
        torch.accelerator.current_stream().wait_event(side.record_event())
    turns = [2.0 * (2 * turn + 1) for turn in range(30)]
    assert [s.cpu().unique().tolist() for s in sums[::2]] == [[turn] for turn in turns]
    assert [s.cpu().unique().tolist() for s in sums[1::2]] == [[2.0 * turn] for turn in range(30)]


@pytest.mark.parametrize("way", WAYS)
def test_streams_wait_for_each_other(way):
    run(2, streams, way=way)


def late():
    x = torch.ones(1_000, device=NAME)
    dist.all_reduce(x)
    x.cpu()
    if dist.get_rank() == 1:
        jobs.hear("waited")
    dist.all_reduce(x, async_op=True).wait()
    if dist.get_rank() == 0:
        assert not torch.accelerator.current_stream().query()
        jobs.say("waited")
    assert x.cpu().eq(4.0).all()


def test_the_host_does_not_wait():
    run(2, late)


def dropped_inputs():
    """Nobody keeps what is sent, and its memory is used again while it is."""
    device = torch.device(NAME)
    outs, works = [], []
    for turn in range(20):
        outs.append(torch.zeros(2, 4_096, device=device))
        mine = torch.full((4_096,), float(turn), device=device)
        works.append(dist.all_gather_into_tensor(outs[-1], mine, async_op=True))
        del mine
        torch.full((4_096,), -1.0, device=device)
    for turn, work in enumerate(works):
        work.wait()
        assert outs[turn].cpu().unique().tolist() == [turn], turn


@pytest.mark.parametrize("way", WAYS)
def test_memory_is_not_used_again_before_it_was_sent(way):
    run(2, dropped_inputs, way=way)


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 40), torch.nn.GELU(), torch.nn.Linear(40, 3))


def batch(step, rows=slice(None)):
    torch.manual_seed(100 + step)
    return torch.randn(8, 16)[rows], torch.randn(8, 3)[rows]


def train(net, device, rows=slice(None)):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, foreach=False)
    for step in range(5):
        x, y = (part.to(device) for part in batch(step, rows))
        optimizer.zero_grad()
        (net(x) - y).square().mean().backward()
        optimizer.step()
    return [parameter.detach().cpu() for parameter in net.parameters()]


def data_parallel():
    device = torch.device(NAME, 0)
    net = torch.nn.parallel.DistributedDataParallel(model().to(device), bucket_cap_mb=0.001)
    rank = dist.get_rank()
    return [w.tolist() for w in train(net, device, slice(4 * rank, 4 * rank + 4))]


@pytest.mark.parametrize("way", WAYS)
def test_data_parallelism_gives_the_weights_of_one_process(way):
    first, second = run(2, data_parallel, way=way)
    assert first == second
    for got, want in zip(first, train(model(), "cpu"), strict=True):
        torch.testing.assert_close(torch.tensor(got), want, rtol=1e-5, atol=1e-6)


def the_same_bits():
    torch.manual_seed(dist.get_rank())
    for dtype in (torch.float32, torch.bfloat16, torch.float8_e5m2):
        x = torch.randn(10_001).to(dtype)
        there = x.to(NAME)
        dist.all_reduce(x)
        dist.all_reduce(there)
        if not there.cpu().view(torch.uint8).equal(x.view(torch.uint8)):
            return f"other bits of {dtype}"
    return ""


@pytest.mark.parametrize("way", WAYS)
def test_sums_have_the_bits_of_the_cpu(way):
    assert run(3, the_same_bits, way=way) == [""] * 3


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


def mistakes():
    there, here = torch.ones(4, device=NAME), torch.ones(4)
    return [
        caught(dist.all_gather_into_tensor, torch.ones(8), there),
        caught(dist.all_reduce_coalesced, [there, here]),
        caught(dist.group.WORLD._get_backend(there.device).allocate_tensor, 4, dtype=torch.float32, device=there.device),
    ]


def test_mistakes_are_told():
    for mixed, coalesced, allocated in run(2, mistakes):
        assert mixed == (
            "ValueError", f"unisono:all_gather_into_tensor: tensors on cpu and {NAME}:0; all must be on one device"
        )  # fmt: skip
        assert coalesced[0] == "ValueError" and "all must be on one device" in coalesced[1]
        assert allocated[0] == "ValueError" and "memory of the CPU" in allocated[1]


def one_dies(how):
    x = torch.ones(1_000, device=NAME)
    dist.all_reduce(x)
    x.cpu()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return caught(how, x)


def waits_for_it(x):
    dist.all_reduce(x, async_op=True).wait(timedelta(seconds=60))


def goes_on(x):
    for _ in range(10_000):
        dist.all_reduce(x)
        x.cpu()  # stops with the kernels


@pytest.mark.parametrize("how", [waits_for_it, goes_on])
def test_a_rank_that_dies_is_named(how):
    with jobs.Job(2, one_dies, how, backend=BACKEND, prepare=fake_gpu.load) as job:
        ending = job.ending(0)
    assert ending is not None and ending.value is not None, ending
    kind, text = ending.value
    assert kind == "DistBackendError" and "rank 1" in text, text


def one_is_late():
    x = torch.ones(1_000, device=NAME)
    dist.all_reduce(x)
    x.cpu()
    if dist.get_rank() == 1:
        jobs.hear("over")
        return None
    said = caught(waits_for_it, x)
    jobs.say("over")
    return said


def test_a_rank_that_is_late_is_named():
    with jobs.Job(2, one_is_late, backend=BACKEND, timeout_s=2, prepare=fake_gpu.load) as job:
        kind, text = job.ending(0).value
    assert kind == "DistBackendError" and "timeout" in text and "rank 1" in text, text


def other_lengths():
    x = torch.ones(1_000 + dist.get_rank(), device=NAME)
    return caught(waits_for_it, x)


def test_ranks_that_disagree_are_told():
    with jobs.Job(2, other_lengths, backend=BACKEND, prepare=fake_gpu.load) as job:
        endings = [job.ending(rank) for rank in range(2)]
    for ending in endings:
        kind, text = ending.value
        assert kind == "DistBackendError" and "mismatch" in text, text


def on_other_devices():
    x = torch.ones(1_000, device=NAME if dist.get_rank() == 0 else "cpu")
    return caught(dist.all_reduce, x)


def test_ranks_that_have_other_devices_are_told():
    with jobs.Job(2, on_other_devices, backend=BACKEND, prepare=fake_gpu.load) as job:
        endings = [job.ending(rank).value for rank in range(2)]
    for kind, text in endings:
        assert kind == "DistBackendError" and "mismatch" in text, text


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


def leaves_without_a_word():
    from unisono.torch import extension

    other = dist.new_group([0, 1], backend=BACKEND)
    x = torch.ones(1_000, device=NAME)
    dist.all_reduce(x, group=other)
    dist.all_reduce(x, async_op=True)
    began = time.monotonic()
    extension().leave_all()
    return time.monotonic() - began


def test_a_process_ends_in_order_without_destroying_its_groups():
    with jobs.Job(2, leaves_without_a_word, backend=BACKEND, prepare=fake_gpu.load) as job:
        endings = [job.ending(rank) for rank in range(2)]
    assert all(ending is not None and ending.value < 20 for ending in endings), endings


def one_leaves():
    """Rank 0 ends as after an exception, and rank 1 has begun what needs it."""
    from unisono.torch import extension

    x = torch.ones(1_000, device=NAME)
    dist.all_reduce(x)
    x.cpu()
    if dist.get_rank() == 0:
        extension().leave_all()
        return None, ""
    return caught(dist.all_reduce(x, async_op=True).wait, timedelta(seconds=100))


def test_a_rank_that_leaves_ends_the_others():
    with jobs.Job(2, one_leaves, backend=BACKEND, prepare=fake_gpu.load, timeout_s=90) as job:
        began = time.monotonic()
        kind, text = job.ending(1).value
        assert kind == "DistBackendError" and "rank 0" in text, text
        assert time.monotonic() - began < 60, "as long as that, it has waited for the limit"


def looks_no_more(folder):
    """Rank 1 dies in what rank 0 has begun, and rank 0 asks for nothing more."""
    x = torch.ones(1_000, device=NAME)
    dist.all_reduce(x)
    x.cpu()
    if dist.get_rank() == 1:
        jobs.hear("begun")
        os.kill(os.getpid(), signal.SIGKILL)
    said = os.open(f"{folder}/said", os.O_RDWR | os.O_CREAT)
    os.dup2(said, 2)
    dist.all_reduce(x)
    jobs.say("begun")
    x.cpu()
    dist.destroy_process_group()
    dist.init_process_group("unisono", store=dist.HashStore(), rank=0, world_size=1)
    return os.pread(said, 100_000, 0).decode()


def test_a_failure_that_nobody_asks_for_is_said_at_the_end(tmp_path):
    with jobs.Job(2, looks_no_more, str(tmp_path), backend=BACKEND, prepare=fake_gpu.load) as job:
        ending = job.ending(0)
    assert ending is not None and ending.error is None, ending
    assert "is not to be used" in ending.value and "rank 1" in ending.value, ending.value


def destroyed_meanwhile():
    x = torch.ones(1_000, device=NAME)
    dist.all_reduce(x)
    x.cpu()
    if dist.get_rank() == 1:
        jobs.hear("over")
        return None
    work = dist.all_reduce(x, async_op=True)
    backend = dist.group.WORLD._get_backend(x.device)
    backend._set_default_timeout(timedelta(milliseconds=500))
    backend.shutdown()
    said = caught(work.wait)
    jobs.say("over")
    return said


def test_what_is_under_way_when_a_group_is_destroyed_fails():
    with jobs.Job(2, destroyed_meanwhile, backend=BACKEND, prepare=fake_gpu.load) as job:
        kind, text = job.ending(0).value
    assert kind == "DistBackendError" and "destroyed while operations were under way" in text, text


def profiled():
    x = torch.ones(100, device=NAME)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(x)
        dist.broadcast(x, 0, async_op=True).wait()
    return sorted(event.name for event in profile.events() if event.name.startswith("unisono:"))


@pytest.mark.parametrize("way", WAYS)
def test_the_profiler_shows_operations(way):
    assert run(2, profiled, way=way) == [["unisono:all_reduce", "unisono:broadcast"]] * 2


def forks():
    x = torch.ones(100, device=NAME)
    dist.all_reduce(x)
    child = os.fork()
    if child == 0:
        dist.destroy_process_group()
        gc.collect()
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_does_not_wait_for_the_group():
    assert run(2, forks) == [7, 7]
