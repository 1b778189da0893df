"""Sharded data parallelism (FSDP2), also hybrid: torchrun --nproc-per-node 4 python/examples/fsdp.py"""

import common
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def average(loss):
    dist.all_reduce(loss, dist.ReduceOp.AVG)
    return loss


def new_sharded(replicas=1):
    """Each block is sharded over the ranks; with replicas, over a part of them."""
    ranks = dist.get_world_size()
    shape, names = ((ranks,), ("shard",))
    if replicas > 1:
        shape, names = (replicas, ranks // replicas), ("replicate", "shard")
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    model = common.new_model()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def main(steps=6, replicas=1):
    model = new_sharded(replicas)
    return common.train(model, steps, dist.get_rank(), dist.get_world_size(), average)


if __name__ == "__main__":
    common.run(main)
