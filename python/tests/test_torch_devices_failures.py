"""Failures of operations on device tensors, and the end of device groups, on a device without a GPU."""

import gc
import os
import signal
import time
import warnings
from datetime import timedelta

import fake_gpu
import jobs
import pytest
import torch
import torch.distributed as dist
from fake_gpu import BACKEND, NAME, run
from jobs import caught

pytestmark = fake_gpu.needed


def one_dies(how):
    x = fake_gpu.reduced_once()
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


def one_is_late(limit=None):
    x = fake_gpu.reduced_once()
    if limit is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dist.distributed_c10d._set_pg_timeout(limit)
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


def test_a_limit_that_is_set_later_is_that_of_kernels_too():
    with jobs.Job(2, one_is_late, timedelta(seconds=1), backend=BACKEND, prepare=fake_gpu.load) as job:
        kind, text = job.ending(0).value
    assert kind == "DistBackendError" and "rank 1 has not arrived for 1000 ms" in text, text


def tells_of_disagreement(text):
    # A kernel or a host call detects it, whichever compares first.
    return "mismatch" in text or "makes another call than rank" in text


def other_lengths():
    x = torch.ones(1_000 + dist.get_rank(), device=NAME)
    return caught(waits_for_it, x)


def test_ranks_that_disagree_are_told():
    with jobs.Job(2, other_lengths, backend=BACKEND, prepare=fake_gpu.load) as job:
        endings = [job.ending(rank) for rank in range(2)]
    for ending in endings:
        kind, text = ending.value
        assert kind == "DistBackendError" and tells_of_disagreement(text), text


def on_other_devices():
    x = torch.ones(1_000, device=NAME if dist.get_rank() == 0 else "cpu")
    return caught(dist.all_reduce, x)


def test_ranks_that_have_other_devices_are_told():
    with jobs.Job(2, on_other_devices, backend=BACKEND, prepare=fake_gpu.load) as job:
        endings = [job.ending(rank).value for rank in range(2)]
    for kind, text in endings:
        assert kind == "DistBackendError" and tells_of_disagreement(text), text


def leaves_without_a_word():
    from unisono.torch import extension

    other = dist.new_group([0, 1], backend=BACKEND)
    x = torch.ones(1_000, device=NAME)
    dist.all_reduce(x, group=other)
    dist.all_reduce(x, async_op=True)
    began = time.monotonic()
    extension().leave_all(finish_owed=False)
    return time.monotonic() - began


def test_a_process_ends_in_order_without_destroying_its_groups():
    with jobs.Job(2, leaves_without_a_word, backend=BACKEND, prepare=fake_gpu.load) as job:
        endings = [job.ending(rank) for rank in range(2)]
    assert all(ending is not None and ending.value < 20 for ending in endings), endings


def one_leaves():
    """Rank 0 ends as after an exception, and rank 1 has started an operation that needs it."""
    from unisono.torch import extension

    x = fake_gpu.reduced_once()
    if dist.get_rank() == 0:
        extension().leave_all(finish_owed=False)
        return None, ""
    return caught(dist.all_reduce(x, async_op=True).wait, timedelta(seconds=100))


def test_a_rank_that_leaves_ends_the_others():
    with jobs.Job(2, one_leaves, backend=BACKEND, prepare=fake_gpu.load, timeout_s=90) as job:
        began = time.monotonic()
        kind, text = job.ending(1).value
        assert kind == "DistBackendError" and "rank 0" in text, text
        assert time.monotonic() - began < 60, "as long as that, it has waited for the limit"


def looks_no_more(folder):
    """Rank 1 dies in an operation that rank 0 has started, and rank 0 makes no further call."""
    x = fake_gpu.reduced_once()
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
    x = fake_gpu.reduced_once()
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
    assert kind == "DistBackendError" and "destroyed while operations were in progress" in text, text


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
