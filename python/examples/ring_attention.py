"""Attention over a sequence that is spread over the ranks: keys and values go around in a ring.

torchrun --nproc-per-node 2 python/examples/ring_attention.py
"""

import common
import torch
import torch.distributed as dist


def rotated(tensor):
    """The tensor of the rank before this one; both directions are posted before any wait."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    out = torch.empty_like(tensor)
    works = [dist.isend(tensor, (rank + 1) % ranks), dist.irecv(out, (rank - 1) % ranks)]
    for work in works:
        work.wait()
    return out


def ring_attention(queries, keys, values):
    """softmax(q k^T / sqrt(d)) v over the keys of all ranks; the softmax is kept running."""
    scale = queries.shape[-1] ** -0.5
    highest = torch.full((*queries.shape[:-1], 1), float("-inf"))
    weight = torch.zeros_like(highest)
    sums = torch.zeros_like(queries)
    for step in range(dist.get_world_size()):
        scores = queries @ keys.transpose(-1, -2) * scale
        top = torch.maximum(highest, scores.amax(-1, keepdim=True))
        shares = (scores - top).exp()
        rescale = (highest - top).exp()
        sums = sums * rescale + shares @ values
        weight = weight * rescale + shares.sum(-1, keepdim=True)
        highest = top
        if step + 1 < dist.get_world_size():
            keys, values = rotated(keys), rotated(values)
    return sums / weight


def inputs(length=64):
    torch.manual_seed(3)
    return [torch.randn(2, common.HEADS, length, 16) for _ in range(3)]


def main():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = [tensor.chunk(ranks, dim=2)[rank].contiguous() for tensor in inputs()]
    return ring_attention(*mine)


if __name__ == "__main__":
    common.run(lambda: main().shape)
