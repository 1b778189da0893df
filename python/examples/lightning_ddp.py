"""Lightning's DDP strategy, which takes the backend by its name:

torchrun --nproc-per-node 2 python/examples/lightning_ddp.py
"""

import common
import torch
from torch.utils.data import DataLoader


def main(steps=6, ranks=2):
    """The loss of each step, averaged over the ranks by Lightning."""
    import pytorch_lightning as lightning
    from pytorch_lightning.strategies import DDPStrategy

    class Learner(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model, self.losses = common.new_model(), []

        def train_dataloader(self):
            rank, ranks = self.global_rank, self.trainer.world_size
            return DataLoader([common.batch(step, rank, ranks) for step in range(steps)], batch_size=None)

        def training_step(self, batch, number):
            loss = common.loss_of(self.model(batch[0]), batch[1])
            self.losses.append(self.all_gather(loss.detach()).mean().item())
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=3e-3)

    trainer = lightning.Trainer(
        accelerator="cpu", devices=ranks, strategy=DDPStrategy(process_group_backend="unisono"), max_steps=steps,
        use_distributed_sampler=False, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    learner = Learner()
    trainer.fit(learner)
    return learner.losses


if __name__ == "__main__":
    print(f"lightning_ddp: {main()}")
