#!/usr/bin/env python3
"""Compares unisono and gloo as PyTorch backends, in the same processes, in turns.

    build/venv/bin/python bench/python/compare.py --ranks 2

"direct" is the library without PyTorch: a prepared call from Python. "none" is PyTorch with a backend that
does nothing, which shows PyTorch's own cost. "bf16" has as many elements as the f32 row of the same size, so
half the bytes. Each round runs all backends one after the other. Times are medians over rounds, on the
slowest rank.
"""

import argparse
import statistics
import time

import ranks


class Operation:
    """An operation of torch.distributed, the same operation of unisono, and the expected result."""

    def __init__(self, call, plan, out, want):
        self.call, self.plan, self.out, self.want = call, plan, out, want


def operations(torch, dist, direct, size):
    """Returns {name: Operation}. `size`: the larger of a rank's input and output, in bytes."""
    n, rank = direct.size, direct.rank
    count = max(size // 4 // n * n, n)
    sums = torch.full((count,), float(rank + 1))
    total = n * (n + 1) / 2
    narrow = sums.to(torch.bfloat16)
    whole, other = torch.full((count,), float(rank)), torch.empty(count)
    part, back = whole[: count // n].clone(), torch.empty(count // n)
    ranks_in_order = torch.arange(float(n)).repeat_interleave(count // n)
    add = dist.ReduceOp.SUM
    return {
        "all_reduce": Operation(
            lambda group: dist.all_reduce(sums, add, group),
            direct.all_reduce_plan(sums), sums, total),
        "all_reduce bf16": Operation(
            lambda group: dist.all_reduce(narrow, add, group),
            direct.all_reduce_plan(narrow), narrow, total),
        "all_reduce async": Operation(
            lambda group: dist.all_reduce(sums, add, group, async_op=True).wait(),
            direct.all_reduce_plan(sums), None, None),
        "all_gather_into_tensor": Operation(
            lambda group: dist.all_gather_into_tensor(other, part, group),
            direct.all_gather_plan(part, other), other, ranks_in_order),
        "reduce_scatter_tensor": Operation(
            lambda group: dist.reduce_scatter_tensor(back, whole, add, group),
            direct.reduce_scatter_plan(whole, back), back, n * (n - 1) / 2),
        "all_to_all_single": Operation(
            lambda group: dist.all_to_all_single(other, whole, group=group),
            direct.all_to_all_plan(whole, other), other, ranks_in_order),
    }  # fmt: skip


def check(torch, name, operation):
    """Checks the result of the first call. Then sets sums to zero, so that repeated sums do not grow."""
    if operation.out is None:
        return
    want = torch.as_tensor(operation.want).to(operation.out.dtype).expand_as(operation.out)
    assert torch.equal(operation.out, want), f"{name}: {operation.out[:4]}, not {want[:4]}"
    if name.startswith("all_reduce"):
        operation.out.zero_()


def measure(torch, dist, ways, options):
    """Returns the seconds per call for each backend."""
    calls = {}
    for name, call in ways.items():  # calls per round, equal on all ranks
        begin = time.perf_counter()
        for _ in range(3):
            call()
        took = torch.tensor([(time.perf_counter() - begin) / 3])
        dist.all_reduce(took, dist.ReduceOp.MAX)
        calls[name] = max(2, min(2000, int(options.budget / options.rounds / took.item())))
    times = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, call in ways.items():
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(calls[name]):
                call()
            took = torch.tensor([(time.perf_counter() - begin) / calls[name]])
            dist.all_reduce(took, dist.ReduceOp.MAX)
            times[name].append(took.item())
    return {name: statistics.median(values) * 1e6 for name, values in times.items()}


def rank_main(rank, options, folder):
    import torch
    import torch.distributed as dist
    import unisono

    import torch.testing._internal.distributed.fake_pg  # noqa: F401 (it registers itself)

    groups = ranks.join(rank, options.ranks, folder)
    groups["none"] = dist.new_group(backend="fake")
    direct = unisono.connect(rank=rank, size=options.ranks, file=f"{folder}/direct")
    if rank == 0:
        print(f"{'operation':23}{'bytes':>10}{'unisono':>10}{'gloo':>10}{'direct':>10}"
              f"{'none':>8}  /gloo  /direct   (us)")  # fmt: skip
    for size in options.sizes:
        for name, operation in operations(torch, dist, direct, size).items():
            if options.only and not name.startswith(options.only):
                continue
            operation.call(groups["unisono"])
            check(torch, name, operation)
            ways = {
                way: lambda group=group, call=operation.call: call(group) for way, group in groups.items()
            }
            times = measure(torch, dist, {**ways, "direct": operation.plan.start}, options)
            if rank == 0:
                ours, theirs, alone = times["unisono"], times["gloo"], times["direct"]
                print(f"{name:23}{size:10}{ours:10.1f}{theirs:10.1f}{alone:10.1f}"
                      f"{times['none']:8.1f}  {ours / theirs:.3f}  {ours / alone:7.2f}", flush=True)  # fmt: skip
    direct.close()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", type=lambda text: [int(s) for s in text.split(",")],
                        default=[8, 512, 4096, 65536, 1 << 20, 16 << 20, 64 << 20])  # fmt: skip
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for each number")
    parser.add_argument("--only", default="", help="operations whose names begin so")
    return ranks.start(rank_main, parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
