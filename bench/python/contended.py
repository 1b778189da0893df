#!/usr/bin/env python3
"""unisono and gloo as backends of PyTorch beside others that want the same cores.

    build/venv/bin/python bench/python/contended.py --ranks 2 --beside gloo

The neighbours: `gloo`: two jobs of four ranks over gloo, that sleep and wake all the time; `busy`:
eight processes that compute; `none`. The backends take turns within the same processes, call by
call in rounds; the time of a call is that of the slowest rank, the median over rounds. `step`: the
gradients of 25 M parameters, computed and reduced by DDP.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time

import ranks

JOBS, RANKS_OF_A_JOB, LOOPS = 2, 4, 8


def busy():
    while True:
        pass


def neighbour(rank, folder):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", RANKS_OF_A_JOB)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS_OF_A_JOB)
    gradients, weights = torch.ones(1 << 18), torch.ones(192, 192)
    while True:
        for _ in range(4):
            weights = (weights @ weights).clamp(0, 1)
        dist.all_reduce(gradients)
        gradients.fill_(1)


def start_neighbours(kind, folder):
    context = multiprocessing.get_context("spawn")
    started = []
    if kind == "busy":
        started = [context.Process(target=busy, daemon=True) for _ in range(LOOPS)]
    for job in range(JOBS if kind == "gloo" else 0):
        place = tempfile.mkdtemp(dir=folder)
        started += [
            context.Process(target=neighbour, args=(rank, place), daemon=True)
            for rank in range(RANKS_OF_A_JOB)
        ]
    for process in started:
        process.start()
    return started


def ways_of(torch, dist, groups):
    """operation -> backend -> a call of it."""
    ways = {}
    for size in (8, 64 << 10, 16 << 20):
        data = torch.zeros(size // 4)
        ways[f"all_reduce {size}"] = {
            name: lambda group=group, data=data: dist.all_reduce(data, group=group)
            for name, group in groups.items()
        }
    ways["barrier"] = {
        name: lambda group=group: dist.barrier(group=group) for name, group in groups.items()
    }

    def step(model, x):
        model(x).sum().backward()

    layers = [torch.nn.Linear(1000, 1250), torch.nn.Linear(1250, 1000)] * 10
    whole = [torch.nn.Linear(layer.in_features, layer.out_features) for layer in layers]
    x = torch.ones(8, 1000)
    ways["step of 25 M"] = {}
    for name, group in groups.items():
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*whole), process_group=group)
        ways["step of 25 M"][name] = lambda model=model: step(model, x)
    return ways


def measure(torch, dist, calls, budget, control):
    """backend -> median seconds of a call; all ranks make the same number of calls."""
    times = {name: [] for name in calls}
    begin = time.perf_counter()
    more = True
    while more:
        for name, call in calls.items():
            dist.barrier(group=control)
            start = time.perf_counter()
            call()
            took = torch.tensor([time.perf_counter() - start])
            dist.all_reduce(took, dist.ReduceOp.MAX, control)
            times[name].append(took.item())
        go_on = torch.tensor([float(time.perf_counter() - begin < budget)])
        dist.broadcast(go_on, 0, control)
        more = bool(go_on.item()) or len(times[name]) < 3
    return {name: (statistics.median(values), len(values)) for name, values in times.items()}


def rank_main(rank, options, folder):
    import torch
    import torch.distributed as dist

    groups = ranks.join(rank, options.ranks, folder)
    control = dist.new_group(backend="gloo")
    if rank == 0:
        print(f"{options.ranks} ranks beside {options.beside}")
        print(f"{'operation':24}{'unisono':>12}{'gloo':>12}  ratio   (us, medians)")
    for operation, calls in ways_of(torch, dist, groups).items():
        for call in calls.values():
            call()
        times = measure(torch, dist, calls, options.budget, control)
        if rank == 0:
            (ours, count), (theirs, _) = times["unisono"], times["gloo"]
            print(f"{operation:24}{ours * 1e6:12.0f}{theirs * 1e6:12.0f}  {ours / theirs:5.2f}   of {count}",
                  flush=True)  # fmt: skip
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--beside", choices=["gloo", "busy", "none"], default="gloo")
    parser.add_argument("--budget", type=float, default=8, help="seconds for each operation")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        neighbours = start_neighbours(options.beside, folder)
        try:
            return ranks.start(rank_main, options)
        finally:
            for process in neighbours:
                process.kill()


if __name__ == "__main__":
    raise SystemExit(main())
