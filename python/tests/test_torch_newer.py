"""Functions that newer releases of PyTorch require: reconfigure, windows, abort hooks, TokenSwitch."""

import os
import signal
from datetime import timedelta

import jobs
import pytest
import torch
import torch.distributed as dist

needs_reconfigure = pytest.mark.skipif(not hasattr(dist, "_reconfigure"), reason="torch 2.14 and newer: scripts/test-torch runs it")
needs_window = pytest.mark.skipif(not hasattr(dist, "_new_window"), reason="torch 2.14 and newer")
needs_switch = pytest.mark.skipif(
    not hasattr(dist, "_reconfigure"), reason="torch.distributed._token_switch: torch 2.14 and newer"
)
needs_gather_single = pytest.mark.skipif(not hasattr(dist, "gather_single"), reason="torch 2.14 and newer")


def summed(value):
    x = torch.full((3,), float(value))
    dist.all_reduce(x)
    return x[0].item()


class Board:
    """The means to exchange handles: not the group, which has no members yet."""

    def __init__(self, folder, mine):
        self.store, self.mine = dist.FileStore(os.path.join(folder, "board"), -1), mine

    def handles(self, step, members):
        self.store.set(f"{step}/{self.mine}", dist._get_reconfigure_handle())
        self.store.wait([f"{step}/{member}" for member in members], timedelta(seconds=60))
        return [self.store.get(f"{step}/{member}").decode() for member in members]


def begin(folder, backend="unisono"):
    """A group for reconfigure(), and its board; every rank has its own store."""
    mine = int(os.environ["RANK"])
    store = dist.FileStore(os.path.join(folder, f"store-{mine}"), 1)
    dist.init_process_group(backend, store=store, rank=0, world_size=1, enable_reconfigure=True)
    return mine, Board(folder, mine)


def configured(board, step, members, as_set=False):
    handles = board.handles(step, members)
    dist._reconfigure(uuid=step, handles=set(handles) if as_set else handles).wait()
    return dist.get_rank(), dist.get_world_size()


def walk(folder):
    """Identity, both halves, their merger, shrink, grow, and both at once; without a common store."""
    mine, board = begin(folder)
    seen = [dist._supports_reconfigure()]
    before = jobs.caught(summed, 1)
    seen.append((before[0], "call reconfigure() first" in before[1]))
    steps = [[0, 1], [2, 3]], [[3, 2, 1, 0]], [[3, 2, 1, 0]], [[0, 2]], [[0, 2, 3]], [[3, 1]]
    for number, groups in enumerate(steps):
        members = next((group for group in groups if mine in group), None)
        if members is not None:
            place = configured(board, number + 1, members)
            assert place == (members.index(mine), len(members)), place
            seen.append(summed(mine + 1))
    return seen


@needs_reconfigure
def test_a_group_goes_on_with_other_members(tmp_path):
    first = [True, ("DistBackendError", True)]
    both = [10.0, 10.0]
    assert jobs.run(4, walk, str(tmp_path), backend=None) == [
        first + [3.0, *both, 4.0, 8.0],
        first + [3.0, *both, 6.0],
        first + [7.0, *both, 4.0, 8.0],
        first + [7.0, *both, 8.0, 6.0],
    ]


def in_any_order(folder):
    mine, board = begin(folder)
    first = configured(board, 1, [2, 0, 1])
    again = configured(board, 2, [0, 1, 2], as_set=True)
    return first == again, summed(mine)


@needs_reconfigure
def test_a_set_of_handles_keeps_the_order_of_ranks(tmp_path):
    assert jobs.run(3, in_any_order, str(tmp_path), backend=None) == [(True, 3.0)] * 3


def after_a_death(folder):
    mine, board = begin(folder)
    configured(board, 1, [0, 1, 2])
    summed(1)
    if mine == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    kind = None
    while kind is None:
        kind, text = jobs.caught(summed, 1)
    assert "rank 1" in text, text
    configured(board, 2, [0, 2])
    work = dist.all_reduce(torch.ones(70_000), async_op=True)
    work.wait()
    return kind, dist.get_rank(), summed(mine)


@needs_reconfigure
def test_survivors_go_on_without_the_dead(tmp_path):
    with jobs.Job(3, after_a_death, str(tmp_path), backend=None) as job:
        endings = [job.ending(rank) for rank in (0, 2)]
    for number, ending in enumerate(endings):
        assert ending is not None and ending.error is None, ending
        assert ending.value == ("DistBackendError", number, 2.0)


