"""Every operation x type x layout x blocking or not, against a reference in each process."""

from datetime import timedelta

import jobs
import pytest
import torch
import torch.distributed as dist
from reference import ALL, LAYOUTS, laid_out, ops_of, reduced, same, values

SHAPE = (3, 5)


class Check:
    """Collects what is wrong, so that one job tells of all of it."""

    def __init__(self):
        self.wrong = []

    def equal(self, got, want, what):
        if not same(got, want):
            self.wrong.append(f"{what}: {got.flatten()[:6].tolist()}, not {want.flatten()[:6].tolist()}")

    def done(self):
        return self.wrong[:10]


def variants(dtypes=ALL):
    for dtype in dtypes:
        for layout in LAYOUTS:
            for run_async in (False, True):
                yield dtype, layout, run_async, f"{dtype} {layout} {'async' if run_async else 'sync'}"


def finish(work, run_async):
    assert (work is not None) == run_async, "a Work is what an asynchronous call gives"
    if work is not None:
        work.wait()


def all_reduce(rank, size):
    check = Check()
    for dtype, layout, run_async, what in variants():
        for op in ops_of(dtype):
            inputs = [values(dtype, SHAPE, other) for other in range(size)]
            tensor = laid_out(inputs[rank], layout)
            finish(dist.all_reduce(tensor, getattr(dist.ReduceOp, op), async_op=run_async), run_async)
            check.equal(tensor, reduced(op, inputs), f"{op} {what}")
    return check.done()


def reduce(rank, size):
    check = Check()
    for dtype, layout, run_async, what in variants():
        for root in range(size):
            inputs = [values(dtype, SHAPE, other, root) for other in range(size)]
            tensor = laid_out(inputs[rank], layout)
            finish(dist.reduce(tensor, root, async_op=run_async), run_async)
            want = reduced("SUM", inputs) if rank == root else inputs[rank]
            check.equal(tensor, want, f"root {root} {what}")
    return check.done()


def premul_sum(rank, size):
    check = Check()
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64):
        op = dist._make_nccl_premul_sum(0.5)
        inputs = [values(dtype, SHAPE, other) for other in range(size)]
        tensor = inputs[rank].clone()
        if dtype.is_complex:  # dist.all_reduce refuses it before the backend sees it
            options = dist.AllreduceOptions()
            options.reduceOp = op
            dist.group.WORLD.allreduce([tensor], options).wait()
        else:
            dist.all_reduce(tensor, op)
        check.equal(tensor, reduced("PREMUL_SUM", inputs, 0.5), str(dtype))
    return check.done()


def broadcast(rank, size):
    check = Check()
    for dtype, layout, run_async, what in variants():
        for root in range(size):
            tensor = laid_out(values(dtype, SHAPE, rank), layout)
            finish(dist.broadcast(tensor, root, async_op=run_async), run_async)
            check.equal(tensor, values(dtype, SHAPE, root), f"root {root} {what}")
    return check.done()


def all_gather(rank, size):
    check = Check()
    for dtype, layout, run_async, what in variants():
        inputs = [values(dtype, SHAPE, other) for other in range(size)]
        outs = [laid_out(torch.zeros_like(inputs[0]), layout) for _ in range(size)]
        finish(dist.all_gather(outs, laid_out(inputs[rank], layout), async_op=run_async), run_async)
        for other in range(size):
            check.equal(outs[other], inputs[other], f"{what} from {other}")
        # Into views of one buffer, one of which is the input.
        room = torch.zeros(size, *SHAPE, dtype=dtype)
        room[rank] = inputs[rank]
        finish(dist.all_gather(list(room.unbind(0)), room[rank], async_op=run_async), run_async)
        check.equal(room, torch.stack(inputs), f"views {what}")
        # Parts of different lengths, some of none.
        parts = [values(dtype, (other % 3, 4), other) for other in range(size)]
        outs = [torch.zeros_like(part) for part in parts]
        finish(dist.all_gather(outs, laid_out(parts[rank], layout), async_op=run_async), run_async)
        for other in range(size):
            check.equal(outs[other], parts[other], f"uneven {what} from {other}")
    return check.done()


