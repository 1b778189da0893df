"""Starts the ranks of a benchmark, and ends them if one of them fails."""

import multiprocessing
import os
import tempfile
import time


def join(rank, ranks, folder, default="unisono"):
    """Joins a rank. Returns the world of `default`, and a group of all ranks with the other backend (unisono
    or gloo)."""
    import warnings

    import torch
    import torch.distributed as dist

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    store = dist.FileStore(os.path.join(folder, "store"), ranks)
    dist.init_process_group(default, store=store, rank=rank, world_size=ranks)
    other = "gloo" if default == "unisono" else "unisono"
    return {default: dist.group.WORLD, other: dist.new_group(backend=other)}


def start(body, options):
    """Calls body(rank, options, folder) in one process per rank. Returns the greatest exit status."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=body, args=(rank, options, folder))
            for rank in range(options.ranks)
        ]
        for rank in ranks:
            rank.start()
        while any(rank.is_alive() for rank in ranks):
            if any(rank.exitcode for rank in ranks):  # the others would wait for this rank
                time.sleep(1)
                for rank in ranks:
                    rank.terminate()
            time.sleep(0.05)
    return max(abs(rank.exitcode) for rank in ranks)
