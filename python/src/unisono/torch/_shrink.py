"""Groups that torch.distributed.shrink_group makes of ours: PyTorch's own (2.13) have one device."""

import functools

import torch


def extend(extension):
    """Lets a group that was shrunk work on all devices that its parent did.

    `extension()` is the loaded extension. Other groups are PyTorch's matter as before.
    """
    from torch.distributed import distributed_c10d as c10d

    original = c10d._create_shrunk_process_group
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def create(new_backend, remaining_ranks, metadata, is_default_group):
        group = original(new_backend, remaining_ranks, metadata, is_default_group)
        if isinstance(new_backend, extension().Backend):
            accelerator = torch.accelerator.current_accelerator()
            for device in {torch.device("cpu"), torch.device(accelerator.type if accelerator else "cuda")}:
                if device not in group._device_types:
                    group._register_backend(device, c10d.ProcessGroup.BackendType.CUSTOM, new_backend)
            if group.bound_device_id is not None:
                new_backend.eager_connect_single_device(group.bound_device_id)
        return group

    c10d._create_shrunk_process_group = create