def all_gather_into_tensor(rank, size):
    check = Check()
    for dtype, layout, run_async, what in variants():
        inputs = [values(dtype, SHAPE, other) for other in range(size)]
        for shape in ((size * SHAPE[0], SHAPE[1]), (size, *SHAPE)):
            out = laid_out(torch.zeros(shape, dtype=dtype), layout)
            mine = laid_out(inputs[rank], layout)
            finish(dist.all_gather_into_tensor(out, mine, async_op=run_async), run_async)
            check.equal(out, torch.stack(inputs).view(shape), f"{shape} {what}")
        room = torch.zeros(size, *SHAPE, dtype=dtype)
        room[rank] = inputs[rank]
        finish(dist.all_gather_into_tensor(room, room[rank], async_op=run_async), run_async)
        check.equal(room, torch.stack(inputs), f"in place {what}")
    return check.done()


def gather_and_scatter(rank, size):
    check = Check()
    for dtype, layout, run_async, what in variants():
        inputs = [values(dtype, SHAPE, other) for other in range(size)]
        for root in range(size):
            outs = [laid_out(torch.zeros_like(inputs[0]), layout) for _ in range(size)]
            mine = laid_out(inputs[rank], layout)
            finish(
                dist.gather(mine, outs if rank == root else None, root, async_op=run_async), run_async
            )
            for other in range(size if rank == root else 0):
                check.equal(outs[other], inputs[other], f"gather {root} {what} from {other}")
            out = laid_out(torch.zeros_like(inputs[0]), layout)
            ins = [laid_out(tensor, layout) for tensor in inputs] if rank == root else None
            finish(dist.scatter(out, ins, root, async_op=run_async), run_async)
            check.equal(out, inputs[rank], f"scatter {root} {what}")
    return check.done()


def reduce_scatter(rank, size):
    check = Check()
    for dtype, layout, run_async, what in variants():
        for op in ops_of(dtype):
            how = getattr(dist.ReduceOp, op)
            inputs = [values(dtype, (size, *SHAPE), other) for other in range(size)]
            want = reduced(op, inputs)[rank]
            out = laid_out(torch.zeros(SHAPE, dtype=dtype), layout)
            ins = [laid_out(part, layout) for part in inputs[rank].unbind(0)]
            if not dtype.is_complex:
                finish(dist.reduce_scatter(out, ins, how, async_op=run_async), run_async)
                check.equal(out, want, f"list {op} {what}")
            out = laid_out(torch.zeros(SHAPE, dtype=dtype), layout)
            whole = laid_out(inputs[rank], layout)
            finish(dist.reduce_scatter_tensor(out, whole, how, async_op=run_async), run_async)
            check.equal(out, want, f"tensor {op} {what}")
    for dtype in (torch.float32, torch.int16, torch.bfloat16):
        parts = [other % 3 for other in range(size)]  # uneven, some of none
        inputs = [[values(dtype, (n, 4), other, i) for i, n in enumerate(parts)] for other in range(size)]
        out = torch.zeros(parts[rank], 4, dtype=dtype)
        dist.reduce_scatter(out, inputs[rank])
        check.equal(out, reduced("SUM", [mine[rank] for mine in inputs]), f"uneven {dtype}")
        room = inputs[rank] and torch.cat(inputs[rank])
        begin = sum(parts[:rank])
        place = room[begin : begin + parts[rank]]  # the output is a part of the input
        dist.reduce_scatter(place, list(room.split(parts)))
        check.equal(place, out, f"in place {dtype}")
    return check.done()


def all_to_all(rank, size):
    check = Check()
    for dtype, layout, run_async, what in variants():
        inputs = [values(dtype, (size * 2, 3), other) for other in range(size)]
        out = laid_out(torch.zeros_like(inputs[0]), layout)
        mine = laid_out(inputs[rank], layout)
        finish(dist.all_to_all_single(out, mine, async_op=run_async), run_async)
        want = torch.cat([tensor[2 * rank : 2 * rank + 2] for tensor in inputs])
        check.equal(out, want, f"even {what}")
        # Some ranks say how they split and others do not, though it is the same.
        splits = ([2] * size, [2] * size) if rank == 0 else ()
        finish(dist.all_to_all_single(out, mine, *splits, async_op=run_async), run_async)
        check.equal(out, want, f"mixed {what}")
        # From rank a to b: (a + 2 b) % 3 rows; some are none.
        rows = [[(a + 2 * b) % 3 for b in range(size)] for a in range(size)]
        inputs = [values(dtype, (sum(rows[a]), 3), a) for a in range(size)]
        parts = [tensor.split(rows[a]) for a, tensor in enumerate(inputs)]
        want = torch.cat([parts[a][rank] for a in range(size)])
        received = [rows[a][rank] for a in range(size)]
        out = laid_out(torch.zeros_like(want), layout)
        mine = laid_out(inputs[rank], layout)
        finish(dist.all_to_all_single(out, mine, received, rows[rank], async_op=run_async), run_async)
        check.equal(out, want, f"uneven {what}")
        outs = [laid_out(torch.zeros(n, 3, dtype=dtype), layout) for n in received]
        ins = [laid_out(part, layout) for part in parts[rank]]
        finish(dist.all_to_all(outs, ins, async_op=run_async), run_async)
        check.equal(torch.cat(outs), want, f"list {what}")
    return check.done()


