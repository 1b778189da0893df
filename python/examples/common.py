"""What the examples share: a small transformer that learns to continue a licence text."""

import os
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

CONTEXT, WIDTH, HEADS, LAYERS = 32, 32, 4, 2
BATCH = 8  # of all ranks together


def text():
    """Bytes of a text that every Debian has; elsewhere, of this file."""
    for path in ("/usr/share/common-licenses/GPL-3", __file__):
        if Path(path).exists():
            return torch.tensor(list(Path(path).read_bytes()), dtype=torch.int64)
    raise FileNotFoundError("no text to learn from")


def batch(step, rank=0, ranks=1):
    """This rank's part of a step's batch: inputs and what follows each of them."""
    data = text()
    generator = torch.Generator().manual_seed(step)
    begins = torch.randint(0, len(data) - CONTEXT - 1, (BATCH,), generator=generator)
    mine = begins[rank * BATCH // ranks : (rank + 1) * BATCH // ranks]
    windows = torch.stack([data[begin : begin + CONTEXT + 1] for begin in mine.tolist()])
    return windows[:, :-1], windows[:, 1:]


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.down(functional.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.feed_forward = FeedForward()

    def forward(self, x):
        length = x.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        y = self.attention_norm(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.feed_forward(self.norm(x))


class Transformer(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embedding = nn.Embedding(256, WIDTH)
        self.position = nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.head = nn.Linear(WIDTH, 256)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def new_model(layers=LAYERS):
    """The same weights on every rank and in every run."""
    torch.manual_seed(7)
    return Transformer(layers)


def loss_of(logits, following):
    return functional.cross_entropy(logits.flatten(0, -2), following.flatten())


def train(model, steps, rank=0, ranks=1, mean=lambda loss: loss, learning_rate=3e-3):
    """The mean loss of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    losses = []
    for step in range(steps):
        tokens, following = batch(step, rank, ranks)
        loss = loss_of(model(tokens), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(mean(loss.detach().clone()).item())
    return losses


def run(body):
    """Runs an example under torchrun: joins, prints what rank 0 got, leaves."""
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(os.environ.get("EXAMPLE_BACKEND", "unisono"))
    result = body()
    if dist.get_rank() == 0:
        print(f"{Path(body.__code__.co_filename).stem}: {result}")
    dist.destroy_process_group()
