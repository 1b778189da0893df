"""Moves DTensors from one mesh to another."""

import math

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard

import unisono
from unisono.torch.experts import _connect

__all__ = ["Reshard", "reshard"]


def reshard(tensors, to, comm=None, group=None):
    """Moves DTensors to another mesh once; use Reshard for repeated moves. Returns new DTensors.

    moved = unisono.torch.reshard(model.state_dict(), to=(engine_mesh, [Replicate(), Shard(0)]))
    """
    plan = Reshard(tensors, to, comm, group)
    try:
        return plan.run(tensors)
    finally:
        plan.close()


class Reshard:
    """Plans moves of DTensors to another mesh once; each run() executes them.

    tensors: a DTensor, or a dict of DTensors by name, on all ranks of `group`; on ranks outside its mesh, a
    DTensor has no elements. to: the mesh and placements after the move, as (mesh, placements) for all
    tensors, a dict by name, or a function of name and DTensor. The two meshes may be equal, overlap, or be
    disjoint. Partial is allowed before the move, not after it.

    comm: a unisono.Communicator of the ranks of `group`; None: creates one, whose ranks meet over the group.
    Tensors are on the CPU. The constructor and run() are collective.
    """

    def __init__(self, tensors, to, comm=None, group=None):
        self._is_one = isinstance(tensors, DTensor)
        named = _named(tensors)
        self._targets = {name: _target(name, tensor, to) for name, tensor in named.items()}
        rows = {}
        for name, tensor in named.items():
            if tensor.device.type != "cpu":
                raise ValueError(f"reshard: {name!r} is on {tensor.device}; tensors must be on the CPU")
            mesh, placements = self._targets[name]
            shape = tuple(tensor.shape)
            rows[name] = (
                tensor.dtype,
                shape,
                layout(name, shape, tensor.device_mesh, tensor.placements, group),
                layout(name, shape, mesh, placements, group),
            )
        self._owns_comm = comm is None
        self.comm = _connect(group) if comm is None else comm
        self._shapes = {name: row[1] for name, row in rows.items()}
        self._dtypes = {name: row[0] for name, row in rows.items()}
        self._plan = unisono.reshard.Reshard(self.comm, rows)

    def run(self, tensors, out=None, timeout_ms=-1):
        """Moves the values of `tensors`, which must have the plan's meshes and placements.

        out: a result of an earlier run(), to be overwritten. Returns `out`, or new DTensors.
        """
        named = _named(tensors)
        if named.keys() != self._shapes.keys():
            wrong = sorted(named.keys() ^ self._shapes.keys())
            raise ValueError(f"reshard: names that the plan or the call lacks: {', '.join(map(repr, wrong))}")
        if out is None:
            filled = {name: self._empty(name) for name in named}
        else:
            filled = _named(out)
        self._plan.run(
            {name: _local(tensor, self._plan.in_shape(name)) for name, tensor in named.items()},
            {name: _local(filled[name], self._plan.out_shape(name)) for name in named},
            timeout_ms=timeout_ms,
        )
        return next(iter(filled.values())) if self._is_one else filled

    def complete(self, name=""):
        """Returns True if the latest run() has filled all of this rank's part of a tensor."""
        return self._plan.complete(name)

    @property
    def bytes_sent(self):
        """The bytes that ranks send to other ranks in a run."""
        return self._plan.bytes_sent

    def close(self):
        """Leaves the groups of the plan."""
        self._plan.close()
        if self._owns_comm:
            self.comm.close()

    def _empty(self, name):
        mesh, placements = self._targets[name]
        part = self._plan.out_shape(name)
        shape = torch.Size(self._shapes[name])
        local = torch.empty((0,) if part is None else part, dtype=self._dtypes[name])
        stride = torch.empty(shape, device="meta").stride()
        return DTensor.from_local(local, mesh, placements, run_check=False, shape=shape, stride=stride)


def _named(tensors):
    named = {"": tensors} if isinstance(tensors, DTensor) else tensors
    wrong = [name for name, tensor in named.items() if not isinstance(tensor, DTensor)]
    if wrong:
        raise TypeError(f"reshard: these are no DTensors: {', '.join(map(repr, wrong))}")
    return named


def _target(name, tensor, to):
    if callable(to):
        to = to(name, tensor)
    elif isinstance(to, dict):
        if name not in to:
            raise ValueError(f"reshard: {name!r} has no mesh and placements in `to`")
        to = to[name]
    mesh, placements = to
    return mesh, tuple(placements)


def _local(tensor, shape):
    return None if shape is None else tensor.to_local().detach()


def layout(name, shape, mesh, placements, group=None):
    """Returns unisono.reshard's layout text for a mesh and placements. Shards are divided like
    torch.chunk's."""
    if len(placements) != mesh.ndim:
        raise ValueError(f"reshard: {name!r} has {len(placements)} placements for a mesh of {mesh.ndim} dimensions")
    cuts = [_cuts(name, shape, dim, mesh, placements) for dim in range(len(shape))]
    # Orders mesh dimensions so that those that shard one tensor dimension are adjacent and act as
    # one.
    order = [i for cutting in cuts for i in cutting]
    order += [i for i in range(mesh.ndim) if i not in order]
    ranks = mesh.mesh.permute(order).flatten().tolist()
    if group is not None:
        ranks = [dist.get_group_rank(group, rank) for rank in ranks]
    axes = [f"a{i}" for i in range(mesh.ndim)]
    words = []
    for dim, cutting in enumerate(cuts):
        parts = [shape[dim]]
        for i in cutting:
            parts = [piece for part in parts for piece in _chunks(part, mesh.size(i))]
        if cutting:
            words.append(f"{','.join(axes[i] for i in cutting)}=shard({dim},parts={'+'.join(map(str, parts))})")
    for axis, placement in zip(axes, placements, strict=True):
        if isinstance(placement, Partial):
            if placement.reduce_op not in ("sum", "product", "min", "max"):
                raise ValueError(f"reshard: {name!r} is {placement}; a partial is a sum, product, min or max")
            words.append(f"{axis}=partial({placement.reduce_op.replace('product', 'prod')})")
        elif not isinstance(placement, (Replicate, Shard, _StridedShard)):
            raise ValueError(f"reshard: {name!r} is {placement}, which is not known")
        elif not isinstance(placement, Replicate) and not -len(shape) <= placement.dim < len(shape):
            raise ValueError(f"reshard: {name!r} is {placement} with {len(shape)} dimensions")
    sizes = ",".join(f"{axes[i]}={mesh.size(i)}" for i in order)
    return f"{sizes} on {','.join(map(str, ranks))}: {' '.join(words)}".removesuffix(": ")


def _cuts(name, shape, dim, mesh, placements):
    """Returns the mesh dimensions that shard a dimension, in sharding order."""
    cutting = [i for i, p in enumerate(placements) if isinstance(p, (Shard, _StridedShard)) and p.dim % len(shape) == dim]
    strided = [i for i in cutting if not isinstance(placements[i], Shard)]
    if not strided:
        return cutting
    # FSDP over tensor parallelism: the first mesh dimension divides the shards of the others.
    first, *later = cutting
    if strided != [first] or placements[first].split_factor != math.prod(mesh.size(i) for i in later):
        raise ValueError(f"reshard: {name!r} has placements {placements} on {tuple(mesh.mesh.shape)}, an order"
                         " of cuts that is not known")  # fmt: skip
    return [*later, first]


def _chunks(length, ranks):
    """Returns the lengths of torch.chunk's parts."""
    size = -(-length // ranks)
    return [max(0, min(size, length - rank * size)) for rank in range(ranks)]
