"""The extension. torch.distributed uses its class Backend through the base class."""

from datetime import timedelta
from typing import Any

import torch.distributed

built_for: str
"""The version of PyTorch for which the extension was built."""
tested: list[str]
"""The minor versions of PyTorch that the tests cover."""

class Options:
    """The options of a group."""

    def __init__(self, timeout: timedelta = ...) -> None: ...

class Backend(torch.distributed.Backend):
    """The unisono backend of one process group."""

    def __init__(
        self,
        store: torch.distributed.Store,
        rank: int,
        size: int,
        timeout: timedelta,
        members: list[int] = ...,
        shown_as: str = ...,
        enable_reconfigure: bool = ...,
    ) -> None:
        """Waits for all ranks. If ranks are missing, raises DistBackendError with their numbers.

        `shown_as`: the backend's name in the profiler. With `enable_reconfigure` (torch 2.14), the
        constructor returns at once, and a later reconfigure() gives the ranks.
        """
    @property
    def options(self) -> Any: ...
    def perform_nocolor_split(self, device: torch.device) -> None: ...
    def _set_default_timeout(self, timeout: timedelta) -> None: ...
    def _is_failed(self) -> bool: ...

def leave_all(finish_owed: bool) -> None:
    """Leaves all groups in order, so that peers do not treat the end of this process as a crash.

    With `finish_owed`, first waits for operations that peers need, at most each group's time limit.
    """

def register_symmetric_memory() -> None:
    """Makes torch.distributed._symmetric_memory work on the CPU."""

def host_identity() -> str:
    """Returns a value. Two processes can share memory if their values are equal."""
