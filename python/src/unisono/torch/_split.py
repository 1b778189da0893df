"""torch.distributed.split_group for our groups. PyTorch 2.13 and 2.14 require a device."""

import functools
import weakref
from collections import Counter

import torch

_splits = weakref.WeakKeyDictionary()  # by group: number of splits into these ranks


def extend(extension):
    """Makes torch.distributed.split_group work for groups whose only backend is unisono.

    `extension()` returns the loaded extension. PyTorch still handles all other groups.
    """
    import torch.distributed as dist
    from torch.distributed import device_mesh
    from torch.distributed import distributed_c10d as c10d

    original = c10d.split_group
    if hasattr(original, "_unisono"):
        return

    @functools.wraps(original)
    def split_group(
        parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None
    ):
        parent = parent_pg or c10d._get_default_group()
        if not _is_unisono(parent, extension):
            return original(parent_pg, split_ranks, timeout, pg_options, group_desc, backend)
        _check(parent, split_ranks)
        name = c10d._world.pg_map[parent][0]
        if backend is not None and not {str(backend), str(backend).partition(":")[2]} & {name}:
            raise ValueError(f"split_group: the parent group has the backend {name}, not {backend}")
        if timeout is None:
            timeout = pg_options._timeout if pg_options else c10d._get_default_timeout(name)
        c10d._check_valid_timeout(timeout)
        return _split(c10d, parent, split_ranks, extension().Options(timeout), group_desc, name)

    split_group._unisono = True
    c10d.split_group = dist.split_group = device_mesh.split_group = split_group


def _is_unisono(group, extension):
    devices = getattr(group, "_device_types", None)
    return bool(devices) and all(isinstance(group._get_backend(device), extension().Backend) for device in devices)


def _check(parent, split_ranks):
    """Raises ValueError for wrong split_ranks, before any rank waits for the others."""
    if not split_ranks or not all(split_ranks):
        raise ValueError("split_group: split_ranks must be a list of lists of ranks, none of them empty")
    named = [rank for part in split_ranks for rank in part]
    for rank in named:
        if not 0 <= rank < parent.size():
            raise ValueError(f"split_group: {rank} is not a rank of the parent group of {parent.size()}")
    if len(named) != len(set(named)):
        raise ValueError("split_group: a rank is given twice; the parts must not overlap")


def _split(c10d, parent, split_ranks, options, group_desc, backend):
    mine = next((sorted(part) for part in split_ranks if parent.rank() in part), None)
    if mine is None:
        return None
    # All members get the same name. Each split gets a new name, because the store keeps the keys of
    # earlier groups.
    count = _splits.setdefault(parent, Counter())
    numbers = ",".join(map(str, mine))
    count[numbers] += 1
    name = c10d.GroupName(f"{parent.group_name}:split:{numbers}:{count[numbers]}")
    group = parent.split_group(
        mine, timeout=options._timeout, opts=options, group_name=name, group_desc=group_desc
    )
    device = c10d._get_default_group().bound_device_id
    if device is not None:
        group.bound_device_id = device
        group._get_backend(device).eager_connect_single_device(device)
    ranks = c10d.get_process_group_ranks(parent)
    c10d._register_pg_in_world(
        group,
        backend_name=backend,
        store=group.get_group_store(),
        group_name=name,
        backend_config=str(c10d.BackendConfig(c10d.Backend(backend))),
        rank_mapping={ranks[rank]: number for number, rank in enumerate(mine)},
    )
    return group
