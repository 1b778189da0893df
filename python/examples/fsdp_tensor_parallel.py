"""FSDP2 and tensor parallelism on a 2-D mesh, as torchtitan combines them:

torchrun --nproc-per-node 4 python/examples/fsdp_tensor_parallel.py
"""

import common
import fsdp
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def main(steps=6, split=2):
    """`split` ranks share the feed-forward layers; groups of them shard all weights and the batch."""
    mesh = init_device_mesh("cpu", (dist.get_world_size() // split, split), mesh_dim_names=("shard", "split"))
    model = common.new_model()
    for block in model.blocks:
        plan = {"feed_forward.up": ColwiseParallel(), "feed_forward.down": RowwiseParallel()}
        parallelize_module(block, mesh["split"], plan)
        fully_shard(block, mesh=mesh["shard"])
    fully_shard(model, mesh=mesh["shard"])
    shard = mesh["shard"]
    return common.train(model, steps, shard.get_local_rank(), shard.size(), fsdp.average)


if __name__ == "__main__":
    common.run(main)
