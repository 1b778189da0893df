"""Ulysses sequence parallelism: the sequence is spread over the ranks, attention needs all of it, so
all_to_all turns parts of the sequence into parts of the heads, and back:

torchrun --nproc-per-node 2 python/examples/ulysses.py
"""

import common
import torch
import torch.distributed as dist
from ring_attention import inputs
from torch.nn import functional


class Swap(torch.autograd.Function):
    """Splits `away` over the ranks and gathers `here`; its gradient goes the other way."""

    @staticmethod
    def forward(ctx, x, away, here):
        ctx.dims = away, here
        sent = torch.stack(x.chunk(dist.get_world_size(), dim=away))
        got = torch.empty_like(sent)
        dist.all_to_all_single(got, sent)
        return torch.cat(got.unbind(0), dim=here)

    @staticmethod
    def backward(ctx, gradient):
        away, here = ctx.dims
        return Swap.apply(gradient, here, away), None, None


HEADS, SEQUENCE = 1, 2  # dimensions of (batch, heads, sequence, width)


def attention(queries, keys, values):
    """Causal attention: each rank has some of the positions, and of the outcome the same ones."""
    whole = [Swap.apply(tensor, HEADS, SEQUENCE) for tensor in (queries, keys, values)]
    mixed = functional.scaled_dot_product_attention(*whole, is_causal=True)
    return Swap.apply(mixed, SEQUENCE, HEADS)


def main():
    """The outcome for this rank's positions, and the gradients of its queries, keys and values."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = [
        tensor.chunk(ranks, dim=SEQUENCE)[rank].contiguous().requires_grad_() for tensor in inputs()
    ]
    out = attention(*mine)
    out.square().sum().backward()
    return [out.detach(), *(tensor.grad for tensor in mine)]


def alone():
    """The same in one process, for the whole sequence."""
    whole = [tensor.requires_grad_() for tensor in inputs()]
    out = functional.scaled_dot_product_attention(*whole, is_causal=True)
    out.square().sum().backward()
    return [out.detach(), *(tensor.grad for tensor in whole)]


if __name__ == "__main__":
    common.run(lambda: main()[0].shape)
