"""Pipelining: torchrun --nproc-per-node 2 python/examples/pipeline.py"""

import common
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)

MICROBATCHES = 4


class Part(nn.Module):
    """One of the transformer's layers; the first has the embedding too, the last the head."""

    def __init__(self, stage, stages):
        super().__init__()
        whole = common.new_model(layers=stages)
        first, last = stage == 0, stage == stages - 1
        self.begin = nn.ModuleList([whole.embedding]) if first else None
        self.position = whole.position if first else None
        self.block = whole.blocks[stage]
        self.head = whole.head if last else None

    def forward(self, x):
        if self.begin is not None:
            x = self.begin[0](x) + self.position
        x = self.block(x)
        return x if self.head is None else self.head(x)


def stages_of(kind, ranks):
    return 2 * ranks if kind == "interleaved" else ranks


def new_schedule(kind):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    stages = stages_of(kind, ranks)
    mine = []
    for stage in range(rank, stages, ranks):
        mine.append(PipelineStage(Part(stage, stages), stage, stages, torch.device("cpu")))
    if kind == "interleaved":
        return ScheduleInterleaved1F1B(mine, MICROBATCHES, loss_fn=common.loss_of), mine
    schedule = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}[kind]
    return schedule(mine[0], MICROBATCHES, loss_fn=common.loss_of), mine


def main(steps=4, kind="1f1b"):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    schedule, stages = new_schedule(kind)
    parameters = [p for stage in stages for p in stage.submod.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-3)
    losses = []
    for step in range(steps):
        tokens, following = common.batch(step)
        optimizer.zero_grad()
        parts = []
        inputs = (tokens,) if rank == 0 else ()
        if rank == ranks - 1:
            schedule.step(*inputs, target=following, losses=parts)
        else:
            schedule.step(*inputs)
        optimizer.step()
        loss = torch.stack(parts).mean().detach() if parts else torch.zeros(())
        dist.broadcast(loss, ranks - 1)
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    common.run(main)
