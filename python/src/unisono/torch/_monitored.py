"""torch.distributed.monitored_barrier for our groups. PyTorch 2.13 requires the name gloo."""

import functools


def extend(unisono_backend):
    """Makes monitored_barrier work for unisono groups.

    `unisono_backend()` returns the class of unisono backends.
    """
    import torch
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d

    original = c10d.monitored_barrier
    if hasattr(original, "_unisono"):
        return
    cpu = torch.device("cpu")

    @functools.wraps(original)
    def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
        asked = c10d._get_default_group() if group is None else group
        if not isinstance(asked, c10d.ProcessGroup) or c10d._rank_not_in_group(asked) or cpu not in asked._device_types:
            return original(group, timeout, wait_all_ranks)
        backend = asked._get_backend(cpu)
        if not isinstance(backend, unisono_backend()):
            return original(group, timeout, wait_all_ranks)
        if timeout is None:
            timeout = backend.options._timeout
        elif isinstance(timeout, float):
            timeout = c10d.timedelta(seconds=timeout)
        c10d._check_valid_timeout(timeout)
        return backend.monitored_barrier(timeout, wait_all_ranks)

    monitored_barrier._unisono = True
    c10d.monitored_barrier = dist.monitored_barrier = monitored_barrier
