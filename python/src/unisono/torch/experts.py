"""Mixture of experts for PyTorch: dispatch, the experts' callback, combine, with gradients."""

import os
import secrets

import torch
import torch.distributed as dist

import unisono
from unisono.experts import Exchange

__all__ = ["MoEDispatcher"]


class _Dispatch(torch.autograd.Function):
    """Its gradient is combine without weights."""

    @staticmethod
    def forward(ctx, tokens, exchange, routing, coding):
        ctx.call = exchange, routing
        return exchange.dispatch(routing, tokens.detach().contiguous(), coding=coding)

    @staticmethod
    def backward(ctx, gradient):
        exchange, routing = ctx.call
        return exchange.combine(routing, gradient.contiguous()), None, None, None


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weights, exchange, routing, coding):
        rows = rows.detach().contiguous()
        factors = weights.detach().float().contiguous()
        ctx.call = exchange, routing, weights.dtype
        ctx.save_for_backward(rows, factors)
        return exchange.combine(routing, rows, factors, coding=coding)

    @staticmethod
    def backward(ctx, gradient):
        exchange, routing, dtype = ctx.call
        rows, factors = ctx.saved_tensors
        of_rows, of_weights = exchange.combine_backward(
            routing, gradient.contiguous(), rows, factors
        )
        return of_rows, of_weights.to(dtype), None, None, None


class MoEDispatcher:
    """Brings tokens to experts on other ranks and their outputs back, for autograd.

        dispatcher = MoEDispatcher(experts=64, k=8)            # on all ranks of the group
        out = dispatcher(tokens, chosen, weights, compute)

    tokens: [tokens, hidden], on the CPU. chosen: [tokens, k] of int32 or int64; -1: none. weights:
    [tokens, k]. compute(local, rows): the output [n, hidden] of this rank's expert `local`, counted
    from 0, for rows [n, hidden]; called for each of them, also with no rows, so that all parameters
    get a gradient. Every rank makes each call, and the backward pass of all that have had a forward
    one, in the same order, with tokens that require gradients on all ranks or on none.

    comm: a unisono.Communicator of the ranks of `group`; None: a new one, whose ranks meet over the
    group, on one host or several.
    coding: "i8" or "f8e4m3" sends 8 bits an element; gradients travel as they are.
    """

    def __init__(self, experts, k, comm=None, group=None, coding="none", **options):
        self.comm = _connect(group) if comm is None else comm
        self.exchange = Exchange(self.comm, experts, k, layout="expert_major", **options)
        self.coding = coding

    def dispatch(self, tokens, chosen):
        """(rows, routing): rows[routing.rows_of_expert(i)] are for the expert i of this rank."""
        routing = self.exchange.route(chosen.detach().contiguous())
        return _Dispatch.apply(tokens, self.exchange, routing, self.coding), routing

    def combine(self, rows, routing, weights):
        """[tokens, hidden]: the rows of each token, summed with its weights."""
        return _Combine.apply(rows, weights, self.exchange, routing, self.coding)

    def __call__(self, tokens, chosen, weights, compute):
        rows, routing = self.dispatch(tokens, chosen)
        outputs, end = [], 0
        for local in range(len(routing.experts_here)):
            part = routing.rows_of_expert(local)
            if part.start > end:
                outputs.append(rows[end : part.start])  # padding: no place reads it
            outputs.append(compute(local, rows[part]))
            end = part.stop
        outputs.append(rows[end:])
        return self.combine(torch.cat(outputs), routing, weights)


def _connect(group):
    """A communicator of the ranks of a process group, which meet over it."""
    size, secret = dist.get_world_size(group), [secrets.token_hex(16)]
    dist.broadcast_object_list(secret, src=dist.get_global_rank(group or dist.group.WORLD, 0), group=group)
    # A token of one's own is for all jobs; TLS takes no other, as the group's messages are not encrypted.
    own = os.environ.get("UNISONO_TOKEN") or os.environ.get("UNISONO_TLS", "0") not in ("", "0")

    def exchange(mine):
        cards = [None] * size
        dist.all_gather_object(cards, mine, group=group)
        return cards

    return unisono.connect(
        rank=dist.get_rank(group),
        size=size,
        job=f"experts-{secret[0][:16]}",
        token="" if own else secret[0],
        exchange=exchange,
    )
