"""Time limits of groups. torch.distributed sets them only for backends whose names it knows."""

import functools


def extend(unisono_backend):
    """Makes torch.distributed._set_pg_timeout work for unisono groups; other libraries use it too.

    `unisono_backend()` returns the class of unisono backends.
    """
    from torch.distributed import distributed_c10d as c10d

    original = c10d._set_pg_timeout
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def set_timeout(timeout, group=None):
        asked = c10d._get_default_group() if group is None else group
        if isinstance(asked, c10d.ProcessGroup) and not c10d._rank_not_in_group(asked):
            backends = [asked._get_backend(device) for device in asked._device_types]
            ours = [backend for backend in backends if isinstance(backend, unisono_backend())]
            for backend in ours:
                backend._set_default_timeout(timeout)
            if ours and len(ours) == len(backends):
                return
        original(timeout, group)

    c10d._set_pg_timeout = set_timeout
