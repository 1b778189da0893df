"""Runs a function on several ranks, each a process forked from a server that has torch loaded."""

import faulthandler
import multiprocessing
import os
import pickle
import signal
import tempfile
import time
import traceback
from collections import namedtuple
from datetime import timedelta

# The end of a rank: its value, or the error that it raised (type, text), and the time.
Ending = namedtuple("Ending", "value error text at")

WHERE = signal.SIGUSR1  # makes a rank write its current stack to stderr

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    [
        "torch.distributed.checkpoint",
        "torch.distributed.fsdp",
        "torch.distributed.optim",
        "torch.distributed.pipelining",
        "torch.distributed.tensor.parallel",
        "torch.optim.adamw",
        "torch.profiler",
    ]
)


def _rank_main(body, args, rank, ranks, store_file, backend, timeout_s, prepare, pipe):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    faulthandler.register(WHERE, all_threads=True)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks))
    value, error, text = None, None, ""
    try:
        if prepare is not None:
            prepare()
        if backend is not None:
            store = dist.FileStore(store_file, ranks)
            dist.init_process_group(
                backend, store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=timeout_s)
            )
        value = body(*args)
    except BaseException as raised:
        error, text = type(raised).__name__, str(raised)
        if os.environ.get("TEST_TRACEBACKS"):
            traceback.print_exc()
    at = time.monotonic()
    try:
        if backend is not None and error is None and dist.is_initialized():
            dist.destroy_process_group()
    except BaseException as raised:
        error, text = type(raised).__name__, str(raised)
    # Passed by value, because multiprocessing would share the memory of tensors with a rank that
    # ends.
    pipe.send_bytes(pickle.dumps(tuple(Ending(value, error, text, at))))
    pipe.close()


TIMEOUT_S = 120  # timeout of groups: on a busy machine ranks start late


class Job:
    """Running ranks. Use run() if nothing must be done to them.

    `prepare` is called in each before its process group is made.
    """

    def __init__(self, ranks, body, *args, backend="unisono", timeout_s=TIMEOUT_S, prepare=None):
        self.folder = tempfile.TemporaryDirectory(prefix="unisono-test-")
        store = os.path.join(self.folder.name, "store")
        self.processes, self.pipes = [], []
        for rank in range(ranks):
            ours, theirs = _context.Pipe(duplex=False)
            process = _context.Process(
                target=_rank_main,
                args=(body, args, rank, ranks, store, backend, timeout_s, prepare, theirs),
                daemon=True,
            )
            process.start()
            theirs.close()
            self.processes.append(process)
            self.pipes.append(ours)

    def ending(self, rank, limit_s=300):
        """How a rank ended; None if it died without an answer or does not end: then it writes its stack."""
        try:
            if self.pipes[rank].poll(limit_s):
                return Ending(*pickle.loads(self.pipes[rank].recv_bytes()))
            os.kill(self.processes[rank].pid, WHERE)
        except (EOFError, ProcessLookupError):
            self.processes[rank].join(timeout=20)
        return None

    def state(self, rank):
        """Describes in messages why a rank has no result."""
        code = self.processes[rank].exitcode
        return "does not end; stderr has where it is" if code is None else f"ended with status {code}"

    def close(self):
        for process in self.processes:
            process.join(timeout=20)
            if process.is_alive():
                process.kill()
                process.join()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def say(word):
    """Lets a rank continue that waits for this word."""
    import torch.distributed as dist

    dist.distributed_c10d._get_default_store().set(word, "said")


def hear(word):
    """Waits until a rank says this word, so that a late rank is late on a busy machine too."""
    import torch.distributed as dist

    dist.distributed_c10d._get_default_store().wait([word], timedelta(seconds=100))


def wait_for_files(folder, count):
    """Waits until the ranks have made this many files."""
    end = time.monotonic() + 100
    while len(list(folder.iterdir())) < count:
        assert time.monotonic() < end, f"{folder} has {list(folder.iterdir())} and not {count}"
        time.sleep(0.01)


def run(ranks, body, *args, **options):
    """Returns the values of `body(*args)` on each rank. An error on any rank fails the test."""
    with Job(ranks, body, *args, **options) as job:
        endings = [job.ending(rank) for rank in range(ranks)]
        states = [job.state(rank) for rank in range(ranks)]
    for rank, ending in enumerate(endings):
        assert ending is not None, f"rank {rank} {states[rank]}"
        assert ending.error is None, f"rank {rank} raised {ending.error}: {ending.text}"
    return [ending.value for ending in endings]


def caught(call, *args, **options):
    """Returns (type, text) of the error that a call raises."""
    try:
        call(*args, **options)
    except Exception as error:
        return type(error).__name__, str(error)
    return None, "no error"
