"""SGLang's calls on a group, compared with torch.distributed over gloo; uses SGLang's class if it can be imported."""

import inspect
import os

import jobs
import pytest
import torch
import torch.distributed as dist

from unisono import sglang


class Group:
    """Has the members of SGLang's GroupCoordinator that the plug-in reads."""

    def __init__(self):
        self.ranks, self.unique_name = list(range(dist.get_world_size())), "tp:0"
        self.rank_in_group, self.world_size, self.device = dist.get_rank(), dist.get_world_size(), torch.device("cpu")
        sglang.made(None, self)


def theirs(*args, **kwargs):
    raise AssertionError("this call is not unisono's")


def call(group, name, *args):
    """Makes the call through the hook; through SGLang's own method if its class is installed."""
    if hasattr(group, name):
        return getattr(group, name)(*args)
    return sglang.CALLS[name](theirs, group, *args)


def check(group):
    ranks, me = group.world_size, group.rank_in_group
    inputs = [torch.arange(6.0).reshape(2, 3) + 10 * rank for rank in range(ranks)]
    total = sum(inputs)
    mine = inputs[me]
    x = mine.clone()
    assert torch.equal(call(group, "all_reduce", x), total) and torch.equal(x, total)
    assert torch.equal(call(group, "all_gather", mine, -1), torch.cat(inputs, -1))
    out = torch.empty(2 * ranks, 3)
    call(group, "all_gather_into_tensor", out, mine)
    assert torch.equal(out, torch.cat(inputs))
    rows = [torch.full((rank + 1, 2), float(rank)) for rank in range(ranks)]
    sizes = [rank + 1 for rank in range(ranks)]
    assert torch.equal(call(group, "all_gatherv", rows[me], sizes), torch.cat(rows))
    out = torch.empty(sum(sizes), 2)
    assert call(group, "all_gatherv", rows[me], sizes, out) is out and torch.equal(out, torch.cat(rows))
    both = call(group, "all_gatherv", [rows[me], rows[me] + 1], sizes)
    assert torch.equal(both[1], torch.cat(rows) + 1)

    whole = torch.arange(4.0 * ranks).reshape(2 * ranks, 2)
    out = torch.empty(2, 2)
    call(group, "reduce_scatter_tensor", out, whole)
    assert torch.equal(out, ranks * whole[2 * me : 2 * me + 2])
    uneven = torch.arange(2.0 * sum(sizes)).reshape(-1, 2)
    wanted = (ranks * uneven).split(sizes)[me]
    assert torch.equal(call(group, "reduce_scatterv", uneven, None, sizes), wanted)
    out = torch.empty_like(wanted)
    assert call(group, "reduce_scatterv", uneven, out, sizes) is out and torch.equal(out, wanted)

    gathered = call(group, "gather", mine, ranks - 1, 0)
    assert torch.equal(gathered, torch.cat(inputs)) if me == ranks - 1 else gathered is None
    assert torch.equal(call(group, "broadcast", mine.clone(), 1), inputs[1])
    if me == 0:
        call(group, "send", mine, ranks - 1)
    if me == ranks - 1:
        assert torch.equal(call(group, "recv", (2, 3), torch.float32, 0), inputs[0])
    return True


def check_alone():
    return check(Group())


@pytest.mark.parametrize("ranks", (2, 3))
def test_calls(ranks):
    assert all(jobs.run(ranks, check_alone, backend="gloo"))


def check_fallbacks():
    """SGLang itself handles other devices, lists of outputs and groups of one rank."""
    group, asked = Group(), []
    elsewhere = torch.empty(2, device="meta")
    for name, args in (("all_reduce", (elsewhere,)), ("broadcast", (elsewhere, 0)), ("all_gather", (torch.ones(2), 0, [elsewhere]))):
        sglang.CALLS[name](lambda *args, name=name: asked.append((name, *args)), group, *args)
    assert [one[0] for one in asked] == ["all_reduce", "broadcast", "all_gather"] and asked[0][1:] == (group, elsewhere)
    return True


def test_fallbacks():
    assert all(jobs.run(2, check_fallbacks, backend="gloo"))


def test_the_plugin_is_asked_for(monkeypatch):
    """If the plug-in is installed but not enabled, it does not import SGLang."""
    for value in (None, "", "other", "unisono2"):
        monkeypatch.delenv("SGLANG_PLUGINS", raising=False)
        if value is not None:
            monkeypatch.setenv("SGLANG_PLUGINS", value)
        sglang.register()


def coordinator():
    """SGLang's class, with the hooks applied as SGLang does."""
    os.environ.update(SGLANG_PLUGINS="unisono", SGLANG_USE_CPU_ENGINE="1")
    from sglang.srt.distributed import parallel_state
    from sglang.srt.plugins.hook_registry import HookRegistry

    sglang.register()
    HookRegistry.apply_hooks()
    return parallel_state.GroupCoordinator


def check_theirs():
    cls = coordinator()
    for name, hook in sglang.CALLS.items():
        wanted = [one for one in inspect.signature(inspect.unwrap(getattr(cls, name))).parameters if one != "self"]
        assert [*inspect.signature(hook).parameters][2:] == wanted, name
    off = dict.fromkeys(
        ("use_pynccl", "use_mscclpp", "use_custom_allreduce", "use_torch_symm_mem_all_reduce", "use_hpu_communicator",
         "use_xpu_communicator"), False,
    )  # fmt: skip
    group = cls([list(range(dist.get_world_size()))], local_rank=dist.get_rank(), torch_distributed_backend="gloo",
                group_name="tp", **off)  # fmt: skip
    assert group in sglang._calls
    return check(group)


def test_their_class():
    pytest.importorskip("orjson", reason="SGLang is not installed")
    pytest.importorskip("sglang.srt", reason="SGLang is not installed")
    assert all(jobs.run(2, check_theirs, backend="gloo"))
