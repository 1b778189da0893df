"""Tests from bug reports of users of other backends of torch.distributed."""

import os
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import jobs
import pytest
import torch
import torch.distributed as dist
import torch_calls
from test_guide import GUIDE


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def again_and_again(times, port, store_file):
    """Creates the default group, uses and destroys it; without a file over env://."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    for _ in range(times):
        more = {"store": dist.FileStore(store_file, size), "rank": rank, "world_size": size} if store_file else {}
        dist.init_process_group("unisono", timeout=timedelta(seconds=60), **more)
        x = torch.ones(1)
        dist.all_reduce(x)
        part = dist.new_group([0, 1])
        if rank < 2:
            dist.all_reduce(x, group=part)
        dist.destroy_process_group()
    return x.item()


def test_a_program_may_begin_again_on_one_port():
    assert jobs.run(4, again_and_again, 10, free_port(), None, backend=None) == [8.0, 8.0, 4.0, 4.0]


def test_a_program_may_begin_again_over_one_store(tmp_path):
    """As under torchrun, whose store outlives the groups."""
    found = jobs.run(3, again_and_again, 4, 0, str(tmp_path / "store"), backend=None)
    assert found == [6.0, 6.0, 3.0]


def broadcast_otherwise(what):
    rank = dist.get_rank()
    x = torch.ones(4, dtype=torch.int32 if what == "dtype" and rank == 1 else torch.float32)
    told = [jobs.caught(dist.broadcast, x, rank if what == "root" else 0)]
    if told[0][0] is None:
        told.append(jobs.caught(dist.barrier))
    return told[-1]


@pytest.mark.parametrize("what", ["dtype", "root"])
def test_all_ranks_are_told_of_other_broadcasts_at_the_next_call_at_the_latest(what):
    for kind, text in jobs.run(2, broadcast_otherwise, what):
        wanted = ("f32", "i32") if what == "dtype" else ("root 0", "root 1")
        assert kind == "DistBackendError" and all(word in text for word in ("mismatch", *wanted)), text


def monitored():
    dist.monitored_barrier()
    if dist.get_rank() == 1:
        jobs.hear("over")
        return None
    found = jobs.caught(dist.monitored_barrier, timeout=timedelta(milliseconds=200))
    jobs.say("over")
    return found


def test_monitored_barrier_by_its_own_name():
    (kind, text), _ = jobs.run(2, monitored)
    assert kind in ("DistBackendError", "RuntimeError") and "Rank 1 failed to pass monitoredBarrier in 200 ms" in text


def summed_fnuz():
    found = []
    for dtype in (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz):
        x = torch.tensor([0.5, 1.5, -3.0, 0.0]).mul(dist.get_rank() + 1).to(dtype)
        dist.all_reduce(x)
        out = torch.zeros(2).to(dtype)
        dist.reduce_scatter_tensor(out, x, dist.ReduceOp.MAX)
        found.append((x.float().tolist(), out.float().tolist()))
    return found


def test_sums_of_fnuz():
    sums = [1.5, 4.5, -9.0, 0.0]
    e5m2 = torch.tensor(sums).to(torch.float8_e5m2fnuz).float().tolist()
    for rank, found in enumerate(jobs.run(2, summed_fnuz)):
        assert found == [(sums, sums[2 * rank :][:2]), (e5m2, e5m2[2 * rank :][:2])]


def sent_and_gone():
    x = torch.full((1_000_000,), 7.0)
    if dist.get_rank() == 0:
        dist.isend(x, 1)
        dist.destroy_process_group()
        return None
    time.sleep(40)  # longer than the end of a program waits for operations that no rank needs
    dist.recv(x.zero_(), 0)
    return x[-1].item()


@pytest.mark.slow
def test_a_long_message_outlives_its_sender():
    assert jobs.run(2, sent_and_gone, timeout_s=120) == [None, 7.0]


ENDS = """
import atexit, os, sys, time
from datetime import timedelta
from pathlib import Path
import torch
import torch.distributed as dist

folder, rank, elements, end = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
ends = folder / "ends"
dist.init_process_group("unisono", init_method=f"file://{folder}/store", rank=rank, world_size=2,
                        timeout=timedelta(seconds=60))
x = torch.full((elements,), 7.0)
if rank == 0:
    dist.isend(x, 1)
    atexit.register(ends.touch)  # runs before what unisono does at the end
    if end == "_exit":
        ends.touch()
        os._exit(0)
else:
    while not ends.exists():
        time.sleep(0.01)
    time.sleep(1)
    dist.recv(x.zero_(), 0)
    print("got", x[-1].item())
"""


def ended(folder, elements, end):
    """Returns the output of rank 1, whose message comes from a rank that ends at once."""
    program = folder / "program.py"
    program.write_text(ENDS)
    ranks = [
        subprocess.Popen([sys.executable, program, folder, str(rank), str(elements), end],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in range(2)
    ]  # fmt: skip
    said = [rank.communicate(timeout=300)[0] for rank in ranks]
    return ranks[1].returncode, said[1]


@pytest.mark.parametrize(("elements", "end"), [(1_000_000, "return"), (100, "_exit")])
def test_a_message_outlives_a_program_without_destroy(elements, end, tmp_path):
    assert ended(tmp_path, elements, end) == (0, "got 7.0\n")


def test_a_long_message_of_a_program_that_runs_no_handler_is_lost(tmp_path):
    code, said = ended(tmp_path, 1_000_000, "_exit")
    assert code == 1 and "DistBackendError" in said and "rank 0" in said, said


CALLBACKS = """
import os, sys, time
from pathlib import Path
import torch
import torch.distributed as dist