def coalesced(rank, size):
    check = Check()
    group = dist.group.WORLD
    for sizes in ([(3,), (2, 2), (0,)], [(70_000,), (5,)]):
        inputs = [[values(torch.float32, s, other, i) for i, s in enumerate(sizes)] for other in range(size)]
        tensors = [tensor.clone() for tensor in inputs[rank]]
        dist.all_reduce_coalesced(tensors)
        for i in range(len(sizes)):
            check.equal(tensors[i], reduced("SUM", [mine[i] for mine in inputs]), f"reduce {i}")
        outs = [torch.zeros(size * t.numel()) for t in tensors]
        group.allgather_into_tensor_coalesced(outs, inputs[rank]).wait()
        for i in range(len(sizes)):
            check.equal(outs[i], torch.cat([mine[i].flatten() for mine in inputs]), f"gather {i}")
        backs = [torch.zeros(t.numel()) for t in tensors]
        group.reduce_scatter_tensor_coalesced(backs, outs).wait()
        for i in range(len(sizes)):
            check.equal(backs[i], inputs[rank][i].flatten() * size, f"scatter {i}")
        lists = [[torch.zeros_like(t) for t in tensors] for _ in range(size)]
        group.allgather_coalesced(lists, inputs[rank]).wait()
        for other in range(size):
            for i in range(len(sizes)):
                check.equal(lists[other][i], inputs[other][i], f"lists {other} {i}")
    mixed = [torch.ones(3), torch.ones(3, dtype=torch.int64)]
    options = dist.AllreduceCoalescedOptions()
    group.allreduce_coalesced(mixed, options).wait()
    check.equal(mixed[1], torch.full((3,), size), "mixed types")
    return check.done()


def send_and_receive(rank, size):
    check = Check()
    following, previous = (rank + 1) % size, (rank - 1) % size
    for dtype, layout, _, what in variants():
        mine = laid_out(values(dtype, SHAPE, rank), layout)
        got = laid_out(torch.zeros(SHAPE, dtype=dtype), layout)
        works = [dist.isend(mine, following, tag=3), dist.irecv(got, previous, tag=3)]
        for work in works:
            work.wait()
        check.equal(got, values(dtype, SHAPE, previous), what)
    # Long ones, both directions posted before any wait, then waited for in the wrong order.
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
    for run_async in (False, True):
        indices = torch.tensor([[rank, 5], [0, 1]])
        tensor = torch.sparse_coo_tensor(indices, torch.tensor([1.0 + rank, 2.0]), (8, 2))
        want = torch.zeros(8, 2)
        for other in range(size):
            want[other, 0] += 1.0 + other
            want[5, 1] += 2.0
        finish(dist.all_reduce(tensor, async_op=run_async), run_async)
        check.equal(tensor.to_dense(), want, "sparse")
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


def run_case(case):
    return case(dist.get_rank(), dist.get_world_size())


CASES = [
    all_reduce, reduce, premul_sum, broadcast, all_gather, all_gather_into_tensor,
    gather_and_scatter, reduce_scatter, all_to_all, coalesced, send_and_receive, sparse_all_reduce,
    objects_and_barriers,
]  # fmt: skip


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_results(case, ranks):
    for rank, wrong in enumerate(jobs.run(ranks, run_case, case)):
        assert wrong == [], f"rank {rank}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_one_rank(case):
    if case is not send_and_receive:  # torch.distributed refuses to send to oneself
        assert jobs.run(1, run_case, case) == [[]]
