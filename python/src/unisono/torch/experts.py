"""Mixture of experts for PyTorch: dispatch, a callback for the experts, and combine, with gradients."""

import os
import secrets
import weakref

import torch
import torch.distributed as dist
from torch.autograd.function import once_differentiable

import unisono
from unisono.expert import ExpertExchange

__all__ = ["MoEDispatcher"]


class _Dispatch(torch.autograd.Function):
    """Dispatch. Its backward pass is a combine without weights."""

    @staticmethod
    def forward(ctx, tokens, exchange, routing, coding):
        ctx.call = exchange, routing
        return exchange.dispatch(routing, tokens.detach().contiguous(), coding=coding)

    @staticmethod
    @once_differentiable
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
    @once_differentiable
    def backward(ctx, gradient):
        exchange, routing, dtype = ctx.call
        rows, factors = ctx.saved_tensors
        of_rows, of_weights = exchange.combine_backward(
            routing, gradient.contiguous(), rows, factors
        )
        return of_rows, of_weights.to(dtype), None, None, None


class MoEDispatcher:
    """Sends tokens to experts on other ranks and returns the outputs, with gradients.

        dispatcher = MoEDispatcher(experts=64, k=8)            # on all ranks of the group
        out = dispatcher(tokens, chosen, weights, compute)

    tokens: [tokens, hidden], on the CPU. chosen: [tokens, k] of int32 or int64; -1: no expert.
    weights: [tokens, k].
    compute(local, rows): returns the output [n, hidden] of this rank's expert `local` for rows [n,
    hidden]. Local experts are numbered from 0. compute() is called for each local expert, even
    without rows, so that all parameters get a gradient.
    All ranks make the same calls, and then their backward passes, in the same order. Tokens must
    require gradients on all ranks or on none.

    comm: a unisono.Communicator of the ranks of `group`; None: makes a communicator with the
    group's timeout. Its ranks exchange their addresses over the group, and may be on several hosts.
    coding: "i8" or "f8e4m3" sends 8 bits per element. Gradients are not coded.

    Errors: unisono.Error, with the same text on all ranks. Wrong shapes and wrong results of
    compute() raise TypeError or ValueError on one rank, before this rank sends anything. The other
    ranks then wait for its call until the timeout.
    """

    def __init__(self, experts, k, comm=None, group=None, coding="none", **options):
        self.comm = _connect(group) if comm is None else comm
        self.exchange = ExpertExchange(self.comm, experts, k, layout="expert_major", **options)
        self.coding = coding

    def dispatch(self, tokens, chosen):
        """Returns (rows, routing). Expert i of this rank has rows[routing.rows_of_expert(i)]."""
        routing = self.exchange.route(chosen.detach().contiguous())
        return _Dispatch.apply(tokens, self.exchange, routing, self.coding), routing

    def combine(self, rows, routing, weights):
        """Returns [tokens, hidden]: for each token, the weighted sum of its rows."""
        return _Combine.apply(rows, weights, self.exchange, routing, self.coding)

    def __call__(self, tokens, chosen, weights, compute):
        _check(tokens, chosen, weights, self.exchange.k)
        rows, routing = self.dispatch(tokens, chosen)
        outputs, end = [], 0
        for local in range(len(routing.experts_here)):
            part = routing.rows_of_expert(local)
            if part.start > end:
                outputs.append(rows[end : part.start])  # padding, which no token reads
            outputs.append(_output(compute, local, rows[part]))
            end = part.stop
        outputs.append(rows[end:])
        return self.combine(torch.cat(outputs), routing, weights)


def _output(compute, local, rows):
    out = compute(local, rows)
    if not isinstance(out, torch.Tensor) or out.shape != rows.shape:
        what = list(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise ValueError(
            f"MoEDispatcher: the function of expert {local} of this rank gave {what} for rows {list(rows.shape)};"
            " it must give a tensor of their shape"
        )
    return out


def _check(tokens, chosen, weights, k):
    if not all(isinstance(array, torch.Tensor) for array in (tokens, chosen, weights)):
        raise TypeError("MoEDispatcher: tokens, chosen and weights must be tensors of PyTorch")
    if tokens.dim() != 2 or not tokens.is_floating_point() or tokens.device.type != "cpu":
        raise ValueError(
            f"MoEDispatcher: tokens is {list(tokens.shape)} of {tokens.dtype} on {tokens.device}, not"
            " [tokens, hidden] of floats on the CPU; view(-1, hidden) makes it of a batch of sequences"
        )
    for name, array in (("chosen", chosen), ("weights", weights)):
        if array.shape != (len(tokens), k):
            raise ValueError(f"MoEDispatcher: {name} is {list(array.shape)}, not {[len(tokens), k]}: [tokens, k]")


def _connect(group, job="experts"):
    """Makes a communicator of a process group's ranks, which exchange addresses over the group."""
    size, secret = dist.get_world_size(group), [secrets.token_hex(8), secrets.token_hex(16)]
    dist.broadcast_object_list(secret, src=dist.get_global_rank(group or dist.group.WORLD, 0), group=group)
    # A user's token is valid for all jobs. TLS accepts only the user's token, because the group's
    # messages are not encrypted.
    own = os.environ.get("UNISONO_TOKEN") or os.environ.get("UNISONO_TLS", "0") not in ("", "0")

    # The communicator keeps the function alive, but must not keep the group alive.
    held = (lambda: None) if group is None else weakref.ref(group)

    def exchange(mine):
        cards = [None] * size
        dist.all_gather_object(cards, mine, group=held())
        return cards

    return unisono.connect(
        rank=dist.get_rank(group),
        size=size,
        job=f"{job}-{secret[0]}",  # other users of this host may see the name
        token="" if own else secret[1],
        bootstrap=exchange,
        **_limits(group),
    )


def _limits(group):
    """Returns the options that apply the group's timeout, if any, to connect() and to each call."""
    group, cpu = group or dist.group.WORLD, torch.device("cpu")
    backend = group._get_backend(cpu) if cpu in group._device_types else None
    timeout = getattr(getattr(backend, "options", None), "_timeout", None)
    if timeout is None:
        return {}
    limit_ms = min(int(timeout.total_seconds() * 1000), 2**31 - 1)
    return {"connect_timeout_ms": limit_ms, "timeout_ms": limit_ms}
