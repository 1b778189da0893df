"""Lists which calls of torch.distributed work, over unisono and over gloo: the table in the guide for PyTorch.

    build/venv/bin/python python/tests/torch_calls.py   prints it, as it is with this PyTorch

Each call is made on two ranks, in a group of its own, and its result is looked at.
"""

import os
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import jobs  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

RANKS = 2


def reduced(dtype=torch.float32, op=dist.ReduceOp.SUM, want=3):
    """all_reduce of 1 on rank 0 and 2 on rank 1."""

    def call(rank):
        x = torch.full((4,), rank + 1).to(dtype)
        dist.all_reduce(x, op)
        return x.to(torch.complex64).real.tolist() == [want] * 4

    return call


def all_gather_uneven(rank):
    parts = [torch.zeros(1), torch.zeros(3)]
    dist.all_gather(parts, torch.full((1 + 2 * rank,), rank + 1.0))
    return [part.tolist() for part in parts] == [[1.0], [2.0] * 3]


def strided(rank):
    x = torch.zeros(3, 2).t()
    x[1] = rank + 1.0
    dist.all_reduce(x)
    return x.tolist() == [[0.0] * 3, [3.0] * 3]


def sparse(rank):
    x = torch.sparse_coo_tensor([[rank]], [1.0], (2,))
    dist.all_reduce(x)
    return x.to_dense().tolist() == [1.0, 1.0]


def broadcast(rank):
    x = torch.full((2,), float(rank))
    dist.broadcast(x, 1)
    return x.tolist() == [1.0] * 2


def reduce(rank):
    x = torch.ones(2)
    dist.reduce(x, 1)
    return rank == 0 or x.tolist() == [2.0] * 2


def all_gather(rank):
    parts = [torch.zeros(1) for _ in range(2)]
    dist.all_gather(parts, torch.full((1,), float(rank)))
    return [part.item() for part in parts] == [0.0, 1.0]


def all_gather_into(rank):
    out = torch.zeros(2)
    dist.all_gather_into_tensor(out, torch.full((1,), float(rank)))
    return out.tolist() == [0.0, 1.0]


def all_gather_into_stacked(rank):
    out = torch.zeros(2, 1)
    dist.all_gather_into_tensor(out, torch.full((1,), float(rank)))
    return out.flatten().tolist() == [0.0, 1.0]


def gather(rank):
    parts = [torch.zeros(1) for _ in range(2)] if rank == 1 else None
    dist.gather(torch.full((1,), float(rank)), parts, dst=1)
    return rank == 0 or [part.item() for part in parts] == [0.0, 1.0]


def gather_single(rank):
    out = torch.zeros(2) if rank == 1 else None
    dist.gather_single(torch.full((1,), float(rank)), out, dst=1)
    return rank == 0 or out.tolist() == [0.0, 1.0]


def scatter(rank):
    out = torch.zeros(1)
    dist.scatter(out, [torch.zeros(1), torch.ones(1)] if rank == 1 else None, src=1)
    return out.item() == rank


def reduce_scatter(rank):
    out = torch.zeros(1)
    dist.reduce_scatter(out, [torch.zeros(1), torch.ones(1)])
    return out.item() == 2.0 * rank


def reduce_scatter_tensor(rank):
    out = torch.zeros(1)
    dist.reduce_scatter_tensor(out, torch.tensor([0.0, 1.0]))
    return out.item() == 2.0 * rank


def all_to_all(rank):
    outs = [torch.zeros(1) for _ in range(2)]
    dist.all_to_all(outs, [torch.full((1,), 10.0 * rank + to) for to in range(2)])
    return [out.item() for out in outs] == [rank, 10.0 + rank]


def all_to_all_single(rank):
    out = torch.zeros(2)
    dist.all_to_all_single(out, torch.tensor([10.0 * rank, 10.0 * rank + 1]))
    return out.tolist() == [rank, 10.0 + rank]


