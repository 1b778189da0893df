#!/usr/bin/env python3
"""Compares a reshard from two trainer ranks to two engine ranks with gather and broadcast of whole tensors.

    build/venv/bin/python bench/python/reshard.py
    build/venv/bin/python bench/python/reshard.py --rounds 5 --layers 30

The model has the shapes of SmolLM-135M in bf16. The trainer shards every tensor by rows; the engine uses
tensor parallelism. The three methods alternate. Each number is a median over the rounds, and a ratio is the
median of the ratios per round. After each run, every value on the engine is compared with the value drawn for
it.
"""

import argparse
import os
import statistics
import time

import ranks

WIDTH, INNER, KEY_VALUES, VOCABULARY = 576, 1536, 192, 49152
TRAINER, ENGINE = (0, 1), (2, 3)


def model(layers):
    """Returns {name: (shape, dimension that the engine shards; None: whole on each rank)}."""
    tensors = {"embedding": ((VOCABULARY, WIDTH), 0), "norm": ((WIDTH,), None)}
    for layer in range(layers):
        tensors |= {
            f"{layer}.q": ((WIDTH, WIDTH), 0),
            f"{layer}.k": ((KEY_VALUES, WIDTH), 0),
            f"{layer}.v": ((KEY_VALUES, WIDTH), 0),
            f"{layer}.o": ((WIDTH, WIDTH), 1),
            f"{layer}.gate": ((INNER, WIDTH), 0),
            f"{layer}.up": ((INNER, WIDTH), 0),
            f"{layer}.down": ((WIDTH, INNER), 1),
            f"{layer}.norm1": ((WIDTH,), None),
            f"{layer}.norm2": ((WIDTH,), None),
        }
    return tensors


class Whole:
    """The usual method: rank 0 gathers a tensor and broadcasts it to the engine, which keeps its part."""

    def __init__(self, dist, backend):
        self.dist = dist
        self.trainer = dist.new_group(TRAINER, backend=backend)
        self.out = dist.new_group((0, *ENGINE), backend=backend)

    def run(self, tensors, before, after):
        import torch

        rank = self.dist.get_rank()
        for name, (shape, dim) in tensors.items():
            whole = torch.empty(shape, dtype=torch.bfloat16) if rank != 1 else None
            if rank in TRAINER:
                halves = list(whole.chunk(2)) if rank == 0 else None
                self.dist.gather(before[name], halves, dst=0, group=self.trainer)
            if rank != 1:
                self.dist.broadcast(whole, src=0, group=self.out)
            if rank in ENGINE:
                after[name].copy_(whole if dim is None else whole.chunk(2, dim)[rank - ENGINE[0]])


def rank_main(rank, options, folder):
    groups = ranks.join(rank, options.ranks, folder, "gloo")
    import torch
    import torch.distributed as dist

    import unisono
    from unisono.torch.experts import _connect

    tensors = model(options.layers)
    before, after, expected = {}, {}, {}
    for index, (name, (shape, dim)) in enumerate(tensors.items()):
        torch.manual_seed(index)
        whole = torch.randn(shape).to(torch.bfloat16)
        if rank in TRAINER:
            before[name] = whole.chunk(2)[rank].contiguous()
        else:
            expected[name] = (whole if dim is None else whole.chunk(2, dim)[rank - ENGINE[0]]).contiguous()
            after[name] = torch.empty_like(expected[name])
    layouts = {
        name: (torch.bfloat16, shape, "t=2 on 0-1: t=shard(0)", "tp=2 on 2-3" + (f": tp=shard({dim})" if dim is not None else ""))
        for name, (shape, dim) in tensors.items()
    }
    comm = _connect(groups["unisono"])
    moves = unisono.reshard.Reshard(comm, layouts)
    gloo, own = Whole(dist, "gloo"), Whole(dist, "unisono")
    ways = {
        "reshard": lambda: moves.run(before, after),
        "gather and broadcast over gloo": lambda: gloo.run(tensors, before, after),
        "gather and broadcast over unisono": lambda: own.run(tensors, before, after),
    }
    times = {way: [] for way in ways}
    for turn in range(options.rounds + 1):  # the first round is warm-up
        for way, call in ways.items():
            for tensor in after.values():
                tensor.zero_()
            dist.barrier()
            begin = time.perf_counter()
            call()
            took = torch.tensor([time.perf_counter() - begin])
            dist.all_reduce(took, dist.ReduceOp.MAX)
            if turn > 0:
                times[way].append(took.item())
            for name, tensor in after.items():
                assert torch.equal(tensor, expected[name]), f"{way} gives other values for {name}"
    if rank == 0:
        count = sum(torch.Size(shape).numel() for shape, _ in tensors.values())
        print(f"{count / 1e6:.0f} M parameters in {len(tensors)} tensors, bf16, {options.rounds} rounds;"
              f" load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")  # fmt: skip
        for way, took in times.items():
            ratio = statistics.median(a / b for a, b in zip(times["reshard"], took, strict=True))
            print(f"{way:<34} {1e3 * statistics.median(took):8.0f} ms   reshard / this: {ratio:.2f}", flush=True)
    moves.close()
    comm.close()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    options.ranks = len(TRAINER) + len(ENGINE)
    return ranks.start(rank_main, options)


if __name__ == "__main__":
    raise SystemExit(main())
