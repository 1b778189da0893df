"""Operations on device tensors, through kernels and through host memory, on a device without a GPU."""

import fake_gpu
import jobs
import pytest
import reference
import torch
import torch.distributed as dist
from checks import run_case
from fake_gpu import NAME, WAYS, run
from jobs import caught
from test_collectives import CASES

pytestmark = fake_gpu.needed


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
    """Tensors that a stream computes are sent, and received ones are used, without waits on the host."""
    device = torch.device(NAME)
    sums = []
    for turn in range(30):
        x = torch.full((20_000,), 1.0, device=device) * (turn + dist.get_rank())
        work = dist.all_reduce(x, async_op=True)
        torch.full((20_000,), -5.0, device=device)  # would reuse the memory of x if x were freed
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
    x = fake_gpu.reduced_once()
    if dist.get_rank() == 1:
        jobs.hear("waited")
    dist.all_reduce(x, async_op=True).wait()
    if dist.get_rank() == 0:
        assert not torch.accelerator.current_stream().query()
        jobs.say("waited")
    assert x.cpu().eq(4.0).all()


def test_the_host_does_not_wait():
    run(2, late)


def waits_in_a_barrier():
    """A barrier that names the device returns after the device's current work."""
    x, y = torch.ones(200_000, device=NAME), torch.ones(200_000, device=NAME)
    dist.all_reduce(x)
    for _ in range(200):
        y.copy_(x)
    copied = torch.accelerator.current_stream().record_event()
    dist.barrier(device_ids=[0])
    return copied.query()


def test_a_barrier_waits_for_the_stream_of_its_device():
    assert run(2, waits_in_a_barrier) == [True, True]


def dropped_inputs():
    """The caller drops a tensor that is being sent, and its memory is reused meanwhile."""
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


def mistakes():
    there, here = torch.ones(4, device=NAME), torch.ones(4)
    return [
        caught(dist.all_gather_into_tensor, torch.ones(8), there),
        caught(dist.all_reduce_coalesced, [there, here]),
        caught(dist.group.WORLD._get_backend(there.device).allocate_tensor, 4, dtype=torch.float32, device=there.device),
    ], [dist.group.WORLD._get_backend(x.device).supports_tensor_alloc(x.device) for x in (here, there)]


def test_mistakes_are_told():
    for (mixed, coalesced, allocated), can_allocate in run(2, mistakes):
        assert mixed == (
            "ValueError", f"unisono:all_gather_into_tensor: tensors on cpu and {NAME}:0; all must be on one device"
        )  # fmt: skip
        assert coalesced[0] == "ValueError" and "all must be on one device" in coalesced[1]
        assert allocated[0] == "ValueError" and "only CPU memory" in allocated[1]
        assert can_allocate == [True, False], "FSDP asks before it allocates"
