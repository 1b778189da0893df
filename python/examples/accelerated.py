"""accelerate over a group that is there before it: torchrun --nproc-per-node 2 python/examples/accelerated.py"""

import common
import torch
from torch.utils.data import DataLoader, TensorDataset


def main(steps=6):
    """The mean loss of each step. accelerate uses the default group, and names no backend."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    batches = [common.batch(step) for step in range(steps)]
    data = TensorDataset(*(torch.cat(part) for part in zip(*batches)))
    loader = DataLoader(data, batch_size=common.BATCH // accelerator.num_processes)
    model = common.new_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    losses = []
    for tokens, following in loader:
        loss = common.loss_of(model(tokens), following)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        losses.append(accelerator.gather(loss.detach()[None]).mean().item())
    return losses


if __name__ == "__main__":
    common.run(main)
