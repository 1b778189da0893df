"""Tensor parallelism, and sequence parallelism with it, by DTensor:

torchrun --nproc-per-node 2 python/examples/tensor_parallel.py
"""

import common
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)


def main(steps=6, sequence=False):
    """The feed-forward layers are split over the ranks, which all see the whole batch."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = common.new_model()
    for block in model.blocks:
        plan = {"feed_forward.up": ColwiseParallel(), "feed_forward.down": RowwiseParallel()}
        if sequence:  # the normalisation before works on a part of the sequence on each rank
            sharded = PrepareModuleInput(
                input_layouts=(Replicate(),), desired_input_layouts=(Shard(1),), use_local_output=False
            )
            parallelize_module(block, mesh, {"norm": sharded})
            plan["norm"] = SequenceParallel()
            plan["feed_forward"] = PrepareModuleInput(
                input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)
            )
        parallelize_module(block, mesh, plan)
    return common.train(model, steps)


if __name__ == "__main__":
    common.run(main)
