"""Distributed checkpoints of a sharded model: torchrun --nproc-per-node 2 python/examples/checkpoint.py"""

import sys
import tempfile

import common
import fsdp
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)


def main(folder=None, asynchronous=False):
    """Trains, saves, loads into a new model; returns the whole of it."""
    if folder is None:
        shared = [tempfile.mkdtemp(prefix="unisono-example-")]
        dist.broadcast_object_list(shared, src=0)
        folder = shared[0]
    model = fsdp.new_sharded()
    common.train(model, 2, dist.get_rank(), dist.get_world_size())
    if asynchronous:  # copies the weights, and writes them in a thread that has a group of its own
        group = dist.new_group()
        saved = checkpoint.async_save(
            {"model": get_model_state_dict(model)}, checkpoint_id=folder, process_group=group
        )
        common.train(model, 1, dist.get_rank(), dist.get_world_size())
        saved.result()
    else:
        checkpoint.save({"model": get_model_state_dict(model)}, checkpoint_id=folder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    fresh = fsdp.new_sharded()
    state = {"model": get_model_state_dict(fresh)}
    checkpoint.load(state, checkpoint_id=folder)
    set_model_state_dict(fresh, state["model"])
    whole = get_model_state_dict(fresh, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    return {name: tensor.clone() for name, tensor in whole.items()}


if __name__ == "__main__":
    common.run(lambda: f"{len(main(*sys.argv[1:]))} tensors were saved and loaded")
