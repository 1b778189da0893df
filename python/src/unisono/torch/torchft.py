"""torchft's process group (0.2) over unisono, instead of torchft's ProcessGroupGloo:

    from unisono.torch.torchft import ProcessGroupUnisono

    manager = torchft.Manager(pg=ProcessGroupUnisono(timeout=timedelta(seconds=30)), ...)

The manager creates a new group for each quorum. If a rank dies, the other ranks get the error within
milliseconds, so the manager can request the next quorum at once. Importing this module needs torchft.
"""

import torch
import torch.distributed as dist
from torchft.process_group import ProcessGroupWrapper

from unisono.torch import extension

__all__ = ["ProcessGroupUnisono"]


class ProcessGroupUnisono(ProcessGroupWrapper):
    """A process group over unisono. timeout: the limit of each operation, and of the wait for the
    ranks of a quorum."""

    def _create_pg(self, store, rank, world_size):
        group = dist.ProcessGroup(store, rank, world_size)
        kind = dist.ProcessGroup.BackendType.CUSTOM
        group._set_default_backend(kind)
        backend = extension().Backend(store, rank, world_size, self._timeout)
        group._register_backend(torch.device("cpu"), kind, backend)
        if torch.cuda.is_available():
            group._register_backend(torch.device("cuda"), kind, backend)
        return group

    def getBackendName(self):
        return "torchft-unisono"