def reconfigured_wrongly(folder):
    mine, board = begin(folder)
    handles = board.handles(1, [0, 1])

    def attempt(handles, uuid=1, **options):
        return jobs.caught(dist._reconfigure, uuid, handles, **options)

    found = [
        attempt([handles[1 - mine]]),
        attempt(handles + handles),
        attempt(["gloo:0:1:0:"]),
        attempt([handles[0] + "|"]),
    ]
    dist._reconfigure(1, handles).wait()
    found.append(attempt(handles, 2))  # the handles of the last time
    new = board.handles(2, [0, 1])
    found.append(attempt(new, 1))
    alone = list(new)
    alone[1 - mine] = handles[1 - mine]  # its rank has left
    found.append(attempt(alone, 3, timeout=timedelta(milliseconds=300)))
    return found


@needs_reconfigure
def test_wrong_handles_are_refused_and_absent_ranks_are_named(tmp_path):
    for mine, found in enumerate(jobs.run(2, reconfigured_wrongly, str(tmp_path), backend=None)):
        texts = [
            "the handle of this rank is not among the 1 given", "a handle is given twice", "is no handle of a unisono",
            "is no handle of a unisono", "is not among the 2 given", "uuid 1 has been used",
        ]  # fmt: skip
        for (kind, said), wanted in zip(found, texts):
            assert kind == "ValueError" and wanted in said, (said, wanted)
        kind, said = found[-1]
        assert kind == "DistBackendError" and f"rank {1 - mine}" in said, said


def in_gloos_place(folder):
    import unisono.torch

    unisono.torch.replace_gloo()
    mine, board = begin(folder, "gloo")
    configured(board, 1, [0, 1])
    return summed(mine)


@needs_reconfigure
def test_reconfigure_in_gloos_place(tmp_path):
    assert jobs.run(2, in_gloos_place, str(tmp_path), backend=None) == [1.0, 1.0]


def window():
    import torch.distributed._symmetric_memory as symm_mem

    rank, size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    mine = symm_mem.empty(8, device="cpu").fill_(-1.0)
    made = dist._new_window(mine)
    dist.barrier()
    made.put(torch.arange(3.0) + 10 * rank, right, 2, False)
    made.signal(right, False)
    waiting = made.wait_signal(left, True)
    waiting.wait()
    theirs = made.map_remote_tensor(left)
    errors = [
        jobs.caught(made.put, torch.ones(7), right, 2, False),
        jobs.caught(made.put, torch.ones(1, dtype=torch.int32), right, 0, False),
        jobs.caught(made.put, torch.ones(1), size, 0, False),
        jobs.caught(dist._new_window, torch.ones(4)),
        jobs.caught(made.tensor_register, mine),
    ]
    seen = mine.tolist()
    dist.barrier()
    same = theirs[:2].tolist()
    made.tensor_deregister()
    after = jobs.caught(made.signal, right, False)
    return dist._supports_window(), seen, same, errors, after


@needs_window
@pytest.mark.parametrize("ranks", [2, 3])
def test_windows(ranks):
    for rank, (supported, seen, same, errors, after) in enumerate(jobs.run(ranks, window)):
        left = (rank - 1) % ranks
        assert supported and seen == [-1.0, -1.0, 10.0 * left, 10.0 * left + 1, 10.0 * left + 2, -1.0, -1.0, -1.0]
        assert same == [-1.0, -1.0]
        texts = ["7 elements at 2 into a window of 8", "put of Int", "is not a rank of this group",
                 "not in symmetric memory", "deregister that tensor first"]  # fmt: skip
        for (kind, said), wanted in zip(errors, texts):
            assert kind == "ValueError" and wanted in said, (said, wanted)
        assert after[0] == "ValueError" and "it has no tensor" in after[1]


def hooked(run_async):
    group = dist.group.WORLD
    calls = []
    group.register_abort_hook(7, lambda: calls.append("first"))
    group.register_abort_hook(8, lambda: calls.append("second"))
    group.register_abort_hook(9, lambda: 1 / 0)
    group.unregister_abort_hook(8)
    backend = group._get_backend(torch.device("cpu"))
    backend._set_default_timeout(timedelta(milliseconds=200))
    if dist.get_rank() == 1:
        jobs.hear("over")
        return None
    work = dist.irecv(torch.zeros(3), 1) if run_async else None
    kind, _ = jobs.caught(work.wait) if run_async else jobs.caught(dist.barrier)
    seen = list(calls)  # before the error was reported
    jobs.caught(dist.barrier)
    jobs.say("over")
    return kind, seen, calls


@needs_reconfigure
@pytest.mark.parametrize("run_async", [False, True])
def test_abort_hooks_run_once_before_the_error_is_told(run_async):
    told, _ = jobs.run(2, hooked, run_async)
    assert told == ("DistBackendError", ["first"], ["first"])