rank, way, folder = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])

def chain(name, callback):
    "Rank 1 takes part when rank 0 has its future: so the callback runs on unisono's thread."
    dist.init_process_group("unisono", init_method=f"file://{folder}/{name}", rank=rank, world_size=2)
    chained = folder / f"{name}-chained"
    while rank == 1 and not chained.exists():
        time.sleep(0.01)
    future = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(callback)
    chained.touch()
    return future

def late(future):
    begun.set_result(None)
    for _ in range(300):
        time.sleep(0.001)  # asks for Python's lock again and again
    return future.value()

begun = torch.futures.Future()
kept = chain("first", late)
begun.wait()
if way == "fork":
    kept.wait()
    dist.destroy_process_group()
    if child := os.fork():
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print("child:", chain("second", lambda future: future.value()[0].sum()).wait().item())
    dist.destroy_process_group()
"""


@pytest.mark.parametrize(("way", "said"), [("exit", ""), ("fork", "child: 6.0\n")])
def test_callbacks_end_before_the_program_and_run_in_a_forked_child(way, said, tmp_path):
    ranks = [
        subprocess.Popen([sys.executable, "-c", CALLBACKS, str(rank), way, tmp_path],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]  # fmt: skip
    for rank in ranks:
        told, errors = rank.communicate(timeout=120)
        assert (rank.returncode, told) == (0, said), errors


def sent_and_forgotten(store):
    """A worker of multiprocessing, which ends without atexit handlers."""
    rank = int(os.environ["RANK"])
    dist.init_process_group("unisono", store=dist.FileStore(store, 2), rank=rank, world_size=2)
    x = torch.full((1_000_000,), 7.0)
    if rank == 0:
        dist.isend(x, 1)
        return None
    time.sleep(1)
    dist.recv(x.zero_(), 0)
    return x[-1].item()


def test_a_message_outlives_a_worker_without_destroy(tmp_path):
    assert jobs.run(2, sent_and_forgotten, str(tmp_path / "store"), backend=None) == [None, 7.0]


def sent_before_an_error():
    import unisono.torch

    x = torch.full((1_000_000,), 7.0)
    if dist.get_rank() == 0:
        dist.isend(x, 1)
        try:
            raise ValueError("the worker fails")
        except ValueError:
            unisono.torch._leave()  # as multiprocessing does
        jobs.say("over")
        return None
    jobs.hear("over")
    dist.recv(x.zero_(), 0)
    return x[-1].item()


def test_a_worker_that_fails_does_not_wait_for_its_messages():
    assert jobs.run(2, sent_before_an_error) == [None, 7.0]


def received_otherwise(elements, dtype):
    if dist.get_rank() == 0:
        told = jobs.caught(dist.send, torch.ones(elements), 1)
    else:
        told = jobs.caught(dist.recv, torch.ones(elements, dtype=dtype), 0)
    return told if told[0] is not None else jobs.caught(dist.barrier)


@pytest.mark.parametrize("elements", [4, 1_000_000])
def test_both_sides_are_told_of_a_receive_of_another_type(elements):
    for kind, text in jobs.run(2, received_otherwise, elements, torch.int32):
        words = ("mismatch", "of i32", "of f32", "rank 0 sends", "on rank 1")
        assert kind == "DistBackendError" and all(word in text for word in words), text


def received_as_pairs():
    if dist.get_rank() == 0:
        dist.send(torch.tensor([1 + 2j]), 1)
        return None
    x = torch.zeros(2)
    dist.recv(x, 0)
    return x.tolist()


def test_types_that_unisono_does_not_name_match_by_their_bytes():
    assert jobs.run(2, received_as_pairs) == [None, [1.0, 2.0]]


def held():
    """Counts descriptors and mappings of this process."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    return len(os.listdir("/proc/self/fd")), sum("unisono" in line for line in maps)


def made_and_destroyed(times, store):
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    seen = []
    for number in range(times):
        dist.init_process_group("unisono", store=dist.FileStore(f"{store}-{number}", size), rank=rank, world_size=size)
        dist.all_reduce(torch.ones(1))
        seen.append(held())
        dist.destroy_process_group()
    return seen


def test_a_process_that_begins_again_keeps_nothing(tmp_path):
    for seen in jobs.run(2, made_and_destroyed, 100, str(tmp_path / "store"), backend=None):
        assert seen[-1] == seen[2]


def grouped(times):
    seen = []
    for _ in range(times):
        group = dist.new_group([0, 1])
        x = torch.ones(1)
        dist.all_reduce(x, group=group)
        dist.destroy_process_group(group)
        seen.append(held())
    return x.item(), seen


def test_groups_that_are_destroyed_keep_nothing():
    for value, seen in jobs.run(2, grouped, 200):
        assert value == 2.0 and seen[-1] == seen[2]


@pytest.mark.parametrize("backend", ["unisono", pytest.param("gloo", marks=pytest.mark.slow)])
def test_the_guide_has_the_table_of_calls(backend):
    """The rows of the guide match the calls. torch_calls.py generates them."""
    ours = torch_calls.of_backend("unisono")
    if backend == "gloo" and torch.__version__.startswith("2.13"):  # the release of gloo's column
        rows = torch_calls.table(ours, torch_calls.of_backend("gloo"))
    else:
        rows = [torch_calls.row(name, said) for name, said in ours.items()]
    for guide in (GUIDE, GUIDE.with_suffix(".zh.md")):
        text = guide.read_text()
        missing = [row for row in rows if row not in text]
        assert missing == [], f"{guide.name}: python python/tests/torch_calls.py prints the table"
