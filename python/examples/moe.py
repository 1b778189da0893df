"""A mixture of experts, two on each rank; unisono brings tokens to theirs, and back:

torchrun --nproc-per-node 2 python/examples/moe.py
"""

import common
import torch
import torch.distributed as dist
from torch import nn

from unisono.torch import MoEDispatcher

EXPERTS_OF_RANK = 2
CHOICES = 2


def new_router_and_experts(ranks):
    torch.manual_seed(11)
    router = nn.Linear(common.WIDTH, EXPERTS_OF_RANK * ranks, bias=False)
    return router, [common.FeedForward() for _ in range(EXPERTS_OF_RANK * ranks)]


def tokens_of(rank):
    generator = torch.Generator().manual_seed(rank)
    count = 20 + 7 * rank  # another number on each rank
    return torch.randn(count, common.WIDTH, generator=generator)


def choose(router, tokens):
    """The experts of each token, and how much each of them counts."""
    return router(tokens).softmax(1).topk(CHOICES, dim=1)


class MixtureOfExperts(nn.Module):
    def __init__(self):
        super().__init__()
        ranks = dist.get_world_size()
        self.router, experts = new_router_and_experts(ranks)
        first = EXPERTS_OF_RANK * dist.get_rank()
        self.experts = nn.ModuleList(experts[first : first + EXPERTS_OF_RANK])
        self.dispatcher = MoEDispatcher(len(experts), CHOICES)

    def forward(self, x):
        weights, chosen = choose(self.router, x)
        return self.dispatcher(x, chosen, weights, lambda local, rows: self.experts[local](rows))


def main():
    """The outputs for this rank's tokens, and the gradients of its tokens, router and experts."""
    model = MixtureOfExperts()
    x = tokens_of(dist.get_rank()).requires_grad_()
    out = model(x)
    out.square().sum().backward()
    gradients = [expert.up.weight.grad for expert in model.experts]
    return out.detach(), x.grad, model.router.weight.grad, *gradients


def alone(ranks):
    """The same in one process, for all ranks."""
    _, experts = new_router_and_experts(ranks)
    results = []
    for rank in range(ranks):
        router, _ = new_router_and_experts(ranks)
        x = tokens_of(rank).requires_grad_()
        weights, chosen = choose(router, x)
        outs = [
            sum(w * experts[e](row) for w, e in zip(ws, es.tolist()))
            for row, ws, es in zip(x, weights, chosen)
        ]
        out = torch.stack(outs)
        out.square().sum().backward()
        results.append((out.detach(), x.grad, router.weight.grad))
    gradients = [expert.up.weight.grad for expert in experts]  # of the tokens of all ranks
    return [
        (*result, *gradients[EXPERTS_OF_RANK * rank : EXPERTS_OF_RANK * (rank + 1)])
        for rank, result in enumerate(results)
    ]


if __name__ == "__main__":
    common.run(lambda: main()[0].shape)
