"""Moves DTensors from one mesh to another."""

import math
import threading
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard

import unisono
from unisono.torch.experts import _connect

__all__ = ["Reshard", "ReshardWork", "reshard"]


def reshard(tensors, to, comm=None, group=None, async_op=False):
    """Moves DTensors to another mesh once; use Reshard for repeated moves. Returns new DTensors.

    moved = unisono.torch.reshard(model.state_dict(), to=(engine_mesh, [Replicate(), Shard(0)]))

    async_op: plans the moves, starts them, and returns a ReshardWork instead.
    """
    plan = Reshard(tensors, to, comm, group)
    if async_op:
        work = plan.run(tensors, async_op=True)
        work.get_future().add_done_callback(lambda _: plan.close())
        return work
    try:
        return plan.run(tensors)
    finally:
        plan.close()


class ReshardWork(dist.Work):
    """A reshard that a thread executes. wait() returns when this rank's part has ended.

    The future of get_future() gives the moved DTensors, as result() does. Until the end, the sources must not
    change, and the results are not complete.
    """

    def __init__(self, move, moved, before):
        super().__init__()
        self._future = torch.futures.Future()
        self._moved = moved
        self._error = None
        self._thread = threading.Thread(target=self._run, args=(move, before), name="unisono reshard")
        self._thread.start()

    def _run(self, move, before):
        try:
            if before is not None:
                before._thread.join()
            move()
        except Exception as error:
            self._error = error
        if self._error is None:
            self._future.set_result(self._moved)
        else:
            self._future.set_exception(self._error)

    def wait(self, timeout=timedelta(0)):
        """Waits, at most `timeout` if it is not 0, and raises the error of the reshard. Returns True."""
        self._thread.join(timeout.total_seconds() or None)
        if self._thread.is_alive():
            raise unisono.TimeoutError(f"the reshard has not ended after {timeout.total_seconds():g} s")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self):
        """Returns True if the reshard has ended."""
        return self._future.done()

    def is_success(self):
        """Returns True if the reshard has ended without an error."""
        return self.is_completed() and self._error is None

    def exception(self):
        """Returns the error of the reshard, or None."""
        return self._error

    def get_future(self):
        """Returns a future whose value is the moved DTensors."""
        return self._future

    def result(self):
        """Waits, and returns the moved DTensors."""
        self.wait()
        return self._moved


