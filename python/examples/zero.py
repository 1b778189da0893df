"""ZeroRedundancyOptimizer: each rank keeps the optimizer's state of a part of the parameters.

torchrun --nproc-per-node 2 python/examples/zero.py
"""

import common
import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def main(steps=6):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(common.new_model())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=3e-3)
    losses = []
    for step in range(steps):
        tokens, following = common.batch(step, rank, ranks)
        loss = common.loss_of(model(tokens), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        losses.append(mean.item())
    return losses


if __name__ == "__main__":
    common.run(main)