def gathered():
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.arange(4.0).view(2, 2) + 10 * rank
    out = torch.zeros(2 * size, 2) if rank == size - 1 else None
    dist.gather_single(x, out, dst=size - 1)
    work = dist.gather_single(x, out, dst=size - 1, async_op=True)
    work.wait()
    wrong = jobs.caught(dist.gather_single, x, torch.zeros(3), dst=rank) if size > 1 else ("ValueError", "4 make 8")
    return None if out is None else out.tolist(), wrong


@needs_gather_single
@pytest.mark.parametrize("ranks", [1, 3])
def test_gather_single(ranks):
    found = jobs.run(ranks, gathered)
    rows = [[row + 10.0 * rank, row + 1.0 + 10 * rank] for rank in range(ranks) for row in (0, 2)]
    assert [out for out, _ in found] == [None] * (ranks - 1) + [rows]
    assert all(kind in ("ValueError", "RuntimeError") for _, (kind, _) in found), found


def switched(layout, k):
    from unisono.torch import TokenSwitchUnisono

    rank, size = dist.get_rank(), dist.get_world_size()
    experts, tokens, hidden, room = 2 * size, 5 + rank, 3, 64
    generator = torch.Generator().manual_seed(rank)
    chosen = torch.stack([torch.randperm(experts, generator=generator)[:k] for _ in range(tokens)])
    chosen[0, 0] = -1
    x = torch.randn(tokens, hidden, generator=generator, requires_grad=True)
    weights = torch.rand(tokens, k, generator=generator)
    scale = torch.arange(1.0, experts + 1)  # the factor of expert e
    switch = TokenSwitchUnisono(dist.group.WORLD, experts, 8, room, 4 * hidden)
    counts = torch.zeros(2, dtype=torch.int32)
    routing = switch.create_routing(chosen, counts, layout=layout)

    def out_of(x):
        if layout == "flat":
            rows, factors, local = switch.dispatch(routing, x, weights, room)
            factor = (factors * torch.where(local >= 0, scale[2 * rank + local.clamp(min=0)], 0.0)).sum(1)
        else:
            buffers = torch.zeros(room, hidden), torch.zeros(room), None
            if x.requires_grad:
                rows, factors, *_ = switch.dispatch(routing, x, weights, room)
                factors = factors if factors.dim() == 1 else factors[:, 0]
            else:
                rows, factors, _ = switch.dispatch(routing, x, weights, out=buffers)
            which = torch.repeat_interleave(torch.arange(2), counts.long())
            factor = torch.zeros(room)
            factor[: len(which)] = factors[: len(which)] * scale[2 * rank + which]
        return switch.combine(routing, rows * factor[:, None]), rows

    out, _ = out_of(x)
    want = (torch.where(chosen >= 0, scale[chosen.clamp(min=0)], 0.0) * weights).sum(1)[:, None] * x
    torch.testing.assert_close(out, want)
    out.square().sum().backward()
    again = x.detach().clone().requires_grad_()
    ((torch.where(chosen >= 0, scale[chosen.clamp(min=0)], 0.0) * weights).sum(1)[:, None] * again).square().sum().backward()
    torch.testing.assert_close(x.grad, again.grad)
    way = torch.randn(x.shape, generator=generator)
    with torch.no_grad():  # the loss is quadratic: its central difference is exact for any step
        above, below = (out_of(x.detach() + sign * way)[0].square().sum() for sign in (1, -1))
    torch.testing.assert_close((above - below) / 2, (x.grad * way).sum(), rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(out_of(x.detach())[0], want)
    total = torch.tensor([counts.sum(), (chosen >= 0).sum()])
    dist.all_reduce(total)
    errors = [
        jobs.caught(switch.dispatch, routing, x, weights, 1),
        jobs.caught(switch.create_routing, chosen.repeat(2, 1), layout=layout),
        jobs.caught(TokenSwitchUnisono(dist.group.WORLD, experts, 8, 1, 4 * hidden).create_routing, chosen, layout=layout),
    ]
    return total.tolist(), errors


@needs_switch
@pytest.mark.parametrize(("ranks", "k"), [(2, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize("layout", ["flat", "expert_major"])
def test_token_switch_equals_one_process(layout, ranks, k):
    for (routed, chosen), errors in jobs.run(ranks, switched, layout, k):
        assert routed == chosen
        texts = ["with room for 1 rows", "max_dispatch_tokens_per_rank is 8", "max_recv_tokens_per_rank is 1"]
        for (kind, said), wanted in zip(errors, texts):
            assert kind == "ValueError" and wanted in said, (said, wanted)