class Reshard:
    """Plans moves of DTensors to another mesh once; each run() executes them.

    tensors: a DTensor, or a dict of DTensors by name. to: the mesh and placements after the move, as (mesh,
    placements) for all tensors, a dict by name, or a function of name and DTensor. The two meshes may be
    equal, overlap, or be disjoint. Partial is allowed before the move, not after it.

    The meshes may belong to different process groups. A rank that has no DTensor of a source mesh passes
    None, or a dict without this tensor. A rank outside a target mesh may pass to=None, or a dict without this
    tensor. Every tensor needs one rank that passes it, and one rank that passes its target. A function `to` gets
    a meta tensor for a DTensor of other ranks.

    comm: a unisono.Communicator of the ranks of `group`; None: creates one, whose ranks meet over the group.
    Tensors are on the CPU. The constructor and run() are collective over `group`, which has all ranks of all
    meshes. Errors in the arguments of a rank are raised on all ranks.
    """

    def __init__(self, tensors, to, comm=None, group=None):
        named = {}

        def sources():
            named.update(_named(tensors))
            for name, tensor in named.items():
                if tensor.device.type != "cpu":
                    raise ValueError(f"reshard: {name!r} is on {tensor.device}; tensors must be on the CPU")
            return {
                name: (tensor.dtype, tuple(tensor.shape),
                       layout(name, tensor.shape, tensor.device_mesh, tensor.placements, group))
                for name, tensor in named.items()
            }  # fmt: skip

        before = _merged("tensors", _from_all_ranks(sources, group))

        def targets():
            self._targets = {}
            for name, (dtype, shape, _) in before.items():
                target = _target(name, named.get(name, torch.empty(shape, dtype=dtype, device="meta")), to)
                if target is not None:
                    self._targets[name] = target
            return {
                name: layout(name, before[name][1], mesh, placements, group)
                for name, (mesh, placements) in self._targets.items()
            }

        after = _merged("to", _from_all_ranks(targets, group))
        lacking = [name for name in before if name not in after]
        if lacking:
            raise ValueError(f"reshard: {', '.join(map(repr, lacking))} has no mesh and placements in `to`")
        self._sources = set(named)
        self._is_one = list(before) == [""]
        self._shapes = {name: row[1] for name, row in before.items()}
        self._dtypes = {name: row[0] for name, row in before.items()}
        self._latest = None
        # Its own communicator, so that a run in a thread does not block other calls of `comm`.
        self.comm = _connect(group) if comm is None else comm.split(0)
        self._plan = unisono.reshard.Reshard(
            self.comm, {name: (*row, after[name]) for name, row in before.items()}
        )

    def run(self, tensors, out=None, timeout_ms=-1, async_op=False):
        """Moves the values of `tensors`, which must have the plan's names, meshes and placements.

        out: a result of an earlier run(), to be overwritten. Returns `out`, or new DTensors: those of the names
        for which this rank passed a target. async_op: starts the moves and returns a ReshardWork. Runs of a plan
        execute one after another.
        """
        named = _named(tensors)
        if named.keys() != self._sources:
            wrong = sorted(named.keys() ^ self._sources)
            raise ValueError(f"reshard: names that the plan or the call lacks: {', '.join(map(repr, wrong))}")
        if out is None:
            filled = {name: self._empty(name) for name in self._targets}
        else:
            filled = _named(out)
        inputs = {name: _local(tensor, self._plan.in_shape(name)) for name, tensor in named.items()}
        outputs = {name: _local(tensor, self._plan.out_shape(name)) for name, tensor in filled.items()}
        moved = filled.get("") if self._is_one else filled

        def move():
            self._plan.run(inputs, outputs, timeout_ms=timeout_ms)

        if async_op:
            self._latest = ReshardWork(move, moved, self._latest)
            return self._latest
        if self._latest is not None:
            self._latest._thread.join()
        move()
        return moved

    def complete(self, name=""):
        """Returns True if the latest run() has filled all of this rank's part of a tensor."""
        return self._plan.complete(name)

    @property
    def bytes_sent(self):
        """The bytes that ranks send to other ranks in a run."""
        return self._plan.bytes_sent

    def close(self):
        """Leaves the groups of the plan, after the end of its runs."""
        if self._latest is not None and self._latest._thread is not threading.current_thread():
            self._latest._thread.join()
        self._plan.close()
        self.comm.close()

    def _empty(self, name):
        mesh, placements = self._targets[name]
        part = self._plan.out_shape(name)
        shape = torch.Size(self._shapes[name])
        local = torch.empty((0,) if part is None else part, dtype=self._dtypes[name])
        stride = torch.empty(shape, device="meta").stride()
        return DTensor.from_local(local, mesh, placements, run_check=False, shape=shape, stride=stride)


def _named(tensors):
    named = {"": tensors} if isinstance(tensors, DTensor) else tensors or {}
    wrong = [name for name, tensor in named.items() if not isinstance(tensor, DTensor)]
    if wrong:
        raise TypeError(f"reshard: these are no DTensors: {', '.join(map(repr, wrong))}")
    return named


def _target(name, tensor, to):
    if callable(to):
        to = to(name, tensor)
    elif isinstance(to, dict):
        to = to.get(name)
    if to is None:
        return None
    mesh, placements = to
    return mesh, tuple(placements)


def _from_all_ranks(make, group):
    """Calls make() and returns the results of all ranks. If it fails on a rank, all ranks raise its error."""
    try:
        mine = make(), None
    except Exception as error:
        mine = None, error
    results = [None] * dist.get_world_size(group)
    dist.all_gather_object(results, mine, group=group)
    if mine[1] is not None:
        raise mine[1]
    for rank, (_, error) in enumerate(results):
        if error is not None:
            raise type(error)(f"on rank {rank}: {error}")
    return [result for result, _ in results]


def _merged(what, results):
    """Merges the ranks' dicts by name, and compares values that several ranks have."""
    merged = {}
    for rank, result in enumerate(results):
        for name, value in result.items():
            if merged.setdefault(name, (value, rank))[0] != value:
                other, first = merged[name]
                raise ValueError(
                    f"reshard: `{what}` has {name!r} as {other} on rank {first}, and as {value} on rank {rank}"
                )
    return {name: value for name, (value, _) in merged.items()}


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
