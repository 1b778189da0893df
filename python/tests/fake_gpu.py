"""The device "fakegpu": tensors that behave like CUDA tensors, without a GPU (fake_device/), and jobs on it.

UNISONO_TEST_DEVICE=cuda uses a GPU instead.
"""

import ctypes
import os
import types
from pathlib import Path

import jobs
import pytest
import torch

BUILD = Path(__file__).parents[2] / "build"
DRIVER = BUILD / "dev/src/device/libunisono_testing_cuda.so"
# Built against the installed PyTorch: scripts/test-torch uses the build for another release.
DEVICE = Path(os.environ.get("FAKE_DEVICE_LIBRARY", BUILD / "python/libfake_device.so"))

NAME = os.environ.get("UNISONO_TEST_DEVICE", "fakegpu")
BACKEND = f"cpu:unisono,{NAME}:unisono"
NO_DRIVER = "/nonexistent/libcuda.so"

needed = pytest.mark.skipif(
    NAME == "fakegpu" and not (DRIVER.exists() and DEVICE.exists()), reason=f"there is no {DRIVER} or {DEVICE}: scripts/test-python"
)

# A process sees two devices of fakegpu.
two_devices = pytest.mark.skipif(
    NAME == "cuda" and torch.cuda.device_count() < 2, reason="there is one GPU alone: a machine with two runs it"
)


def load():
    """Runs in each rank before it uses the device."""
    if NAME != "fakegpu":
        return
    os.environ.setdefault("UNISONO_CUDA", str(DRIVER))
    os.environ["FAKE_CUDA_DEVICES"] = "0,1"
    torch.utils.rename_privateuse1_backend("fakegpu")
    torch.ops.load_library(str(DEVICE))
    module = types.ModuleType("torch.fakegpu")
    module.is_available = module.is_initialized = lambda: True
    module.device_count = lambda: 2
    module.current_device = torch.accelerator.current_device_index
    module.set_device = torch.accelerator.set_device_index
    torch._register_device_module("fakegpu", module)


def reduced_once():
    """A tensor after its first all_reduce: all ranks have arrived, and the group has its device."""
    x = torch.ones(1_000, device=NAME)
    torch.distributed.all_reduce(x)
    x.cpu()
    return x


def without_kernels():
    """Operations go through host memory: the library finds no driver, because the device has its own."""
    load()
    torch.ones(1, device=NAME)
    os.environ["UNISONO_CUDA"] = NO_DRIVER


WAYS = {"kernels": load, "host": without_kernels}


def run(ranks, body, *args, way="kernels", **options):
    return jobs.run(ranks, body, *args, **{"backend": BACKEND, "prepare": WAYS[way], **options})


class Graph:
    """Captures the body of a `with` as a graph of its stream, as torch.cuda.graph does."""

    def __init__(self):
        if NAME == "cuda":
            self.graph = torch.cuda.CUDAGraph()
            self.capture = torch.cuda.graph(self.graph)
        else:
            self.library = ctypes.CDLL(str(DEVICE))
            self.library.fake_end_capture.restype = ctypes.c_void_p
            self.capture = torch.Stream(NAME)

    def __enter__(self):
        torch.accelerator.current_stream().synchronize()
        self.capture.__enter__()
        if NAME != "cuda":
            self.library.fake_begin_capture()
        return self

    def __exit__(self, *raised):
        if NAME != "cuda":
            self.graph = ctypes.c_void_p(self.library.fake_end_capture())
        self.capture.__exit__(*raised)
        if NAME != "cuda" and not self.graph:
            raise RuntimeError("something was done that cannot be in a graph, or was not waited for")

    def replay(self):
        if NAME == "cuda":
            self.graph.replay()
        else:
            self.library.fake_replay(self.graph)
