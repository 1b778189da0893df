"""Groups that are split, and groups that continue without some of their ranks."""

import os
import signal
import time

import jobs
import pytest
import torch
import torch.distributed as dist

CPU = torch.device("cpu")


def summed(value, group=None):
    x = torch.full((3,), float(value))
    dist.all_reduce(x, group=group)
    return x[0].item()


def split():
    rank = dist.get_rank()
    pairs = dist.split_group(split_ranks=[[0, 1], [3, 2]])
    again = dist.split_group(split_ranks=[[0, 1], [3, 2]], group_desc="again")
    inner = dist.split_group(pairs, split_ranks=[[1]])  # by its number in the pair
    return {
        "sum": summed(rank, pairs),
        "again": summed(1, again),
        "ranks": dist.get_process_group_ranks(pairs),
        "rank": dist.get_rank(pairs),
        "backend": dist.get_backend(pairs),
        "inner": inner and dist.get_process_group_ranks(inner),
        "apart": pairs.group_name != again.group_name,
    }


def test_split_group():
    for rank, got in enumerate(jobs.run(4, split)):
        first = rank // 2 * 2
        assert got == {
            "sum": 2.0 * first + 1,
            "again": 2.0,
            "ranks": [first, first + 1],
            "rank": rank % 2,
            "backend": "unisono",
            "inner": [rank] if rank % 2 else None,
            "apart": True,
        }


def split_in_part():
    part = dist.split_group(split_ranks=[[0, 2]])
    return part and summed(1, part), summed(1)


def test_ranks_in_no_part_get_none():
    assert jobs.run(3, split_in_part) == [(2.0, 3.0), (None, 3.0), (2.0, 3.0)]


def split_wrongly():
    return [
        jobs.caught(dist.split_group, split_ranks=ranks)
        for ranks in (None, [], [[]], [[0, 2]], [[-1]], [[0], [0, 1]])
    ] + [jobs.caught(dist.split_group, split_ranks=[[0, 1]], backend="gloo"), summed(1)]


def test_wrong_parts_are_refused_before_anybody_waits():
    for *errors, after in jobs.run(2, split_wrongly):
        assert [kind for kind, _ in errors] == ["ValueError"] * 7, errors
        assert "2 is not a rank of the parent group of 2" in errors[3][1]
        assert "given twice" in errors[5][1] and "not gloo" in errors[6][1]
        assert after == 2.0


def split_of_gloo():
    error = jobs.caught(dist.split_group, split_ranks=[[0, 1]])
    jobs.say(f"{dist.get_rank()} is through")
    for rank in range(2):
        jobs.hear(f"{rank} is through")  # gloo connects late, and fails if the other rank has left
    return error


def test_groups_of_others_stay_pytorchs_matter():
    for kind, text in jobs.run(2, split_of_gloo, backend="gloo"):
        # PyTorch 2.15 splits CPU groups itself.
        assert (kind, text) == (None, "no error") or "No device associated" in text


def shrunk(flags, lost):
    rank = dist.get_rank()
    part = dist.new_group([0, 1, 2, 3])
    summed(rank, part)
    jobs.say(f"{rank} is through")
    if rank in lost:
        return rank  # leaves properly, at once
    for other in range(4):
        jobs.hear(f"{other} is through")  # PyTorch aborts the part, which ends pending operations
    group = dist.shrink_group(lost, shrink_flags=flags)
    sizes = dist.get_world_size(), group.size()
    total = summed(dist.get_rank())
    pair = dist.new_group([0, 1])
    return sizes, dist.get_rank(), total, summed(5, pair), dist.group.WORLD is group


@pytest.mark.parametrize("flags", [0, 1])
@pytest.mark.parametrize("lost", [[1], [3, 0]])
def test_shrink_the_world(lost, flags):
    got = jobs.run(4, shrunk, flags, lost)
    left = [rank for rank in range(4) if rank not in lost]
    size = len(left)
    for number, rank in enumerate(left):
        total = float(sum(range(size)))
        pair = 10.0 if number < 2 else 5.0
        assert got[rank] == ((size, size), number, total, pair, True)


def shrunk_part():
    rank = dist.get_rank()
    part = dist.new_group([0, 1, 2])
    if rank in (0, 2):
        left = dist.shrink_group([1], part)
        assert dist.get_process_group_ranks(left) == [0, 2]
        assert summed(rank, left) == 2.0
    return summed(1)


def test_shrink_a_part_leaves_the_world():
    assert jobs.run(4, shrunk_part) == [4.0] * 4


def killed(victim):
    if dist.get_rank() == victim:
        summed(1)
        os.kill(os.getpid(), signal.SIGKILL)
    kind, text = None, ""  # the others may still be in the first sum when the victim has left it
    while kind is None:
        kind, text = jobs.caught(summed, 1)
    begin = time.monotonic()
    group = dist.shrink_group([victim])
    took = time.monotonic() - begin
    x = torch.full((5,), float(dist.get_rank() + 1))
    work = dist.all_reduce(x, group=group, async_op=True)
    work.wait()
    return kind, took, x[0].item()


@pytest.mark.parametrize("victim", [0, 2])
def test_shrink_after_a_rank_died(victim):
    with jobs.Job(3, killed, victim) as job:
        endings = [job.ending(rank) for rank in range(3) if rank != victim]
    for ending in endings:
        assert ending is not None and ending.error is None, ending
        kind, took, total = ending.value
        assert kind == "DistBackendError" and total == 3.0
        assert took < 10, "as long as that, it has waited for the dead"


def left_out():
    group = dist.group.WORLD._get_backend(CPU)
    return jobs.caught(dist.shrink_group, [dist.get_rank()]), jobs.caught(group.shrink, [dist.get_rank()])


def test_who_is_left_out_does_not_call():
    for from_pytorch, from_us in jobs.run(2, left_out):
        assert from_pytorch[0] == "RuntimeError"
        assert from_us[0] == "ValueError" and "excludes itself" in from_us[1]


def test_shrink_does_not_wait_for_ever():
    with jobs.Job(3, waits_alone, timeout_s=2) as job:
        endings = [job.ending(rank) for rank in range(3)]
    kind, text = endings[0].value
    assert kind == "DistBackendError" and "rank 1" in text


def waits_alone():
    """Rank 1 must join, and does not."""
    if dist.get_rank() == 0:
        return jobs.caught(dist.shrink_group, [2])
    time.sleep(4)
    return None


def split_and_merged(store_file):
    rank = dist.get_rank()
    pair = [rank // 2 * 2, rank // 2 * 2 + 1]
    half = dist.group.WORLD.split_group(pair, group_name=f"pair {pair}")
    x = torch.ones(1)
    half.allreduce([x], dist.AllreduceOptions()).wait()
    store = dist.FileStore(store_file, 4)
    whole = half.merge_remote_group(store, 4, group_name="whole")
    whole.allreduce([x], dist.AllreduceOptions()).wait()
    sizes = half.size(), whole.size()
    dist.barrier()
    return sizes, x.item()


def test_groups_are_split_and_merged(tmp_path):
    assert jobs.run(4, split_and_merged, str(tmp_path / "store")) == [((2, 4), 8.0)] * 4
