"""PyTorch's TokenSwitch (2.14 and newer) over an ExpertExchange, for processes without GPUs."""

import torch
from torch.distributed import _token_switch

from unisono.expert import ExpertExchange
from unisono.torch.experts import _connect

__all__ = ["TokenSwitchUnisono"]

LAYOUTS = {"flat": "rank_major", "expert_major": "expert_major"}  # TokenSwitch's name: the exchange's name


class _Handle:
    """A routing, its exchange and its layout. most_rows: the largest number of rows on any rank."""

    def __init__(self, exchange, made, layout, most_rows):
        self.exchange, self.made, self.layout, self.most_rows = exchange, made, layout, most_rows


class TokenSwitchUnisono(_token_switch.TokenSwitch):
    """Routes tokens to experts on other ranks. Experts are assigned to ranks in equal blocks.

        switch = TokenSwitchUnisono(group, num_experts, max_dispatch, max_recv, max_token_bytes)
        routing = switch.create_routing(topk_idx, layout="flat")     # -1: no expert
        rows, weights, experts = switch.dispatch(routing, tokens, topk_weights, max_recv)
        sums = switch.combine(routing, outputs)

    flat: one row for each token that chose an expert of this rank. weights and experts are
    [rows, k]. experts has local numbers; -1: the expert is not on this rank.
    expert_major: one row for each token and expert, ordered by expert. weights is [rows].

    combine() adds the rows of each token. The caller must apply the weights. Rows after the
    received rows are zero. All calls are collective over the group, and tokens are on the CPU. If
    there are more tokens or rows than the limits allow, all ranks raise ValueError with the number,
    before anything is sent.
    """

    def __init__(
        self, process_group, num_experts, max_dispatch_tokens_per_rank, max_recv_tokens_per_rank, max_token_bytes
    ):
        self._comm = _connect(process_group)
        if num_experts % self._comm.size:
            raise ValueError(f"TokenSwitchUnisono: {self._comm.size} ranks do not divide {num_experts} experts")
        self._experts = num_experts
        self._max_dispatch = max_dispatch_tokens_per_rank
        self._max_recv_tokens_per_rank = max_recv_tokens_per_rank
        self._max_token_bytes = max_token_bytes
        self._exchanges = {}  # by (layout, k)

    def create_routing(self, topk_idx, per_expert_token_counts=None, *, layout="flat"):
        """Returns the routing for topk_idx[tokens, k]; -1: no expert. Collective."""
        if layout not in LAYOUTS:
            raise ValueError(f"layout must be one of {list(LAYOUTS)}; got {layout!r}")
        tokens, k = topk_idx.shape
        counts = self._of_all(tokens)
        self._limit("routes", counts, self._max_dispatch, "max_dispatch_tokens_per_rank")
        exchange = self._exchange(layout, k)
        made = exchange.route(topk_idx.contiguous())
        rows = self._of_all(made.rows)
        self._limit("receives", rows, self._max_recv_tokens_per_rank, "max_recv_tokens_per_rank")
        handle = _Handle(exchange, made, layout, max(rows))
        if per_expert_token_counts is not None:
            local = torch.from_numpy(made.experts.copy()).flatten()
            found = torch.bincount(local[local >= 0], minlength=self._experts // self._comm.size)
            per_expert_token_counts[: len(found)] = found
        extra = {"layout": layout} if "layout" in _token_switch.Routing.__dataclass_fields__ else {}
        return _token_switch.Routing(handle=handle, topk_idx=topk_idx, **extra)

    def _alloc_dispatch_outputs(self, routing, tokens, topk_weights, max_recv_tokens, H, K):  # noqa: N803
        if routing.handle.layout == "expert_major":
            return tokens.new_zeros(max_recv_tokens, H), topk_weights.new_zeros(max_recv_tokens), None
        return (
            tokens.new_zeros(max_recv_tokens, H),
            topk_weights.new_zeros(max_recv_tokens, K),
            routing.topk_idx.new_zeros(max_recv_tokens, K),
        )

    def _dispatch(self, routing, tokens, topk_weights, out_tokens, out_topk_weights, out_topk_idx):
        handle = routing.handle
        self._fits("dispatch", handle, out_tokens)
        exchange, made = handle.exchange, handle.made
        by_expert = handle.layout == "expert_major"
        tokens = tokens.detach().contiguous()
        weights = topk_weights.detach().float().contiguous()
        rows, factors, chosen = exchange.dispatch(
            made,
            [tokens, weights[..., None] if by_expert else weights, routing.topk_idx.contiguous()],
            one_a_slot=[False, by_expert, False],
        )
        count = made.rows
        out_tokens[:count] = rows
        if by_expert:
            self._put_by_expert(made, factors.flatten(), out_topk_weights, out_topk_idx)
            return
        share = self._experts // self._comm.size
        local = chosen - self._comm.rank * share
        local[(local < 0) | (local >= share)] = -1
        if out_topk_idx is not None:
            out_topk_idx[:count] = local
            out_topk_idx[count:] = -1
        if out_topk_weights is not None:
            out_topk_weights[:count] = factors * (local >= 0)

    def _put_by_expert(self, made, factors, out_topk_weights, out_topk_idx):
        """Writes the outputs for expert_major. PyTorch 2.14 passes outputs [rows, k], because it
        has none for this layout; only column 0 is used."""
        count = made.rows
        if out_topk_weights is not None:
            flat = out_topk_weights.dim() == 1
            (out_topk_weights if flat else out_topk_weights[:, 0])[:count] = factors
        if out_topk_idx is not None:
            out_topk_idx.fill_(-1)
            out_topk_idx[:count, 0] = torch.from_numpy(made.experts.copy()).flatten()

    def _combine(self, routing, expert_tokens, out_tokens):
        handle = routing.handle
        self._fits("combine", handle, expert_tokens)
        out_tokens.copy_(
            handle.exchange.combine(handle.made, expert_tokens.detach()[: handle.made.rows].contiguous())
        )

    def _exchange(self, layout, k):
        if (layout, k) not in self._exchanges:
            self._exchanges[layout, k] = ExpertExchange(
                self._comm, self._experts, k, layout=LAYOUTS[layout], max_tokens=self._max_dispatch,
                row_bytes=self._max_token_bytes,
            )  # fmt: skip
        return self._exchanges[layout, k]

    def _of_all(self, number):
        out = torch.zeros(self._comm.size, dtype=torch.int64)
        self._comm.all_gather(torch.tensor([number]), out)
        return out.tolist()

    def _limit(self, does, counts, limit, name):
        most = max(counts)
        if most > limit:
            raise ValueError(
                f"TokenSwitchUnisono: rank {counts.index(most)} {does} {most} rows, and {name} is {limit}"
            )

    def _fits(self, call, handle, tensor):
        """Checks that the tensor has room for the largest number of rows on any rank, so that all
        ranks raise together."""
        if len(tensor) < handle.most_rows:
            raise ValueError(
                f"TokenSwitchUnisono: {call} with room for {len(tensor)} rows, and a rank has {handle.most_rows}; "
                f"give max_recv_tokens of {handle.most_rows} or more"
            )
