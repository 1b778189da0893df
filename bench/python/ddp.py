#!/usr/bin/env python3
"""Times a training step under DistributedDataParallel with unisono and with gloo, in turns:

    build/venv/bin/python bench/python/ddp.py --ranks 2

"alone" is the step under DistributedDataParallel without communication; the difference is communication. Then
a profile of one step shows how much of each all_reduce overlapped the backward pass; --trace saves that
profile.
"""

import argparse
import statistics
import time

import ranks


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


def overlap(model, x, name):
    """Profiles a step. Returns the profile, each all_reduce as (bytes, begin, end), and the end of the
    backward pass, in ms since its begin. The profiler makes the step slower."""
    import torch

    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as profile:
        loss = model(x).square().mean()
        with torch.profiler.record_function("backward"):
            loss.backward()
    events = profile.events()
    whole = next(event for event in events if event.name == "backward")
    # DistributedDataParallel waits for the last bucket within backward().
    compute = [e.time_range.end for e in events if e.name.startswith("autograd::engine::evaluate")]
    origin = whole.time_range.start
    rows = [
        (event.input_shapes[0][0] * 4 if event.input_shapes and event.input_shapes[0] else 0,
         (event.time_range.start - origin) / 1e3, (event.time_range.end - origin) / 1e3)
        for event in events if event.name == f"{name}:all_reduce"
    ]  # fmt: skip
    return profile, sorted(rows, key=lambda row: row[1]), (max(compute) - origin) / 1e3


def show_overlap(model, x, name, options, rank):
    profile, rows, computed = overlap(model, x, name)
    if rank != 0:
        return
    if options.trace:
        profile.export_chrome_trace(f"{options.trace}.{name}.json")
    print(f"{name}: the gradients are computed after {computed:.1f} ms")
    for size, begin, end in rows:
        hidden = max(0.0, min(end, computed) - begin)
        print(f"  all_reduce {size / 2**20:6.1f} MiB  {begin:7.1f} to {end:7.1f} ms, "
              f"{100 * hidden / (end - begin):3.0f} % beside the backward pass")  # fmt: skip


def rank_main(rank, options, folder):
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    groups = ranks.join(rank, options.ranks, folder)
    models = {
        name: DistributedDataParallel(
            new_model(torch, options.layers, options.width), process_group=group
        )
        for name, group in groups.items()
    }
    models["alone"] = DistributedDataParallel(new_model(torch, options.layers, options.width))
    models["alone"].register_comm_hook(None, no_communication)
    torch.manual_seed(rank)
    x = torch.randn(options.batch, options.width)
    times = {"unisono": [], "gloo": [], "alone": []}
    for turn in range(options.rounds + 2):  # two warm-up rounds
        for name in times:
            dist.barrier()
            took = step_time(models[name], x)
            slowest = torch.tensor([took])
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
            if turn >= 2:
                times[name].append(slowest.item() * 1e3)
    for ours, theirs in zip(models["unisono"].parameters(), models["gloo"].parameters()):
        torch.testing.assert_close(ours.grad, theirs.grad)
    if rank == 0:
        parameters = sum(p.numel() for p in models["gloo"].parameters())
        print(f"{parameters / 1e6:.1f} M parameters, {options.ranks} ranks, milliseconds a step:")
        medians = {name: statistics.median(values) for name, values in times.items()}
        for name, median in medians.items():
            print(f"  {name:8} {median:8.1f}, of it communication {median - medians['alone']:8.1f}")
    for name in groups:
        dist.barrier()
        show_overlap(models[name], x, name, options, rank)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--trace", help="write traces for chrome://tracing to TRACE.unisono.json, ...")
    return ranks.start(rank_main, parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
