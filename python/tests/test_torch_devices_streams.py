"""Futures and barriers that wait for pending device work, on a device without a GPU."""

import signal
import threading

import fake_gpu
import jobs
import pytest
import torch
import torch.distributed as dist
from fake_gpu import NAME, WAYS, run

pytestmark = fake_gpu.needed

LARGE = 200_000


def long_work(times=200):
    """Adds work to the current stream that takes the device a while."""
    x, y = torch.ones(LARGE, device=NAME), torch.ones(LARGE, device=NAME)
    for _ in range(times):
        y.copy_(x)
    return torch.accelerator.current_stream()


def value_of_several():
    x, used = (torch.full((1_000,), float(dist.get_rank()), device=NAME) for _ in range(2))
    dist.all_reduce(torch.ones(3, device=NAME))
    if dist.get_rank() == 1:
        jobs.hear("used")
    with dist._coalescing_manager(device=torch.device(NAME, 0), async_ops=True) as several:
        dist.broadcast(x, 1, async_op=True)
    several.works[0].get_future().wait()
    used.copy_(x)
    if dist.get_rank() == 0:
        jobs.say("used")  # only now does rank 1 send
    return used.cpu().unique().tolist()


def test_the_future_of_several_makes_the_stream_wait():
    assert run(2, value_of_several) == [[1.0]] * 2


def what_a_hook_makes():
    """As a hook of DistributedDataParallel that computes in then(), under a stream of the program."""
    dist.all_reduce(torch.ones(3, device=NAME))
    side = torch.Stream(torch.device(NAME, 0))
    with side:
        x, made, used = (torch.ones(LARGE, device=NAME) for _ in range(3))

        def hook(future):
            long_work()
            return made.copy_(future.value()[0])

        used.copy_(dist.all_reduce(x, async_op=True).get_future().then(hook).wait())
        got = used.cpu()
    return got.unique().tolist()


@pytest.mark.parametrize("way", WAYS)
def test_what_a_callback_makes_is_waited_for(way):
    assert run(2, what_a_hook_makes, way=way) == [[2.0]] * 2


def device_of_a_hook():
    """A callback works on the rank's own device."""
    device = torch.device(NAME, dist.get_rank())
    work = dist.all_reduce(torch.ones(9, device=device), async_op=True)
    made = work.get_future().then(lambda future: torch.empty(3, device=NAME) + future.value()[0][:3])
    return str(made.wait().device)


@fake_gpu.two_devices
@pytest.mark.parametrize("way", WAYS)
def test_a_callback_has_the_device_of_its_operation(way):
    assert run(2, device_of_a_hook, way=way) == [f"{NAME}:0", f"{NAME}:1"]


def in_a_barrier():
    """A barrier of a group that has used a device returns after the work of the device's streams."""
    dist.all_reduce(torch.ones(3, device=NAME))
    copied = long_work().record_event()
    works = [dist.all_reduce(torch.ones(LARGE, device=NAME), async_op=True) for _ in range(20)]
    dist.barrier()
    return copied.query(), [work.is_completed() for work in works]


def test_a_barrier_waits_for_the_device_of_its_group():
    assert run(2, in_a_barrier) == [(True, [True] * 20)] * 2


def test_a_barrier_waits_for_the_stream_where_there_are_no_kernels():
    assert [copied for copied, _ in run(2, in_a_barrier, way="host")] == [True] * 2


def in_another_order():
    """An asynchronous barrier does not block the host: rank 1 enters it after it gets rank 0's message."""
    x, message = torch.ones(1_000, device=NAME), torch.zeros(3)
    dist.all_reduce(x)
    if dist.get_rank() == 0:
        works = [dist.all_reduce(x, async_op=True), dist.barrier(async_op=True)]
        dist.send(message, 1)
    else:
        dist.recv(message, 0)
        works = [dist.all_reduce(x, async_op=True), dist.barrier(async_op=True)]
    for work in works:
        work.wait()
    return works[1].is_completed(), x.cpu().unique().tolist()


def test_a_barrier_beside_does_not_wait_on_the_host():
    assert run(2, in_another_order) == [(True, [4.0])] * 2


def interrupted():
    """Ctrl-C ends a barrier whose device waits for a rank that comes later."""
    x = fake_gpu.reduced_once()
    if dist.get_rank() == 1:
        jobs.hear("over")
    dist.all_reduce(x)
    if dist.get_rank() == 1:
        dist.barrier()
    else:
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
            dist.barrier()
        jobs.say("over")
    dist.barrier()  # rank 0's first barrier has ended too before a rank leaves


def test_an_interrupt_ends_a_barrier():
    run(2, interrupted)


def without_a_work():
    """The caller has dropped the operation: its input lives until the device is done with it."""
    import weakref

    x = fake_gpu.reduced_once()
    out = torch.zeros(2, 1_000, device=NAME)
    if dist.get_rank() == 1:
        jobs.hear("looked")
    mine = torch.ones(1_000, device=NAME)
    alive = weakref.ref(mine.untyped_storage())
    dist.all_gather_into_tensor(out, mine, async_op=True)
    del mine
    before = alive() is not None
    if dist.get_rank() == 0:
        jobs.say("looked")
    out.cpu()
    dist.barrier()
    dist.all_reduce(x)
    return before, alive() is not None


def test_inputs_live_until_the_end_where_nobody_waits():
    assert run(2, without_a_work) == [(True, False)] * 2


def without_wait():
    """Inputs live until the operation is waited for, whatever their allocator."""
    import weakref

    dist.all_reduce(torch.ones(3, device=NAME))
    out = torch.zeros(2, 1_000, device=NAME)
    mine = torch.ones(1_000, device=NAME)
    alive = weakref.ref(mine.untyped_storage())
    work = dist.all_gather_into_tensor(out, mine, async_op=True)
    del mine
    before = alive() is not None
    work.wait()
    return before, alive() is not None


def test_inputs_live_until_the_operation_is_waited_for():
    assert run(2, without_wait) == [(True, False)] * 2
