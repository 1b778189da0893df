"""Data parallelism: torchrun --nproc-per-node 2 python/examples/ddp.py"""

import common
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def average(loss):
    dist.all_reduce(loss, dist.ReduceOp.AVG)
    return loss


def main(steps=6):
    model = DistributedDataParallel(common.new_model())
    return common.train(model, steps, dist.get_rank(), dist.get_world_size(), average)


if __name__ == "__main__":
    common.run(main)
