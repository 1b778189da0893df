"""Ctrl-C while a rank waits for others."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import jobs
import pytest
import torch
import torch.distributed as dist
from jobs import caught


def interrupted_while_another_has_it(folder, limit_s):
    """The operation of a rank that is not interrupted does not end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    dist.barrier()
    x = torch.ones(2)
    if dist.get_rank() == 1:
        jobs.hear("interrupted")
        dist.all_reduce(x)
        return "nothing", x.tolist()
    work = dist.all_reduce(x, async_op=True)
    kind = "nothing"
    try:
        (folder / "waits").touch()
        work.wait(timedelta(seconds=limit_s))
    except BaseException as error:
        kind = type(error).__name__
    jobs.say("interrupted")
    work.wait()
    return kind, x.tolist()


def test_ctrl_c_ends_a_limited_wait_and_not_the_operation(tmp_path):
    with jobs.Job(2, interrupted_while_another_has_it, tmp_path, 90) as job:
        jobs.wait_for_files(tmp_path, 1)
        time.sleep(1)
        os.kill(job.processes[0].pid, signal.SIGINT)
        values = [job.ending(rank).value for rank in range(2)]
    assert values == [("KeyboardInterrupt", [2.0, 2.0]), ("nothing", [2.0, 2.0])]


def waits_for_ctrl_c(folder, asynchronous):
    """Rank 0 waits in an operation that rank 1 enters after its end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    dist.barrier()
    try:
        if dist.get_rank() == 1:
            jobs.hear("interrupted")
        else:
            (folder / "waits").touch()
        work = dist.all_reduce(torch.ones(4), async_op=asynchronous)
        if work is not None:
            work.wait()
    except BaseException as error:
        jobs.say("interrupted")
        return type(error).__name__, str(error), caught(dist.barrier)
    return "nothing", "", None


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_ctrl_c_ends_a_wait(asynchronous, tmp_path):
    with jobs.Job(2, waits_for_ctrl_c, tmp_path, asynchronous) as job:
        jobs.wait_for_files(tmp_path, 1)
        time.sleep(1)
        os.kill(job.processes[0].pid, signal.SIGINT)
        interrupted, other = (job.ending(rank).value for rank in range(2))
    assert interrupted[0] == "KeyboardInterrupt", interrupted
    assert other[0] == "DistBackendError" and "rank 0 was interrupted" in other[1], other
    for _, _, (kind, text) in (interrupted, other):  # the group is unusable, and the error says why
        assert kind == "DistBackendError" and "rank 0 was interrupted" in text


def has_a_handler_of_its_own(folder):
    """Such a handler runs when the operation has ended; the operation itself continues."""
    caught_signals = []
    signal.signal(signal.SIGINT, lambda number, frame: caught_signals.append(number))
    dist.barrier()
    if dist.get_rank() == 1:
        jobs.wait_for_files(folder, 2)
    else:
        (folder / "waits").touch()
    x = torch.ones(1)
    dist.all_reduce(x)
    return x.item(), caught_signals


def test_a_handler_of_its_own_ends_nothing(tmp_path):
    with jobs.Job(2, has_a_handler_of_its_own, tmp_path) as job:
        jobs.wait_for_files(tmp_path, 1)
        time.sleep(1)
        os.kill(job.processes[0].pid, signal.SIGINT)
        time.sleep(0.3)  # longer than it takes to notice an interrupt
        (tmp_path / "pressed").touch()
        values = [job.ending(rank).value for rank in range(2)]
    assert values == [(2.0, [signal.SIGINT]), (2.0, [])]


MEETS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
how, rank, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if how == "torch":
    import torch.distributed as dist
    def connect(name):
        store = dist.FileStore(f"{folder}/{name}", 2)
        dist.init_process_group("unisono", store=store, rank=rank, world_size=2)
else:
    import unisono
    def connect(name):
        unisono.connect(rank=rank, size=2, job=folder).close()
try:
    print("begins", flush=True)
    connect("store")
except (KeyboardInterrupt, RuntimeError) as error:
    print("interrupted" if isinstance(error, KeyboardInterrupt) else error, flush=True)
    sys.stdin.readline()
    connect("store-again")
print("met", flush=True)
"""


def start_meeting(how, rank, folder):
    command = [sys.executable, "-W", "ignore", "-c", MEETS, how, str(rank), str(folder)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


@pytest.mark.parametrize("how, rank", [("torch", 0), ("core", 0), ("core", 1)])
def test_ctrl_c_ends_a_meeting_and_frees_its_place(how, rank, tmp_path):
    with contextlib.ExitStack() as started:  # no test that fails leaves a process behind
        meets_again_after_ctrl_c(how, rank, tmp_path, started)


def meets_again_after_ctrl_c(how, rank, tmp_path, started):
    first = start_meeting(how, rank, tmp_path)
    started.callback(first.kill)
    assert first.stdout.readline() == "begins\n"
    time.sleep(1)
    first.send_signal(signal.SIGINT)
    assert first.stdout.readline() == "interrupted\n"
    # The second attempt: the first one has left no rank behind.
    second = start_meeting(how, 1 - rank, tmp_path)
    started.callback(second.kill)
    assert second.stdout.readline() == "begins\n"
    if how == "torch":  # where each attempt has its own store
        said = second.stdout.readline()
        assert said == "unisono: rank 0 cannot take part: it was interrupted\n", said
    for process in (first, second):
        process.stdin.write("\n")
        process.stdin.flush()
    endings = [process.communicate(timeout=100)[0] for process in (first, second)]
    assert endings[0] == "met\n" and endings[1].endswith("met\n"), endings
