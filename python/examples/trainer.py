"""The Trainer of transformers, data parallel: torchrun --nproc-per-node 2 python/examples/trainer.py"""

import sys

import common
import huggingface
import torch
import torch.distributed as dist
from torch.utils.data import Dataset


class Windows(Dataset):
    """The batches of some steps, one window of text after the other."""

    def __init__(self, steps):
        self.tokens = torch.cat([common.batch(step)[0] for step in range(steps)])

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def main(folder=None, steps=4):
    """The loss before and after, and a weight. The Trainer uses the group that is there, or asks for gloo."""
    from transformers import Trainer, TrainingArguments

    folder = huggingface.shared_model(folder)
    rows = common.BATCH // dist.get_world_size()
    arguments = TrainingArguments(
        output_dir=folder, use_cpu=True, max_steps=steps, per_device_train_batch_size=rows,
        per_device_eval_batch_size=rows, learning_rate=3e-3, report_to="none", save_strategy="no",
        logging_strategy="no", disable_tqdm=True, train_sampling_strategy="sequential",
    )  # fmt: skip
    data = Windows(steps)
    trainer = Trainer(huggingface.load_model(folder), arguments, train_dataset=data, eval_dataset=data)
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    return before, trainer.evaluate()["eval_loss"], trainer.model.lm_head.weight[0, 0].item()


if __name__ == "__main__":
    common.run(lambda: main(*sys.argv[1:]))
