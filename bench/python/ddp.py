#!/usr/bin/env python3
"""Time of a training step under DistributedDataParallel with unisono and with gloo, in turns:

    build/venv/bin/python bench/python/ddp.py --ranks 2

"alone" is the step with all that DistributedDataParallel does but to communicate: the rest is communication.
"""

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time


def new_model(torch, layers, width):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        *(m for _ in range(layers) for m in (torch.nn.Linear(width, width), torch.nn.GELU()))
    )


def step_time(model, x):
    begin = time.perf_counter()
    model.zero_grad(set_to_none=False)
    model(x).square().mean().backward()
    return time.perf_counter() - begin


def no_communication(_, bucket):
    import torch

    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def rank_main(rank, options, folder):
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    store = dist.FileStore(os.path.join(folder, "store"), options.ranks)
    dist.init_process_group("unisono", store=store, rank=rank, world_size=options.ranks)
    groups = {"unisono": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    models = {
        name: DistributedDataParallel(
            new_model(torch, options.layers, options.width), process_group=group
        )
        for name, group in groups.items()
    }
    models["alone"] = DistributedDataParallel(new_model(torch, options.layers, options.width))
    models["alone"].register_comm_hook(None, no_communication)
    x = torch.randn(options.batch, options.width)
    times = {"unisono": [], "gloo": [], "alone": []}
    for turn in range(options.rounds + 2):  # two to warm up
        for name in times:
            dist.barrier()
            took = step_time(models[name], x)
            slowest = torch.tensor([took])
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
            if turn >= 2:
                times[name].append(slowest.item() * 1e3)
    if rank == 0:
        parameters = sum(p.numel() for p in models["gloo"].parameters())
        print(f"{parameters / 1e6:.1f} M parameters, {options.ranks} ranks, milliseconds a step:")
        for name, values in times.items():
            print(f"  {name:8} {statistics.median(values):8.1f}")
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=15)
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
