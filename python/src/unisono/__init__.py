"""Collective communication between processes or threads, for arrays of any library.

    import numpy, unisono

    with unisono.connect() as comm:         # rank and size from the launcher's environment
        x = numpy.full(4, comm.rank, "f4")
        comm.all_reduce(x)                  # in place

Buffers are objects with the buffer protocol (numpy, bytearray, array) or __dlpack__; they must be
C-contiguous. The guide is docs/guides/python.md. The modules:

    unisono.schedule   builds and verifies algorithms
    unisono.model      predicts the cost of algorithms and of models
    unisono.parallel   distributes models over ranks
    unisono.reshard    moves tensors to another mesh
    unisono.pipeline   runs pipeline schedules
    unisono.expert     exchanges tokens between experts
    unisono.device     works on GPU memory
    unisono.torch      is the backend of torch.distributed
"""

import importlib

__version__ = "0.1.0"

_ERRORS = (
    "AbortedError", "ConfigError", "CorruptError", "Error", "EvictedError", "MismatchError", "PeerLostError",
    "ResourceError", "UsageError",
)  # fmt: skip
# Not in __all__: `import *` would replace Python's own.
_BUILTIN_NAMES = ("ConnectionError", "TimeoutError")
_CORE = (
    "ANY_SOURCE", "Communicator", "Explanation", "Plan", "Region", "Request", "connect",
    "premul_sum", "run_threads",
)  # fmt: skip
__all__ = [*_CORE, *_ERRORS, "TreeSum", "device", "expert", "model", "parallel", "pipeline", "reshard",
           "schedule"]


# Modules are loaded on first use, because `import torch` imports this module in every program.
def __getattr__(name):
    if name in _CORE:
        value = getattr(_load(), name)
    elif name in _ERRORS or name in _BUILTIN_NAMES:
        value = getattr(importlib.import_module("unisono._errors"), name)
    elif name == "TreeSum":
        value = importlib.import_module("unisono._tree_sum").TreeSum
    elif name in ("device", "expert", "model", "parallel", "pipeline", "reshard", "schedule"):
        value = importlib.import_module(f"unisono.{name}")
    else:
        raise AttributeError(f"module 'unisono' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    return [*globals(), *__all__, *_BUILTIN_NAMES]


def _load():
    import atexit

    core = importlib.import_module("unisono._core")
    if "_loaded" not in globals():
        # Leaves the world if a process ends without close(), so that peers do not treat it as dead.
        atexit.register(core._close_all)
        globals()["_loaded"] = True
    return core
