"""Gradients with the same bits for any number of ranks, under DistributedDataParallel and fully_shard (FSDP2).

The gradients of each backward pass are one leaf of a tree (docs/guides/same-bits.md). Process
groups may have any backend.
"""

import torch
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel

from unisono._tree_sum import TreeSum


def sum_over_leaves(model, leaves):
    """Makes gradients the mean over all leaves, with the same bits for any number of ranks.

        unisono.torch.sum_over_leaves(model, [3, 3, 3, 3])
        for microbatch in mine:  # 3 on each of 4 ranks
            loss(model(microbatch)).backward()
        optimizer.step()
        optimizer.zero_grad()

    model: a DistributedDataParallel, or a module on which fully_shard was called, with a
    one-dimensional mesh. All submodules of this module take part.
    leaves: for each rank of the model's group, the number of backward passes per step. All ranks
    pass the same list.

    The backward pass of the last leaf sets the gradients to the mean. Until then they are zero.
    Each rank keeps at most 2 log2(leaves) copies of its gradients. Clear the gradients between
    steps. Do not use no_sync() or set_requires_gradient_sync(False).

    Errors: TypeError for other models. ValueError for leaves that the model's wrapper does not
    support.
    """
    leaves = list(leaves)
    if not leaves or min(leaves) < 1:
        raise ValueError(f"unisono: sum_over_leaves: leaves {leaves}: each rank needs at least one")
    if isinstance(model, DistributedDataParallel):
        _must_fit_ddp(model, leaves)
        model.register_comm_hook(_Buckets(model.process_group, leaves), _reduce_bucket)
    elif isinstance(model, FSDPModule):
        _must_fit_fsdp(model, leaves)
        for module in model.modules():
            if isinstance(module, FSDPModule):
                _attach(module, leaves)
    else:
        raise TypeError(
            f"unisono: sum_over_leaves: a {type(model).__name__} is neither a DistributedDataParallel nor a "
            "module given to fully_shard"
        )


def _must_fit_ddp(model, leaves):
    _must_have_ranks(leaves, model.process_group.size())
    if min(leaves) == 1 < max(leaves):
        raise ValueError(
            f"unisono: sum_over_leaves: leaves {leaves}: DistributedDataParallel arranges its buckets with all ranks "
            "in the second forward pass; give each rank at least two leaves, or each one"
        )
    if model.find_unused_parameters and not model.static_graph:
        raise ValueError(
            "unisono: sum_over_leaves: with find_unused_parameters=True each backward pass reduces which parameters "
            "were used, not those of all leaves; leave it out, or use static_graph=True"
        )
    if min(leaves) != max(leaves) and model.broadcast_buffers and next(model.module.buffers(), None) is not None:
        raise ValueError(
            f"unisono: sum_over_leaves: leaves {leaves}: every forward pass broadcasts the module's buffers, so all "
            "ranks need as many; or make the DistributedDataParallel with broadcast_buffers=False"
        )


def _must_fit_fsdp(model, leaves):
    meshes = {p.device_mesh for p in model.parameters() if hasattr(p, "device_mesh")}
    if any(mesh.ndim != 1 for mesh in meshes):
        raise ValueError("unisono: sum_over_leaves: fully_shard on a mesh of more than one dimension is not supported")
    for mesh in meshes:
        _must_have_ranks(leaves, mesh.size())
    if min(leaves) != max(leaves):
        raise ValueError(
            f"unisono: sum_over_leaves: leaves {leaves}: every forward pass gathers parameters of all ranks, so all "
            "ranks need as many"
        )


def _must_have_ranks(leaves, ranks):
    if len(leaves) != ranks:
        raise ValueError(f"unisono: sum_over_leaves: leaves {leaves} are those of {len(leaves)} ranks, not of {ranks}")


class _Leaves:
    """The leaves of this rank in a step."""

    def __init__(self, leaves, rank):
        self.all, self.first, self.count = leaves, sum(leaves[:rank]), leaves[rank]

    def new_sum(self):
        return TreeSum(sum(self.all), self.first)

    def is_complete(self, total):
        return total.next == self.first + self.count


class _Buckets:
    """Keeps one sum for each parameter, because DistributedDataParallel rearranges its buckets
    after the first backward pass."""

    def __init__(self, group, leaves):
        self.group, self.leaves = group, _Leaves(leaves, group.rank())
        self.sums = {}

    def add(self, parameter, gradient):
        total = self.sums.setdefault(parameter, None) or self.leaves.new_sum()
        self.sums[parameter] = total
        total.add(gradient)
        return total


def _reduce_bucket(state, bucket):
    gradients = bucket.gradients()
    sums = [state.add(*pair) for pair in zip(bucket.parameters(), gradients)]
    buffer = bucket.buffer()
    if state.leaves.is_complete(sums[0]):
        whole = _joined(sums).all_reduce(state.group, state.leaves.all).div_(sum(state.leaves.all))
        at = 0
        for parameter, gradient in zip(bucket.parameters(), gradients):
            gradient.copy_(whole[at : at + gradient.numel()].view(gradient.shape))
            at += gradient.numel()
            del state.sums[parameter]
    else:
        buffer.zero_()
    done = torch.futures.Future()
    done.set_result(buffer)
    return done


def _joined(sums):
    """Joins several sums with the same leaves into one sum."""
    whole = TreeSum(sums[0]._leaves, sums[0]._first)
    whole._next = sums[0]._next
    for place, (first, end, _) in enumerate(sums[0]._nodes):
        whole._nodes.append([first, end, torch.cat([one._nodes[place][2].reshape(-1) for one in sums])])
    return whole


class _ShardedGradients:
    """A ReduceScatter for FSDP2, for the gradients that one module reduces together."""

    def __init__(self, leaves):
        self._leaves, self._total = leaves, None

    def allocate(self, size, *, dtype, device):
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        self._add(_Leaves(self._leaves, group.rank()), input_tensor, output_tensor, group)

    def on_one_rank(self, gradient):
        """If the mesh has only one rank, FSDP2 calls this hook instead of a reduction."""
        if len(self._leaves) == 1:
            self._add(_Leaves(self._leaves, 0), gradient, gradient, None)

    def _add(self, leaves, gradient, out, group):
        if self._total is None:
            self._total = leaves.new_sum()
        self._total.add(gradient)
        if not leaves.is_complete(self._total):
            out.zero_()
            return
        total, self._total = self._total, None
        part = total.sum() if group is None else total.reduce_scatter(group, leaves.all)
        torch.div(part, sum(leaves.all), out=out)


def _attach(module, leaves):
    sums = _ShardedGradients(leaves)
    module.set_gradient_divide_factor(1.0)
    module.set_force_sum_reduction_for_comms(True)
    module.set_custom_reduce_scatter(sums)
    module.set_all_reduce_hook(sums.on_one_rank)
