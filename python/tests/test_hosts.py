"""Groups over several hosts, simulated on one machine by UNISONO_HOST."""

import os
import signal
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import ddp
import fsdp
import jobs
import pytest
import torch
import torch.distributed as dist

CPU = torch.device("cpu")


def tcp_store(file, rank, size):
    """Listens at a port that is free; rank 0 writes it to `file`."""
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, size, is_master=True, wait_for_workers=False)
        file.with_suffix(".new").write_text(str(store.port))
        file.with_suffix(".new").rename(file)
        return store
    end = time.monotonic() + 100
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return dist.TCPStore("127.0.0.1", int(file.read_text()), size)


def on_hosts(body, hosts, place, *args):
    """Joins as a rank of the host that `hosts` gives, and runs `body`."""
    rank, size = int(os.environ["RANK"]), len(hosts)
    os.environ["UNISONO_HOST"] = hosts[rank]
    store = tcp_store(place, rank, size) if isinstance(place, Path) else dist.FileStore(place, size)
    limit = timedelta(seconds=60)
    dist.init_process_group("unisono", store=store, rank=rank, world_size=size, timeout=limit)
    value = body(*args)
    dist.destroy_process_group()
    return value


def run(hosts, body, *args, place=None):
    """`place`: the file for the rendezvous; without it the ranks use a TCPStore."""
    with tempfile.TemporaryDirectory() as folder:
        place = place or Path(folder) / "port"
        return jobs.run(len(hosts), on_hosts, body, hosts, place, *args, backend=None)


def every_collective(asynchronous):
    rank, size = dist.get_rank(), dist.get_world_size()
    wrong = []

    def end(work):
        if work is not None:
            work.wait()

    def check(what, got, want):
        if not torch.equal(got, want):
            wrong.append((what, got, want))

    for count in (1, 7, 50_000):
        mine = torch.arange(count, dtype=torch.float32) + rank
        every = [torch.arange(count, dtype=torch.float32) + other for other in range(size)]
        total = sum(every)

        x = mine.clone()
        end(dist.all_reduce(x, async_op=asynchronous))
        check("all_reduce", x, total)
        x = mine.clone()
        end(dist.broadcast(x, size - 1, async_op=asynchronous))
        check("broadcast", x, every[-1])
        x = mine.clone()
        end(dist.reduce(x, 1, async_op=asynchronous))
        if rank == 1:
            check("reduce", x, total)
        whole = torch.empty(size * count)
        end(dist.all_gather_into_tensor(whole, mine, async_op=asynchronous))
        check("all_gather", whole, torch.cat(every))
        part = torch.empty(count)
        end(dist.reduce_scatter_tensor(part, torch.cat(every), async_op=asynchronous))
        check("reduce_scatter", part, mine * size)
        out = torch.empty(size * count)
        end(dist.all_to_all_single(out, mine.repeat(size), async_op=asynchronous))
        check("all_to_all", out, torch.cat(every))
        root = rank == 2
        parts = [torch.empty(count) for _ in range(size)] if root else None
        end(dist.gather(mine, parts, dst=2, async_op=asynchronous))
        if root:
            check("gather", torch.cat(parts), torch.cat(every))
        end(dist.scatter(part, every if root else None, src=2, async_op=asynchronous))
        check("scatter", part, mine)
        end(dist.barrier(async_op=asynchronous))

        from_left = torch.empty(count)
        works = [dist.isend(mine, (rank + 1) % size), dist.irecv(from_left, (rank - 1) % size)]
        for work in works:
            work.wait()
        check("recv", from_left, every[rank - 1])
    return wrong


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("hosts", ["aabb", "abab", "abc"])
def test_every_collective(hosts, asynchronous):
    assert run(hosts, every_collective, asynchronous) == [[]] * len(hosts)


def test_a_store_without_an_address(tmp_path):
    """The store is a file. Each rank then publishes all addresses of its host."""
    assert run("abb", every_collective, False, place=str(tmp_path / "store")) == [[]] * 3


