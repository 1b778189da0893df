"""The device "fakegpu": tensors that behave as CUDA's, without a GPU (fake_device/), and jobs on it.

UNISONO_TEST_DEVICE=cuda takes a GPU in its place.
"""

import os
import types
from pathlib import Path

import jobs
import pytest
import torch

BUILD = Path(__file__).parents[2] / "build"
DRIVER = BUILD / "dev/src/device/libunisono_testing_cuda.so"
DEVICE = BUILD / "python/libfake_device.so"

NAME = os.environ.get("UNISONO_TEST_DEVICE", "fakegpu")
BACKEND = f"cpu:unisono,{NAME}:unisono"
NO_DRIVER = "/nonexistent/libcuda.so"

needed = pytest.mark.skipif(
    NAME == "fakegpu" and not (DRIVER.exists() and DEVICE.exists()), reason=f"there is no {DRIVER} or {DEVICE}: scripts/test-python"
)


def load():
    """In each rank, before it uses the device."""
    if NAME != "fakegpu":
        return
    os.environ.setdefault("UNISONO_CUDA", str(DRIVER))
    torch.utils.rename_privateuse1_backend("fakegpu")
    torch.ops.load_library(str(DEVICE))
    module = types.ModuleType("torch.fakegpu")
    module.is_available = lambda: True
    module.device_count = lambda: 1
    module.current_device = lambda: 0
    module.set_device = lambda _: None
    torch._register_device_module("fakegpu", module)


def without_kernels():
    """Operations go through memory of the host: the library finds no driver, the device has its own."""
    load()
    torch.ones(1, device=NAME)
    os.environ["UNISONO_CUDA"] = NO_DRIVER


WAYS = {"kernels": load, "host": without_kernels}


def run(ranks, body, *args, way="kernels", **options):
    return jobs.run(ranks, body, *args, **{"backend": BACKEND, "prepare": WAYS[way], **options})
