#!/usr/bin/env python3
"""Compares unisono and gloo as PyTorch backends while other processes compete for the same cores.

    build/venv/bin/python bench/python/contended.py --ranks 2 --beside gloo

The competing processes are two gloo jobs of four ranks, which sleep and wake all the time (`gloo`), eight
processes that compute (`busy`), or none (`none`). Each backend has its own processes, which take turns: one
backend sleeps while the other is measured. Times are medians over calls, on the slowest rank. `step`: DDP
computes and reduces the gradients of 25 M parameters.
"""

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
import warnings

BACKENDS = ("unisono", "gloo")
JOBS, RANKS_OF_A_JOB, LOOPS = 2, 4, 8
TURN_SECONDS = 0.3


def busy():
    while True:
        pass


def join(backend, rank, ranks, folder):
    import torch
    import torch.distributed as dist

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    store = dist.FileStore(os.path.join(folder, "store"), ranks)
    dist.init_process_group(backend, store=store, rank=rank, world_size=ranks)
    return torch, dist


def neighbour(rank, folder):
    torch, dist = join("gloo", rank, RANKS_OF_A_JOB, folder)
    gradients, weights = torch.ones(1 << 18), torch.ones(192, 192)
    while True:
        for _ in range(4):
            weights = (weights @ weights).clamp(0, 1)
        dist.all_reduce(gradients)
        gradients.fill_(1)


def start_neighbours(context, kind, folder):
    started = []
    if kind == "busy":
        started = [context.Process(target=busy, daemon=True) for _ in range(LOOPS)]
    for _ in range(JOBS if kind == "gloo" else 0):
        place = tempfile.mkdtemp(dir=folder)
        started += [
            context.Process(target=neighbour, args=(rank, place), daemon=True)
            for rank in range(RANKS_OF_A_JOB)
        ]
    for process in started:
        process.start()
    return started


def operations_of(torch, dist):
    """Returns {operation: function that calls it}."""
    calls = {}
    for size in (8, 64 << 10, 16 << 20):
        data = torch.zeros(size // 4)
        calls[f"all_reduce {size}"] = lambda data=data: dist.all_reduce(data)
    calls["barrier"] = dist.barrier
    layers = [torch.nn.Linear(1000, 1250), torch.nn.Linear(1250, 1000)] * 10
    whole = [torch.nn.Linear(layer.in_features, layer.out_features) for layer in layers]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*whole))
    x = torch.ones(8, 1000)
    calls["step of 25 M"] = lambda: model(x).sum().backward()
    return calls


def rank_main(backend, rank, ranks, folder, together, pipe):
    """Answers each (operation, calls) with the seconds of each call."""
    torch, dist = join(backend, rank, ranks, folder)
    operations = operations_of(torch, dist)
    pipe.send(list(operations))
    for operation, calls in iter(pipe.recv, None):
        times = []
        for _ in range(calls):
            together.wait()
            start = time.perf_counter()
            operations[operation]()
            times.append(time.perf_counter() - start)
        pipe.send(times)
    dist.destroy_process_group()


class Job:
    """Ranks of one backend."""

    def __init__(self, context, backend, ranks, folder):
        together = context.Barrier(ranks)
        place = tempfile.mkdtemp(dir=folder)
        self.pipes, self.processes = [], []
        for rank in range(ranks):
            here, there = context.Pipe()
            process = context.Process(target=rank_main, daemon=True,
                                      args=(backend, rank, ranks, place, together, there))  # fmt: skip
            process.start()
            there.close()  # the pipe then ends with the rank
            self.pipes.append(here)
            self.processes.append(process)
        self.operations = [pipe.recv() for pipe in self.pipes][0]

    def measure(self, operation, calls):
        """Returns the seconds of each call."""
        for pipe in self.pipes:
            pipe.send((operation, calls))
        return [max(times) for times in zip(*(pipe.recv() for pipe in self.pipes))]

    def close(self):
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join()


def measure(jobs, operation, budget):
    """Returns {backend: seconds of its calls}. All backends get equal shares of the time."""
    times = {name: [] for name in jobs}
    calls = {name: 3 for name in jobs}
    for job in jobs.values():
        job.measure(operation, 1)
    begin = time.perf_counter()
    while time.perf_counter() - begin < budget or min(map(len, times.values())) < 9:
        for name, job in jobs.items():
            times[name] += job.measure(operation, calls[name])
            calls[name] = min(1000, max(3, int(TURN_SECONDS / statistics.median(times[name]))))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--beside", choices=["gloo", "busy", "none"], default="gloo")
    parser.add_argument("--budget", type=float, default=8, help="seconds for each operation")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        jobs = {name: Job(context, name, options.ranks, folder) for name in BACKENDS}
        neighbours = start_neighbours(context, options.beside, folder)
        print(f"{options.ranks} ranks beside {options.beside}")
        print(f"{'operation':24}{'unisono':>12}{'gloo':>12}  ratio   (us, medians)")
        try:
            for operation in jobs["gloo"].operations:
                times = measure(jobs, operation, options.budget)
                ours, theirs = (statistics.median(times[name]) for name in BACKENDS)
                counts = " and ".join(str(len(times[name])) for name in BACKENDS)
                print(f"{operation:24}{ours * 1e6:12.0f}{theirs * 1e6:12.0f}  {ours / theirs:5.2f}   of {counts}",
                      flush=True)  # fmt: skip
        finally:
            for process in neighbours:
                process.kill()
        for job in jobs.values():
            job.close()


if __name__ == "__main__":
    main()
