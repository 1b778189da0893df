"""A job that torchrun starts again after a death, from its last checkpoint:

torchrun --nproc-per-node 2 --max-restarts 1 python/examples/elastic.py FOLDER
"""

import os
import signal
import sys
from pathlib import Path

import common
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.nn.parallel import DistributedDataParallel


def main(folder, steps=6, dies_at=3):
    """The steps that this start ran. The last rank of the first start kills itself at `dies_at`."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(common.new_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = {"model": model.state_dict(), "step": torch.zeros(1, dtype=torch.int64)}
    latest = max(Path(folder).glob("step-*/.metadata"), default=None)  # written last, by one rank
    if latest is not None:
        checkpoint.load(state, checkpoint_id=latest.parent)
    dist.barrier()  # nobody writes before all have looked
    begin = int(state["step"])
    for step in range(begin, steps):
        if step == dies_at and rank == ranks - 1 and os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        tokens, following = common.batch(step, rank, ranks)
        optimizer.zero_grad()
        common.loss_of(model(tokens), following).backward()
        optimizer.step()
        state["step"].fill_(step + 1)
        checkpoint.save(state, checkpoint_id=Path(folder, f"step-{step + 1}"))
    return list(range(begin, steps))


if __name__ == "__main__":
    common.run(lambda: main(*sys.argv[1:]))
