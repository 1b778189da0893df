#!/usr/bin/env python3
"""Times all_reduce as a decode step calls it: latency.py [--ranks 2] [--calls 2000].

Between two calls each rank computes a small matrix product, so ranks come at different times, as in an
engine. The ways take turns, call by call, so that a busy machine slows all of them. One thread a rank.
Prints the median and the 99th percentile over all calls of all ranks, in microseconds.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", VLLM_PLUGINS="")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
os.environ.setdefault("VLLM_DIST_IDENT", f"latency-{os.getpid()}")  # ranks import this file again, and keep it
sys.path.insert(0, str(Path(__file__).parents[1]))

import jobs  # noqa: E402

WAYS = ("unisono", "vLLM's shared memory", "gloo")
KIB = (8, 32)


def stock_all_reduce():
    """vLLM's own, over its shared memory; None without vLLM, and on processors without AVX-512."""
    import torch.distributed as dist

    try:
        from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator
        from vllm.platforms import current_platform
    except ImportError:
        return None
    current_platform.import_kernels()
    stock = CpuCommunicator(dist.group.WORLD, device_group=dist.group.WORLD, unique_name="tp:0")
    return stock.all_reduce if stock.supports_tensor_dict else None


def measure(calls):
    import torch
    import torch.distributed as dist

    from unisono.torch.experts import _connect
    from unisono.vllm.calls import GroupCalls

    class Ours(GroupCalls):
        comm, world_size = _connect(None, "vllm"), dist.get_world_size()

        def label(self, purpose):
            self.comm.label("layers.3.mlp.down_proj tp all_reduce")

    ways = zip(WAYS, (Ours().all_reduce, stock_all_reduce(), dist.all_reduce))
    run = {way: call for way, call in ways if call is not None}
    weights, state = torch.randn(256, 256), torch.randn(8, 256)
    times = {}
    for kib in KIB:
        for turn in range(calls):
            for way, call in run.items():
                x = torch.ones(kib * 512, dtype=torch.bfloat16)
                state = torch.tanh(state @ weights)
                begin = time.perf_counter()
                call(x)
                times.setdefault((kib, way), []).append(time.perf_counter() - begin)
                assert turn or x[0] == dist.get_world_size(), way
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--calls", type=int, default=2000)
    options = parser.parse_args()
    found = jobs.run(options.ranks, measure, options.calls, backend="gloo")
    for kib in KIB:
        for way in WAYS:
            if (kib, way) not in found[0]:
                print(f"{kib:3} KiB  {way:22} not on this processor, or without vLLM")
                continue
            times = sorted(1e6 * one for rank in found for one in rank[kib, way][len(rank[kib, way]) // 10 :])
            print(f"{kib:3} KiB  {way:22} p50 {times[len(times) // 2]:9.1f} us   p99 {times[len(times) * 99 // 100]:9.1f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
