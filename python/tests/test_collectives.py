"""Every operation x type x layout x blocking or not, compared with a reference in each process."""

import jobs
import pytest
import torch
import torch.distributed as dist
from checks import SHAPE, Check, asked, finish, run_case, variants
from reference import PREMULTIPLIED, laid_out, ops_of, reduced, values


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
        for number, op in enumerate(ops_of(dtype)):
            root = number % size
            inputs = [values(dtype, SHAPE, other, root) for other in range(size)]
            tensor = laid_out(inputs[rank], layout)
            how = getattr(dist.ReduceOp, op)
            finish(dist.reduce(tensor, root, how, async_op=run_async), run_async)
            want = reduced(op, inputs) if rank == root else inputs[rank]
            check.equal(tensor, want, f"{op} root {root} {what}")
    return check.done()


def premul_sum(rank, size):
    """dist.* refuses some types before the backend sees them, so this calls the group's methods."""
    check = Check()
    group = dist.group.WORLD
    op = dist._make_nccl_premul_sum(0.5)
    for dtype, layout, run_async, what in variants(PREMULTIPLIED):
        inputs = [values(dtype, (size, *SHAPE), other) for other in range(size)]
        total = reduced("PREMUL_SUM", inputs, 0.5)
        tensor = laid_out(inputs[rank], layout)
        finish(group.allreduce([tensor], asked(dist.AllreduceOptions(), run_async, op)), run_async)
        check.equal(tensor, total, f"all_reduce {what}")
        tensor = laid_out(inputs[rank], layout)
        options = asked(dist.ReduceOptions(), run_async, op)
        options.rootRank = size - 1
        finish(group.reduce([tensor], options), run_async)
        check.equal(tensor, total if rank == size - 1 else inputs[rank], f"reduce {what}")
        out = laid_out(torch.zeros(SHAPE, dtype=dtype), layout)
        whole = laid_out(inputs[rank], layout)
        options = asked(dist.ReduceScatterOptions(), run_async, op)
        finish(group._reduce_scatter_base(out, whole, options), run_async)
        check.equal(out, total[rank], f"reduce_scatter {what}")
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
        # Parts of different lengths, some of them empty.
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
    return check.done()


def reduce_scatter_uneven(rank, size):
    """Parts of different lengths, some of them empty. dist.reduce_scatter refuses complex numbers."""
    check = Check()
    lengths = [other % 3 for other in range(size)]
    for dtype, layout, run_async, what in variants():
        inputs = [
            [values(dtype, (n, 4), other, i) for i, n in enumerate(lengths)] for other in range(size)
        ]
        want = reduced("SUM", [mine[rank] for mine in inputs])
        out = laid_out(torch.zeros(lengths[rank], 4, dtype=dtype), layout)
        ins = [laid_out(part, layout) for part in inputs[rank]]
        options = asked(dist.ReduceScatterOptions(), run_async)
        finish(dist.group.WORLD.reduce_scatter([out], [ins], options), run_async)
        check.equal(out, want, what)
        room = torch.cat(inputs[rank])
        begin = sum(lengths[:rank])
        place = room[begin : begin + lengths[rank]]  # the output is a part of the input
        parts = list(room.split(lengths))
        finish(dist.group.WORLD.reduce_scatter([place], [parts], options), run_async)
        check.equal(place, want, f"in place {what}")
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
        # Some ranks pass split sizes and others do not, although the splits are equal.
        splits = ([2] * size, [2] * size) if rank == 0 else ()
        finish(dist.all_to_all_single(out, mine, *splits, async_op=run_async), run_async)
        check.equal(out, want, f"mixed {what}")
        # From rank a to b: (a + 2 b) % 3 rows; some parts are empty.
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
    for dtype, layout, run_async, what in variants():
        inputs = [[values(dtype, (3 + i, 2), other, i) for i in range(3)] for other in range(size)]
        tensors = [laid_out(tensor, layout) for tensor in inputs[rank]]
        options = asked(dist.AllreduceCoalescedOptions(), run_async)
        finish(group.allreduce_coalesced(tensors, options), run_async)
        for i in range(3):
            check.equal(tensors[i], reduced("SUM", [mine[i] for mine in inputs]), f"reduce {i} {what}")
        mine = [laid_out(tensor, layout) for tensor in inputs[rank]]
        outs = [laid_out(torch.zeros(size, *t.shape, dtype=dtype), layout) for t in mine]
        options = asked(dist.distributed_c10d.AllgatherOptions(), run_async)
        finish(group.allgather_into_tensor_coalesced(outs, mine, options), run_async)
        for i in range(3):
            check.equal(outs[i], torch.stack([part[i] for part in inputs]), f"gather {i} {what}")
        backs = [laid_out(torch.zeros(t.shape, dtype=dtype), layout) for t in mine]
        options = asked(dist.ReduceScatterOptions(), run_async)
        finish(group.reduce_scatter_tensor_coalesced(backs, outs, options), run_async)
        for i in range(3):
            check.equal(backs[i], reduced("SUM", [inputs[rank][i]] * size), f"scatter {i} {what}")
    mixed = [torch.ones(3), torch.ones(3, dtype=torch.int64)]
    options = dist.AllreduceCoalescedOptions()
    group.allreduce_coalesced(mixed, options).wait()
    check.equal(mixed[1], torch.full((3,), size), "mixed types")
    return check.done()


CASES = [
    all_reduce, reduce, premul_sum, broadcast, all_gather, all_gather_into_tensor,
    gather_and_scatter, reduce_scatter, reduce_scatter_uneven, all_to_all, coalesced,
]  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_results(case, ranks):
    for rank, wrong in enumerate(jobs.run(ranks, run_case, case)):
        assert wrong == [], f"rank {rank}"


def average_of_bytes():
    signed = torch.full((5,), 100 + dist.get_rank(), dtype=torch.int8)
    dist.all_reduce(signed, op=dist.ReduceOp.AVG)
    unsigned = torch.full((5,), 250, dtype=torch.uint8)
    dist.all_reduce(unsigned, op=dist.ReduceOp.AVG)
    return signed.tolist(), unsigned.tolist()


def test_the_sum_behind_an_average_of_bytes_does_not_wrap():
    assert jobs.run(3, average_of_bytes) == [([101] * 5, [250] * 5)] * 3
