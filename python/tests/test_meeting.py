"""What ranks hear of each other when a group cannot be made."""

import os
import signal
import time
from datetime import timedelta

import jobs
import torch.distributed as dist
from jobs import caught

from unisono.torch import extension


def meet(store, rank, ranks):
    return caught(extension().Backend, store, rank, ranks, timedelta(seconds=60))


def cannot_read_what_rank_0_says(path):
    """Rank 0 says in a way that is not understood where it is."""
    rank = dist.get_rank()
    store = dist.FileStore(path, 2)
    if rank == 1:
        found = meet(store, 1, 2)
        jobs.hear("understood")
        return found
    line = store.get("unisono/1").decode().split(" ")
    line[2] = "g" * len(line[2])
    line[-1] = "0"
    store.set("unisono/0", " ".join(line))
    said = store.get("unisono/refused").decode()
    jobs.say("understood")
    return said


def test_an_error_of_another_kind_is_told_as_it_is(tmp_path):
    said, (_, text) = jobs.run(2, cannot_read_what_rank_0_says, str(tmp_path / "store"))
    assert said == f"1!cannot take part: {text}" and "stoull" in text, (said, text)


def meet_without_rank_3(folder):
    """Rank 3 says that it comes, and does not."""
    rank = int(os.environ["RANK"])
    store = dist.FileStore(str(folder / "store"), 4)
    if rank == 3:
        store.set("unisono/3", store.get("unisono/2"))
        (folder / "said").touch()
        return None
    return meet(store, rank, 4)


def test_who_hears_of_a_death_is_not_blamed_for_it(tmp_path):
    with jobs.Job(4, meet_without_rank_3, tmp_path, backend=None) as job:
        jobs.wait_for_files(tmp_path, 2)
        time.sleep(1)  # until rank 2 waits for rank 3
        os.kill(job.processes[2].pid, signal.SIGKILL)
        endings = [job.ending(rank) for rank in range(2)]
    for kind, text in (ending.value for ending in endings):
        assert kind == "DistBackendError" and "rank 2" in text, text
        assert "cannot take part" not in text, text