def all_to_all_splits(rank):
    sent, received = ([1, 2], [1, 0]) if rank == 0 else ([0, 1], [2, 1])
    out = torch.zeros(sum(received))
    dist.all_to_all_single(out, torch.full((sum(sent),), float(rank)), received, sent)
    return out.tolist() == ([0.0] if rank == 0 else [0.0, 0.0, 1.0])


def send_recv(rank):
    x = torch.full((2,), 7.0 * (1 - rank))
    dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
    return x[1].item() == 7.0


def recv_any(rank):
    x = torch.full((2,), 7.0 * (1 - rank))
    if rank == 0:
        dist.send(x, 1)
        return True
    return dist.recv(x) == 0 and x[1].item() == 7.0


def isend_irecv(rank):
    x, y = torch.full((2,), float(rank)), torch.zeros(2)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)]):
        work.wait()
    return y[0].item() == 1 - rank


def coalesced(rank):
    x, y = torch.ones(2), torch.ones(3)
    with dist._coalescing_manager(async_ops=True) as work:
        dist.all_reduce(x)
        dist.all_reduce(y)
    work.wait()
    return x.sum().item() + y.sum().item() == 10.0


def future(rank):
    x = torch.ones(2)
    work = dist.all_reduce(x, async_op=True)
    return work.get_future().then(lambda done: done.value()[0].sum().item()).wait() == 4.0


def objects(rank):
    found = [None, None]
    dist.all_gather_object(found, {"rank": rank})
    return found == [{"rank": 0}, {"rank": 1}]


def barrier(rank):
    dist.barrier()
    return True


def monitored_barrier(rank):
    dist.monitored_barrier()
    return True


def in_subgroup(make):
    def call(rank):
        group = make(rank)
        x = torch.ones(1)
        dist.all_reduce(x, group=group)
        return x.item() == group.size()

    return call


def local_synchronization(rank):
    return dist.new_group([rank], use_local_synchronization=True)


def split(rank):
    return dist.split_group(split_ranks=[[0], [1]])


def shrink(rank):
    return rank == 1 or dist.shrink_group([1]).size() == 1


def set_timeout(rank):
    dist.distributed_c10d._set_pg_timeout(timedelta(seconds=9))
    cpu = torch.device("cpu")
    return dist.group.WORLD._get_backend(cpu).options._timeout == timedelta(seconds=9)


def allocate(rank):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    x = backend.allocate_tensor(4, dtype=torch.float32, device=torch.device("cpu")).fill_(1.0)
    dist.all_reduce(x)
    return x.sum().item() == 8.0


def window(rank):
    import torch.distributed._symmetric_memory as symm_mem

    made = dist._new_window(symm_mem.empty(2, device="cpu").fill_(rank))
    dist.barrier()
    return made.map_remote_tensor(1 - rank)[0].item() == 1 - rank


def abort_hook(rank):
    dist.group.WORLD.register_abort_hook(1, lambda: None)
    return True


def reconfigure(rank):
    store = dist.distributed_c10d._get_default_store()
    store.set(f"handle {rank}", dist._get_reconfigure_handle())
    dist._reconfigure(1, [store.get(f"handle {other}").decode() for other in (1, 0)]).wait()
    x = torch.ones(1)
    dist.all_reduce(x)
    return dist.get_rank() == 1 - rank and x.item() == 2.0


