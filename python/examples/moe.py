"""A mixture of experts, one on each rank; tokens go to theirs by all_to_all_single, and back:

torchrun --nproc-per-node 2 python/examples/moe.py
"""

import common
import torch
import torch.distributed as dist
from torch import nn


class Exchange(torch.autograd.Function):
    """all_to_all_single with uneven splits, also for gradients."""

    @staticmethod
    def forward(ctx, x, sent, received):
        ctx.splits = sent, received
        out = x.new_empty(sum(received), x.shape[1])
        dist.all_to_all_single(out, x.contiguous(), received, sent)
        return out

    @staticmethod
    def backward(ctx, gradient):
        sent, received = ctx.splits
        back = gradient.new_empty(sum(sent), gradient.shape[1])
        dist.all_to_all_single(back, gradient.contiguous(), sent, received)
        return back, None, None


def new_experts(count):
    torch.manual_seed(11)
    return [common.FeedForward() for _ in range(count)]


def tokens_of(rank):
    generator = torch.Generator().manual_seed(rank)
    count = 20 + 7 * rank  # another number on each rank
    return torch.randn(count, common.WIDTH, generator=generator)


def expert_of(tokens, ranks):
    """Which expert each token goes to; far from evenly."""
    return (tokens.sum(1).abs() * 3).long().clamp(max=ranks - 1)


class MixtureOfExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.expert = new_experts(dist.get_world_size())[dist.get_rank()]

    def forward(self, x):
        ranks = dist.get_world_size()
        choice = expert_of(x, ranks)
        order = choice.argsort(stable=True)
        sent = torch.bincount(choice, minlength=ranks)
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        sent, received = sent.tolist(), received.tolist()
        mine = Exchange.apply(x[order], sent, received)
        back = Exchange.apply(self.expert(mine), received, sent)
        return torch.empty_like(back).index_copy(0, order, back)


def main():
    """The outputs for this rank's tokens, and the gradients of its tokens and its expert."""
    model = MixtureOfExperts()
    x = tokens_of(dist.get_rank()).requires_grad_()
    out = model(x)
    out.square().sum().backward()
    return out.detach(), x.grad, model.expert.up.weight.grad


def alone(ranks):
    """The same in one process, for all ranks."""
    experts = new_experts(ranks)
    inputs = [tokens_of(rank).requires_grad_() for rank in range(ranks)]
    outs = []
    for x in inputs:
        choice = expert_of(x, ranks)
        outs.append(torch.stack([experts[e](row) for e, row in zip(choice.tolist(), x)]))
    sum(out.square().sum() for out in outs).backward()
    return [
        (outs[rank].detach(), inputs[rank].grad, experts[rank].up.weight.grad)
        for rank in range(ranks)
    ]


if __name__ == "__main__":
    common.run(lambda: main()[0].shape)
