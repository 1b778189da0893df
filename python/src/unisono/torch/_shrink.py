"""torch.distributed.shrink_group for our groups. PyTorch 2.13 gives them only one device."""

import functools


def extend(extension):
    """Makes a shrunk group work on all devices on which its parent had one of our backends.

    `extension()` returns the loaded extension. PyTorch still handles all other groups.
    """
    from torch.distributed import distributed_c10d as c10d

    original = c10d._finalize_shrunk_group
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def finalize(group_info, excluded_ranks_set, new_backend):
        devices = _devices_of(group_info["process_group"], extension().Backend)
        group = original(group_info, excluded_ranks_set, new_backend)
        for device in devices:
            if device not in group._device_types:
                group._register_backend(device, c10d.ProcessGroup.BackendType.CUSTOM, new_backend)
        if devices and group.bound_device_id is not None:
            new_backend.eager_connect_single_device(group.bound_device_id)
        return group

    c10d._finalize_shrunk_group = finalize


def _devices_of(group, backend):
    return [device for device in group._device_types if isinstance(group._get_backend(device), backend)]
