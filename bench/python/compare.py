#!/usr/bin/env python3
"""unisono and gloo as backends of PyTorch, measured in turns by the same processes.

    build/venv/bin/python bench/python/compare.py --ranks 2

The time of a call is that of the slowest rank: the median over rounds, each of which runs both
backends one after the other.
"""

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time


def operations(torch, dist, size, ranks):
    """name -> a function of the group; `size` is the larger of a rank's input and output."""
    count = max(size // 4, ranks)
    whole = torch.ones(count - count % ranks)
    part = torch.ones(whole.numel() // ranks)
    other = torch.empty_like(whole)
    narrow = torch.ones(max(size // 2, 1), dtype=torch.bfloat16)
    return {
        "all_reduce": lambda group: dist.all_reduce(whole, dist.ReduceOp.MAX, group),
        "all_reduce bf16": lambda group: dist.all_reduce(narrow, dist.ReduceOp.MAX, group),
        "all_reduce async": lambda group: dist.all_reduce(
            whole, dist.ReduceOp.MAX, group, async_op=True
        ).wait(),
        "all_gather_into_tensor": lambda group: dist.all_gather_into_tensor(whole, part, group),
        "reduce_scatter_tensor": lambda group: dist.reduce_scatter_tensor(
            part, whole, dist.ReduceOp.MAX, group
        ),
        "all_to_all_single": lambda group: dist.all_to_all_single(other, whole, group=group),
    }


def measure(operation, groups, dist, budget_s, rounds):
    """Seconds of a call with each group."""
    import torch

    calls = {}
    for name, group in groups.items():  # how many calls make a round, the same on all ranks
        begin = time.perf_counter()
        for _ in range(3):
            operation(group)
        took = torch.tensor([(time.perf_counter() - begin) / 3])
        dist.all_reduce(took, dist.ReduceOp.MAX)
        calls[name] = max(2, min(2000, int(budget_s / rounds / took.item())))
    times = {name: [] for name in groups}
    for _ in range(rounds):
        for name, group in groups.items():
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(calls[name]):
                operation(group)
            took = torch.tensor([(time.perf_counter() - begin) / calls[name]])
            dist.all_reduce(took, dist.ReduceOp.MAX)
            times[name].append(took.item())
    return {name: statistics.median(values) for name, values in times.items()}


def rank_main(rank, options, folder):
    import warnings

    import torch
    import torch.distributed as dist

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    store = dist.FileStore(os.path.join(folder, "store"), options.ranks)
    dist.init_process_group("unisono", store=store, rank=rank, world_size=options.ranks)
    groups = {"unisono": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    if rank == 0:
        print(f"{'operation':24} {'bytes':>10} {'unisono':>10} {'gloo':>10}  ratio   (us)")
    for size in options.sizes:
        for name, operation in operations(torch, dist, size, options.ranks).items():
            if options.only and not name.startswith(options.only):
                continue
            times = measure(operation, groups, dist, options.budget, options.rounds)
            if rank == 0:
                ours, theirs = times["unisono"] * 1e6, times["gloo"] * 1e6
                print(f"{name:24} {size:10} {ours:10.1f} {theirs:10.1f}  {ours / theirs:.3f}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", type=lambda text: [int(s) for s in text.split(",")],
                        default=[8, 512, 4096, 65536, 1 << 20, 16 << 20])  # fmt: skip
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for each number")
    parser.add_argument("--only", default="", help="operations whose names begin so")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=rank_main, args=(rank, options, folder))
            for rank in range(options.ranks)
        ]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    return max(abs(rank.exitcode) for rank in ranks)


if __name__ == "__main__":
    raise SystemExit(main())
