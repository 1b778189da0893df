#!/usr/bin/env python3
"""Measures the cost of many process groups: time to create and first use them, threads, file descriptors.

    build/venv/bin/python bench/python/groups.py --groups 200
    build/venv/bin/python bench/python/groups.py --groups 50 --default gloo
"""

import argparse
import os
import time

import ranks


def has():
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def use(torch, dist, backend, count):
    """Returns the seconds, and the increase in threads and file descriptors."""
    before = has()
    dist.barrier()
    begin = time.perf_counter()
    groups = [dist.new_group(backend=backend) for _ in range(count)]
    x = torch.zeros(1)
    for group in groups:
        dist.all_reduce(x, group=group, async_op=True).wait()
    took = torch.tensor([time.perf_counter() - begin])
    after = has()
    dist.all_reduce(took, dist.ReduceOp.MAX)
    for group in groups:
        dist.destroy_process_group(group)
    return took.item(), after[0] - before[0], after[1] - before[1]


def rank_main(rank, options, folder):
    import torch
    import torch.distributed as dist

    ranks.join(rank, options.ranks, folder, options.default)
    for backend in ("unisono", "gloo"):
        seconds, threads, descriptors = use(torch, dist, backend, options.groups)
        if rank == 0:
            print(f"{options.groups} groups of {backend:8} {seconds:6.2f} s, {threads} more threads, "
                  f"{descriptors} more descriptors", flush=True)  # fmt: skip
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--default", choices=("unisono", "gloo"), default="unisono",
                        help="the backend of the default group, under which the groups are made")  # fmt: skip
    return ranks.start(rank_main, parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
