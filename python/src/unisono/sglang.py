"""The plug-in for SGLang on CPUs: runs the calls of SGLang's groups over unisono.

    SGLANG_PLUGINS=unisono SGLANG_USE_CPU_ENGINE=1 python -m sglang.launch_server --device cpu --tp 2 ...

Installing the package registers the plug-in with SGLang (entry point ``sglang.srt.plugins``). To
enable it, name it in SGLANG_PLUGINS. SGLang itself still runs calls on tensors that are not in CPU
memory, and calls in graphs that are being traced. docs/guides/adopt.md describes the plug-in.
"""

import os
import weakref

import torch
import torch.distributed as dist

from unisono.vllm.calls import GroupCalls, _bytes
from unisono.vllm.here import group_number

__all__ = ["register"]

_worlds = weakref.WeakKeyDictionary()  # by process group; worlds end with the process
_calls = weakref.WeakKeyDictionary()  # by SGLang's group


def register():
    """Registers the hooks. SGLang calls it in each of its processes."""
    if "unisono" not in os.environ.get("SGLANG_PLUGINS", "").split(","):
        return  # without the variable SGLang loads all plug-ins, but this plug-in must be named
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    group = "sglang.srt.distributed.parallel_state.GroupCoordinator"
    HookRegistry.register(f"{group}.__init__", made, HookType.AFTER)
    for name, call in CALLS.items():
        HookRegistry.register(f"{group}.{name}", call, HookType.AROUND)


class _Calls(GroupCalls):
    """Calls on one of SGLang's groups."""

    def __init__(self, group, number):
        world = dist.group.WORLD
        if world not in _worlds:
            from unisono.torch.experts import _connect

            _worlds[world] = _connect(None, "sglang")
        self.comm = _worlds[world].subgroup(list(group.ranks), number)
        self.rank_in_group, self.world_size = group.rank_in_group, group.world_size
        self.name = group.unique_name.partition(":")[0]

    def label(self, purpose):
        self.comm.label(f"{self.name} {purpose}")


def made(result, group, *args, **kwargs):
    """Runs after GroupCoordinator(). All ranks create their groups together, in the same order."""
    # Also for a group of one rank: on other ranks the group of this name may have more ranks.
    number = group_number(group.unique_name)
    if group.world_size > 1 and group.device.type == "cpu":
        _calls[group] = _Calls(group, number)


def _ours(group, *tensors):
    """Returns the group's _Calls, or None if SGLang must run a call on these tensors."""
    if torch.compiler.is_compiling() or any(tensor.device.type != "cpu" for tensor in tensors):
        return None
    return _calls.get(group)


def _all_reduce(original, group, input_):
    calls = _ours(group, input_)
    return original(group, input_) if calls is None else calls.all_reduce(input_)


def _all_gather(original, group, input_, dim=-1, output_tensor_list=None):
    calls = _ours(group, input_)
    if calls is None or output_tensor_list is not None:
        return original(group, input_, dim, output_tensor_list)
    return calls.all_gather(input_, dim)


def _all_gather_into_tensor(original, group, output, input):
    calls = _ours(group, output, input)
    if calls is None or not output.is_contiguous():
        return original(group, output, input)
    calls.label("all_gather")
    calls.comm.all_gather(_bytes(input.contiguous()), _bytes(output))


def _all_gatherv(original, group, input_, sizes=None, output=None):
    one = isinstance(input_, torch.Tensor)
    calls = _ours(group, *([input_] if one else input_))
    if calls is None:
        return original(group, input_, sizes, output)
    gathered = calls.all_gatherv(input_, 0, sizes)
    return gathered if output is None else output.copy_(gathered)


def _reduce_scatter_tensor(original, group, output, input):
    calls = _ours(group, output, input)
    if calls is None:
        return original(group, output, input)
    calls.reduce_scatterv_into_output(input.reshape(group.world_size, -1), output.view(1, -1), 0)


def _reduce_scatterv(original, group, input_, output=None, sizes=None):
    calls = _ours(group, input_)
    if calls is None:
        return original(group, input_, output, sizes)
    if output is None:
        return calls.reduce_scatterv(input_, 0, sizes)
    return calls.reduce_scatterv_into_output(input_, output, 0, sizes)


def _gather(original, group, input_, dst=0, dim=-1):
    calls = _ours(group, input_)
    return original(group, input_, dst, dim) if calls is None else calls.gather(input_, dst, dim)


def _broadcast(original, group, input_, src=0):
    calls = _ours(group, input_)
    return original(group, input_, src) if calls is None else calls.broadcast(input_, src)


def _send(original, group, tensor, dst=None):
    calls = _ours(group, tensor)
    return original(group, tensor, dst) if calls is None else calls.send(tensor, dst)


def _recv(original, group, size, dtype, src=None):
    calls = _ours(group)
    return original(group, size, dtype, src) if calls is None else calls.recv(size, dtype, src)


CALLS = {
    "all_gather": _all_gather, "all_gather_into_tensor": _all_gather_into_tensor, "all_gatherv": _all_gatherv,
    "all_reduce": _all_reduce, "broadcast": _broadcast, "gather": _gather, "recv": _recv,
    "reduce_scatter_tensor": _reduce_scatter_tensor, "reduce_scatterv": _reduce_scatterv, "send": _send,
}  # fmt: skip
