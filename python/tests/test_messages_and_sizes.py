"""Messages, sparse tensors, objects, and the collectives on every size, against a reference."""

from datetime import timedelta

import jobs
import pytest
import torch
import torch.distributed as dist
from checks import SHAPE, Check, finish, run_case, variants
from reference import FLOATS, laid_out, reduced, values


def send_and_receive(rank, size):
    check = Check()
    following, previous = (rank + 1) % size, (rank - 1) % size
    for dtype, layout, run_async, what in variants():
        mine = laid_out(values(dtype, SHAPE, rank), layout)
        got = laid_out(torch.zeros(SHAPE, dtype=dtype), layout)
        works = [dist.isend(mine, following, tag=3), dist.irecv(got, previous, tag=3)]
        for work in works:
            work.wait()
        check.equal(got, values(dtype, SHAPE, previous), what)
        # Blocking messages in pairs: the lower rank sends first.
        partner = rank ^ 1
        got = laid_out(torch.zeros(SHAPE, dtype=dtype), layout)
        for sends in (rank < partner, rank > partner):
            if sends:
                dist.send(mine, partner, tag=4)
            else:
                source = dist.recv(got, partner if run_async else None, tag=4)  # None: from any rank
                if source != partner:
                    check.wrong.append(f"{what} came from {source}")
        check.equal(got, values(dtype, SHAPE, partner), f"blocking {what}")
    # Long messages: both directions are posted before any wait, then awaited in the wrong order.
    mine = [torch.full((300_000,), float(10 * rank + i)) for i in range(3)]
    got = [torch.zeros(300_000) for _ in range(3)]
    works = [dist.isend(mine[i], following, tag=i) for i in range(3)]
    works += [dist.irecv(got[i], previous, tag=i) for i in range(3)]
    for work in reversed(works):
        work.wait()
    for i in range(3):
        check.equal(got[i], torch.full((300_000,), float(10 * previous + i)), f"long {i}")
    batch = [dist.P2POp(dist.isend, mine[0], following), dist.P2POp(dist.irecv, got[1], previous)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    check.equal(got[1], torch.full((300_000,), float(10 * previous)), "batch")
    # From any rank.
    if rank == 0:
        seen = set()
        for _ in range(1, size):
            number = torch.zeros(1)
            source = dist.recv(number)
            seen.add(source)
            check.equal(number, torch.tensor([float(source)]), "any")
        if seen != set(range(1, size)):
            check.wrong.append(f"sources {seen}")
    else:
        dist.send(torch.tensor([float(rank)]), 0)
    return check.done()


def sparse_all_reduce(rank, size):
    check = Check()
    for dtype in (*FLOATS, torch.int32, torch.int64):  # for complex types PyTorch passes a copy
        for run_async in (False, True):
            indices = torch.tensor([[rank, 5], [0, 1]])
            numbers = torch.tensor([1.0 + rank, 2.0]).to(dtype)
            tensor = torch.sparse_coo_tensor(indices, numbers, (8, 2))
            want = torch.zeros(8, 2, dtype=dtype)
            for other in range(size):
                want[other, 0] += 1 + other
                want[5, 1] += 2
            finish(dist.all_reduce(tensor, async_op=run_async), run_async)
            check.equal(tensor.to_dense(), want, f"sparse {dtype}")
    return check.done()


def every_size(rank, size):
    """Empty, fewer than the ranks, not divisible, around a cell, a page and a slot, and long."""
    check = Check()
    counts = [0, 1, 2, 3, 5, 63, 64, 65, 1023, 1024, 1025, 16_383, 16_384, 16_385, 100_003, 1_000_003]
    for number, count in enumerate(counts):
        dtype = (torch.float32, torch.bfloat16, torch.int64)[number % 3]
        inputs = [values(dtype, (count,), other, number) for other in range(size)]
        together = torch.cat(inputs)
        for run_async in (False, True):
            what = f"{count} of {dtype} {run_async}"
            tensor = inputs[rank].clone()
            finish(dist.all_reduce(tensor, async_op=run_async), run_async)
            check.equal(tensor, reduced("SUM", inputs), f"all_reduce {what}")
            tensor = inputs[rank].clone()
            finish(dist.broadcast(tensor, size - 1, async_op=run_async), run_async)
            check.equal(tensor, inputs[-1], f"broadcast {what}")
            whole = torch.zeros_like(together)
            finish(dist.all_gather_into_tensor(whole, inputs[rank], async_op=run_async), run_async)
            check.equal(whole, together, f"all_gather {what}")
            part = torch.zeros_like(inputs[rank])
            finish(dist.reduce_scatter_tensor(part, whole, async_op=run_async), run_async)
            check.equal(part, reduced("SUM", [inputs[rank]] * size), f"reduce_scatter {what}")
            out = torch.zeros_like(together)
            finish(dist.all_to_all_single(out, inputs[rank].repeat(size), async_op=run_async), run_async)
            check.equal(out, together, f"all_to_all {what}")
    return check.done()


def same_on_all_ranks(rank, size):
    """Sums of floats are bitwise equal on all ranks, and in every run."""
    check = Check()
    generator = torch.Generator().manual_seed(rank)
    for count in (7, 1000, 70_001, 500_000):
        for dtype in FLOATS:
            mine = torch.randn(count, generator=generator).to(dtype)
            results = [mine.clone() for _ in range(2)]
            for result in results:
                dist.all_reduce(result)
            bits = [result.view(torch.uint8) for result in results]
            every = torch.zeros(size, bits[0].numel(), dtype=torch.uint8)
            dist.all_gather_into_tensor(every, bits[0])
            if not torch.equal(*bits) or not all(torch.equal(one, bits[0]) for one in every):
                check.wrong.append(f"{count} of {dtype}")
    return check.done()


def objects_and_barriers(rank, size):
    check = Check()
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * (100 * rank)})
    shared = [f"from {rank}", rank]
    dist.broadcast_object_list(shared, src=size - 1)
    scattered = [None]
    dist.scatter_object_list(scattered, list(range(size)) if rank == 0 else None, src=0)
    collected = [None] * size if rank == 0 else None
    dist.gather_object(rank * rank, collected, dst=0)
    if [one["rank"] for one in gathered] != list(range(size)):
        check.wrong.append(str(gathered))
    if shared != [f"from {size - 1}", size - 1] or scattered != [rank]:
        check.wrong.append(f"{shared} {scattered}")
    if rank == 0 and collected != [other * other for other in range(size)]:
        check.wrong.append(str(collected))
    dist.barrier()
    dist.barrier(async_op=True).wait()
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    group.monitored_barrier(timeout=timedelta(seconds=20))
    return check.done()


CASES = [send_and_receive, sparse_all_reduce, every_size, same_on_all_ranks, objects_and_barriers]


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_results(case, ranks):
    if case is not send_and_receive or ranks > 1:  # torch.distributed refuses a send to itself
        for rank, wrong in enumerate(jobs.run(ranks, run_case, case)):
            assert wrong == [], f"rank {rank}"
