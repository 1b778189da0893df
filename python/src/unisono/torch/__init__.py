"""The torch.distributed backend "unisono".

It is not necessary to import this module, because installing the package registers the backend. The
import is cheap: the extension is loaded when the first process group is created.

    import torch.distributed as dist

    dist.init_process_group("unisono")

Shapes and dtypes of every call are those of torch.distributed. docs/guides/pytorch.md lists
what unisono supports and gloo does not. Errors:
  ValueError, TypeError: invalid arguments, before anything is sent
  torch.distributed.DistBackendError: on all ranks, if a rank is lost, makes a different call, or
    does not make its call in time
"""

import atexit
import importlib
import os
import re
import sys
import warnings
from multiprocessing import util

__all__ = [
    "MoEDispatcher", "Reshard", "ReshardWork", "TokenSwitchUnisono", "enable_symmetric_memory", "register",
    "replace_gloo", "reshard", "sum_over_leaves",
]  # fmt: skip

_extension = None
_EXTENSIONS = os.path.join(os.path.dirname(__file__), "extensions")


def __getattr__(name):
    if name == "MoEDispatcher":  # which imports torch
        return importlib.import_module("unisono.torch.experts").MoEDispatcher
    if name in ("Reshard", "ReshardWork", "reshard"):
        return getattr(importlib.import_module("unisono.torch.dtensors"), name)
    if name == "sum_over_leaves":
        return importlib.import_module("unisono.torch.same_bits").sum_over_leaves
    if name == "TokenSwitchUnisono":  # which needs torch 2.14
        return importlib.import_module("unisono.torch.token_switch").TokenSwitchUnisono
    raise AttributeError(f"module 'unisono.torch' has no attribute '{name}'")


def built_for():
    """Returns the minor versions of PyTorch for which this installation has an extension, oldest first."""
    found = os.listdir(_EXTENSIONS) if os.path.isdir(_EXTENSIONS) else []
    minors = [name for name in found if re.fullmatch(r"\d+\.\d+", name)]
    return sorted(minors, key=lambda minor: [int(part) for part in minor.split(".")])


def extension():
    """Returns the loaded extension. Raises ImportError with advice if it does not fit this PyTorch."""
    global _extension
    if _extension is None:
        import torch

        minor = ".".join(torch.__version__.split(".")[:2])
        if minor not in built_for():
            has = ", ".join(built_for()) or "no PyTorch"
            raise ImportError(
                f"unisono was built for {has}, but this is PyTorch {torch.__version__}; use one that it was "
                "built for, or build unisono where torch is installed: pip install --force-reinstall ./python"
            )
        folder = os.path.join(_EXTENSIONS, minor)
        if folder not in __path__:
            __path__.append(folder)
        _extension = importlib.import_module("unisono.torch._C")
        if minor not in _extension.tested:
            warnings.warn(
                f"unisono is tested with PyTorch {', '.join(_extension.tested)}, and tried with this {torch.__version__}",
                stacklevel=2,
            )
        _extension.register_symmetric_memory()
        atexit.register(_leave)
        _leave_with_worker()
        util.register_after_fork(_leave_with_worker, _leave_with_worker)  # because fork clears finalizers
    return _extension


def _leave_with_worker(_=None):
    util.Finalize(None, _leave, exitpriority=0)  # a forked multiprocessing worker skips atexit


def _leave():
    """Leaves all groups if a process ends without destroy_process_group().

    Peers then do not treat the end as a crash. The process first waits until peers have received
    the messages that they still need. If an exception ends the process, it does not wait, because
    the peers may wait for calls that this rank will not make.
    """
    raised = sys.exc_info()[1]
    failed = hasattr(sys, "last_type") or not isinstance(raised, (type(None), SystemExit))
    _extension.leave_all(finish_owed=not failed)


def _limit(options, backend_options):
    """Returns the timeout of the call, as for other backends. If the call has no timeout, returns
    the timeout of our own Options."""
    from torch.distributed.distributed_c10d import _get_default_timeout

    asked = getattr(backend_options, "_timeout", None)
    is_named = options.timeout != _get_default_timeout("unisono")
    if asked is None or asked == options.timeout:
        return options.timeout
    if isinstance(backend_options, extension().Options) and not is_named:
        return asked
    warnings.warn(
        f"unisono: the timeout of the call, {options.timeout}, is used, not the {asked} of its pg_options",
        stacklevel=3,
    )
    return options.timeout


def _create(options, backend_options=None):
    timeout = _limit(options, backend_options)
    members = options.global_ranks_in_group or []
    later = getattr(options, "enable_reconfigure", False)  # since torch 2.14
    backend = extension().Backend(
        options.store, options.group_rank, options.group_size, timeout, list(members), enable_reconfigure=later
    )
    backend.options.global_ranks_in_group = options.global_ranks_in_group
    backend.options.group_name = options.group_id
    return backend


def register():
    """Registers "unisono" with torch.distributed. May be called again.

    With UNISONO_REPLACE_GLOO=1 in the environment, "gloo" also means unisono.
    """
    import torch.distributed as dist

    if not dist.is_available():
        return
    if "UNISONO" not in dist.Backend._plugins:
        dist.Backend.register_backend("unisono", _create, extended_api=True, devices=["cpu", "cuda"])
        from unisono.torch import _flight_recorder, _monitored, _shrink, _split, _timeout

        _timeout.extend(lambda: extension().Backend)
        _monitored.extend(lambda: extension().Backend)
        _split.extend(extension)
        _shrink.extend(extension)
        _flight_recorder.extend(lambda: _extension)
    if os.environ.get("UNISONO_REPLACE_GLOO", "0") not in ("", "0"):
        replace_gloo()


def enable_symmetric_memory():
    """Enables torch.distributed._symmetric_memory on the CPU.

    The first unisono group also does this. Call this function if no group uses unisono.
    """
    extension()


def replace_gloo():
    """Makes later requests for the backend "gloo" create unisono process groups.

    This is for programs in which the name "gloo" is fixed. dist.get_backend() still returns "gloo".
    """
    from unisono.torch import _gloo

    _gloo.replace()