def groups():
    """Groups within a host and across hosts become parts of the existing world, and open nothing."""
    rank, before, wrong = dist.get_rank(), len(os.listdir("/proc/self/fd")), []
    for members in ([0, 1], [2, 3], [0, 2], [1, 2, 3]):
        group = dist.new_group(members)
        if rank in members:
            x = torch.full((1000,), float(rank))
            dist.all_reduce(x, group=group)
            if x[-1].item() != sum(members):
                wrong.append((members, x[-1].item()))
    dist.barrier()
    # Fewer if the store has closed connections of the rendezvous meanwhile.
    return wrong, len(os.listdir("/proc/self/fd")) <= before


def test_groups():
    assert run("aabb", groups) == [([], True)] * 4


def allocated():
    x = dist.group.WORLD._get_backend(CPU).allocate_tensor(100_000, dtype=torch.float32, device=CPU)
    x.fill_(1.0)
    dist.all_reduce(x)
    return x.sum().item()


def test_allocated_tensors_are_as_good_as_others():
    assert run("aab", allocated) == [300_000.0] * 3


@pytest.mark.parametrize("example", [ddp.main, fsdp.main], ids=["ddp", "fsdp"])
def test_training(example):
    """As on one host, where test_examples.py compares the result with one process."""
    apart = run("ab", example)
    together = jobs.run(2, example)
    assert apart[0] == pytest.approx(together[0], abs=1e-5)


def until_the_end(folder):
    dist.barrier()
    (folder / str(dist.get_rank())).touch()
    try:
        while True:
            dist.all_reduce(torch.ones(1000))
    except dist.DistBackendError as error:
        return time.monotonic(), str(error)


def test_a_killed_rank_is_named_on_all_hosts(tmp_path):
    place, ready = tmp_path / "port", tmp_path / "ready"
    ready.mkdir()
    with jobs.Job(4, on_hosts, until_the_end, "aabb", place, ready, backend=None) as job:
        jobs.wait_for_files(ready, 4)
        killed = time.monotonic()
        os.kill(job.processes[2].pid, signal.SIGKILL)
        for rank in (0, 1, 3):
            ending = job.ending(rank)
            assert ending is not None and ending.error is None, ending
            at, text = ending.value
            assert "rank 2" in text and at - killed < 20, (at - killed, text)


def refused(variables, limit_s):
    rank = int(os.environ["RANK"])
    os.environ.update(variables[rank])
    store = dist.FileStore(os.environ["TEST_STORE"], 2)
    try:
        limit = timedelta(seconds=limit_s)
        dist.init_process_group("unisono", store=store, rank=rank, world_size=2, timeout=limit)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def refused_with(store_file, variables, limit_s):
    os.environ["TEST_STORE"] = store_file
    return refused(variables, limit_s)


@pytest.mark.parametrize(
    "variables, text",
    [
        ([{"UNISONO_TOKEN": "x" * 16}, {}], "UNISONO_TOKEN is set on rank 0 but not on rank 1"),
        ([{"UNISONO_TLS": "1"}] * 2, "UNISONO_TLS=1 needs UNISONO_TOKEN"),
        ([{"UNISONO_TRANSPORT": "shm"}] * 2, "have different UNISONO_HOST, a and b"),
    ],
    ids=["token", "tls", "shm"],
)
def test_what_cannot_work_between_hosts(variables, text, tmp_path):
    variables = [{**mine, "UNISONO_HOST": host} for mine, host in zip(variables, "ab")]
    for said in jobs.run(2, refused_with, str(tmp_path / "store"), variables, 60, backend=None):
        assert said.startswith("DistBackendError") and text in said, said


def test_another_token_is_turned_away(tmp_path):
    variables = [{"UNISONO_TOKEN": one * 16, "UNISONO_HOST": one} for one in "ab"]
    said = jobs.run(2, refused_with, str(tmp_path / "store"), variables, 15, backend=None)
    assert any("another job token" in text for text in said), said