OPS = dist.ReduceOp
CALLS = {
    "`broadcast`": broadcast,
    "`all_reduce`, SUM": reduced(),
    "`all_reduce`, AVG": reduced(op=OPS.AVG, want=1.5),
    "`all_reduce`, PRODUCT": reduced(op=OPS.PRODUCT, want=2),
    "`all_reduce`, BXOR": reduced(torch.int64, OPS.BXOR),
    "`all_reduce`, PREMUL_SUM": lambda rank: reduced(op=dist._make_nccl_premul_sum(2.0), want=6)(rank),
    "`all_reduce`, `int16`": reduced(torch.int16),
    "`all_reduce`, `uint16`": reduced(torch.uint16),
    "`all_reduce`, `bool`": reduced(torch.bool, want=1),
    "`all_reduce`, `bfloat16`": reduced(torch.bfloat16),
    "`all_reduce`, `float8_e4m3fn`": reduced(torch.float8_e4m3fn),
    "`all_reduce`, `float8_e5m2`": reduced(torch.float8_e5m2),
    "`all_reduce`, `float8_e4m3fnuz`": reduced(torch.float8_e4m3fnuz),
    "`all_reduce`, `float8_e5m2fnuz`": reduced(torch.float8_e5m2fnuz),
    "`all_reduce`, `complex64`": reduced(torch.complex64),
    "`all_reduce`, MAX of `complex64`": reduced(torch.complex64, OPS.MAX, 2),
    "`all_reduce`, BAND of `float32`": reduced(op=OPS.BAND, want=0),
    "`all_reduce`, strided": strided,
    "`all_reduce`, sparse": sparse,
    "`reduce`": reduce,
    "`all_gather`": all_gather,
    "`all_gather`, parts of other lengths": all_gather_uneven,
    "`all_gather_into_tensor`": all_gather_into,
    "`all_gather_into_tensor`, stacked": all_gather_into_stacked,
    "`gather`": gather,
    "`gather_single` (2.14)": gather_single,
    "`scatter`": scatter,
    "`reduce_scatter`": reduce_scatter,
    "`reduce_scatter_tensor`": reduce_scatter_tensor,
    "`all_to_all`": all_to_all,
    "`all_to_all_single`": all_to_all_single,
    "`all_to_all_single`, splits": all_to_all_splits,
    "`send`, `recv`": send_recv,
    "`recv` from any": recv_any,
    "`batch_isend_irecv`": isend_irecv,
    "`_coalescing_manager`": coalesced,
    "`get_future`": future,
    "`all_gather_object`": objects,
    "`barrier`": barrier,
    "`monitored_barrier`": monitored_barrier,
    "`new_group(use_local_synchronization=True)`": in_subgroup(local_synchronization),
    "`split_group`": in_subgroup(split),
    "`shrink_group`": shrink,
    "`_set_pg_timeout`": set_timeout,
    "`allocate_tensor`": allocate,
    "`_new_window` (2.14)": window,
    "`_reconfigure` (2.14)": reconfigure,
    "`register_abort_hook` (2.14)": abort_hook,
}


def is_known(name):
    """Returns False for calls that only a newer release has."""
    return "(2.14)" not in name or hasattr(dist, "_reconfigure")


def outcome(backend, call, rank, store):
    """Returns "yes", "wrong", or the first line of the error without the parts that differ between ranks."""
    dist.init_process_group(backend, store=store, rank=rank, world_size=RANKS, timeout=timedelta(seconds=100))
    try:
        return "yes" if call(rank) else "wrong"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    finally:
        dist.destroy_process_group()


def outcomes(backend, folder):
    rank = int(os.environ["RANK"])
    found = {}
    for number, (name, call) in enumerate(CALLS.items()):
        if is_known(name):
            found[name] = outcome(backend, call, rank, dist.FileStore(f"{folder}/{number}", RANKS))
    return found


def of_backend(backend):
    """Returns {call: result}, from the rank with the worse result."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = jobs.run(RANKS, outcomes, backend, folder, backend=None)
    return {name: first[name] if first[name] != "yes" else second[name] for name in first}


def row(name, ours):
    """Returns a row of the guide's table without gloo's column."""
    why = ours.partition(": ")[2].removeprefix("unisono: ")
    return f"| {name} | {ours if ours in ('yes', 'wrong') else 'refused: ' + why} |"


def table(ours, gloos):
    """Returns the rows of the table; gloo's column states only whether a call works."""
    return [f"{row(name, ours[name])} {gloos[name] if gloos[name] in ('yes', 'wrong') else 'refused'} |" for name in ours]


if __name__ == "__main__":
    ours, gloos = of_backend("unisono"), of_backend("gloo")
    print("\n".join(table(ours, gloos)))
