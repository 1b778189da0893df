"""vLLM's communicator and all-to-all manager over unisono. vLLM creates these classes by name."""

import functools
import inspect
import weakref

import torch
import torch.distributed as dist
from vllm.distributed.device_communicators.all2all import AgRsAll2AllManager
from vllm.distributed.device_communicators.base_device_communicator import DeviceCommunicatorBase
from vllm.forward_context import get_forward_context, is_forward_context_available
from vllm.logger import init_logger

from unisono.vllm import LOGGER, here
from unisono.vllm.calls import GroupCalls
from unisono.vllm.experts import ExpertCalls

logger = init_logger(LOGGER)


_worlds = weakref.WeakKeyDictionary()  # by process group; worlds end with the process, not with destroy()


def _world():
    """Returns the communicator of all engine processes. The first call is collective; vLLM creates
    groups on all ranks together."""
    from unisono.torch.experts import _connect

    group = dist.group.WORLD
    if group not in _worlds:
        world = _worlds[group] = _connect(None, "vllm")
        logger.info("unisono: rank %d of %d, on %d hosts", world.rank, world.size, world.hosts)
    return _worlds[group]


class UnisonoCommunicator(GroupCalls, DeviceCommunicatorBase):
    """The calls of a group. vLLM itself runs all other calls, over torch.distributed."""

    supports_tensor_dict = True  # send_tensor_dict() and recv_tensor_dict() are used between pipeline stages

    def __init__(self, cpu_group, device=None, device_group=None, unique_name="", use_all2all=False):
        super().__init__(cpu_group, device, device_group, unique_name, use_all2all=use_all2all)
        self.comm = _world().subgroup(self.ranks, here.group_number(unique_name))
        self._step, self._calls = (lambda: None), 0
        here.opened(unique_name, self)
        _say_once(", ".join(falls_back(type(self))))
        if self.use_all2all:
            self.all2all_manager = UnisonoAll2AllManager(self)

    def label(self, purpose):
        where = here.layer_name()
        if not where and is_forward_context_available():
            where = f"call {self._number()}"
        self.comm.label(f"{where} {self.unique_name.partition(':')[0]} {purpose}".strip()[-103:])

    def _number(self):
        """Returns the number of earlier calls in this step of the model."""
        step = get_forward_context()
        if self._step() is step:
            self._calls += 1
        else:
            self._step, self._calls = weakref.ref(step), 0
        return self._calls

    def all_reduce(self, input_):
        if torch.compiler.is_compiling():
            torch.ops.unisono.all_reduce_(input_, self.unique_name)
            return input_
        return super().all_reduce(input_)

    def all_gather(self, input_, dim=-1):
        if torch.compiler.is_compiling():
            return torch.ops.unisono.all_gather(input_, dim % input_.dim(), self.world_size, self.unique_name)
        return super().all_gather(input_, dim)

    def reduce_scatter(self, input_, dim=-1):
        if torch.compiler.is_compiling():
            return torch.ops.unisono.reduce_scatter(input_, dim % input_.dim(), self.world_size, self.unique_name)
        return super().reduce_scatter(input_, dim)

    def dispatch_router_logits(self, hidden_states, router_logits, is_sequence_parallel=False, extra_tensors=None):
        return self.all2all_manager.dispatch_router_logits(
            hidden_states, router_logits, is_sequence_parallel, extra_tensors
        )

    def dispatch(self, hidden_states, topk_weights, topk_ids, is_sequence_parallel=False, extra_tensors=None):
        return self.all2all_manager.dispatch(
            hidden_states, topk_weights, topk_ids, is_sequence_parallel, extra_tensors
        )

    def combine(self, hidden_states, is_sequence_parallel=False):
        return self.all2all_manager.combine(hidden_states, is_sequence_parallel)

    def allocate_combine_input(self, shape, dtype, device, is_sequence_parallel=False):
        return None  # the exchange can read rows anywhere

    def combine_into_output(self, hidden_states, output, is_sequence_parallel=False):
        return self.all2all_manager.combine_into_output(hidden_states, output, is_sequence_parallel)

    def destroy(self):
        if self.all2all_manager is not None:
            self.all2all_manager.destroy()
        here.closed(self.unique_name)
        self.comm.close()


class UnisonoAll2AllManager(AgRsAll2AllManager):
    """Sends tokens to the ranks of their experts. Each of these ranks returns one sum per token.

    Without expert parallelism, and for kernels that choose the experts themselves, every rank needs
    every token. In these cases the rows are gathered and summed as in vLLM's own manager, but over
    unisono.
    """

    def __init__(self, communicator):
        super().__init__(communicator.cpu_group)
        self._communicator = communicator
        self.calls = ExpertCalls(communicator.comm)
        self._gathered = False

    def dispatch_router_logits(self, hidden_states, router_logits, is_sequence_parallel=False, extra_tensors=None):
        self._gathered = True
        return super().dispatch_router_logits(hidden_states, router_logits, is_sequence_parallel, extra_tensors)

    def dispatch(self, hidden_states, topk_weights, topk_ids, is_sequence_parallel=False, extra_tensors=None):
        expert_map = here.expert_map()
        self._gathered = expert_map is None
        if self._gathered:
            return super().dispatch(hidden_states, topk_weights, topk_ids, is_sequence_parallel, extra_tensors)
        self._communicator.label("dispatch")
        rows, weights, ids, extras = self.calls.dispatch(
            hidden_states, topk_weights, topk_ids, extra_tensors or (), experts_here=expert_map
        )
        return (rows, weights, ids) if extra_tensors is None else (rows, weights, ids, extras)

    def combine(self, hidden_states, is_sequence_parallel=False):
        if self._gathered:
            return super().combine(hidden_states, is_sequence_parallel)
        self._communicator.label("combine")
        return self.calls.combine(hidden_states)

    def allocate_combine_input(self, shape, dtype, device, is_sequence_parallel=False):
        return None

    def combine_into_output(self, hidden_states, output, is_sequence_parallel=False):
        if self._gathered:
            return super().combine_into_output(hidden_states, output, is_sequence_parallel)
        self._communicator.label("combine")
        return self.calls.combine(hidden_states, out=output)

    def destroy(self):
        self.calls.close()


def falls_back(cls):
    """Returns the methods that `cls` inherits unchanged from vLLM's base class, except KEPT.

    A newer vLLM may have added such methods.
    """
    return sorted(
        name for name, function in inspect.getmembers(DeviceCommunicatorBase, inspect.isfunction)
        if getattr(cls, name) is function and name not in KEPT
    )  # fmt: skip


# Methods for which vLLM's implementation is right: there is no memory to release or to register
# with a device.
KEPT = {
    "__init__", "checkpoint_prepare", "checkpoint_restore", "get_symmetric_memory_buffer", "resume", "suspend",
}  # fmt: skip


@functools.cache
def _say_once(names):
    if names:
        logger.info("unisono: this vLLM also has %s, which go over torch.distributed", names)
