"""vLLM's dispatch and combine of tokens over unisono's expert exchange. Does not need vLLM.

A token is sent once to each rank that has one of its experts, and each of these ranks returns one
sum. vLLM's own method uses all_gather and reduce_scatter, which send every token to every rank.
"""

import torch

from unisono.expert import ExpertExchange


class ExpertCalls:
    """dispatch() and combine() on one group. The caller alternates the two calls.

    comm: the group's communicator, whose ranks hold different tokens. `rows_sent`: if the caller
    sets it to 0, it counts the rows of hidden size that this rank sends to other ranks.
    """

    def __init__(self, comm):
        self.comm = comm
        self.rows_sent = None
        self._exchanges = {}  # by (experts of all ranks, k)
        self._places = {}  # by id of the layer's map: the map, which must stay alive, and the experts of all ranks
        self._current = None

    def dispatch(self, hidden_states, topk_weights, topk_ids, extra_tensors=(), *, experts_here):
        """Returns (rows, weights, ids, extras) of the tokens that chose experts on this rank. Collective.

        Shapes: hidden_states[tokens, hidden]; topk_weights and topk_ids[tokens, k]; each extra
        tensor [tokens, ...]. Results have one row per received token, and may have no rows. ids are
        global expert numbers; -1: an expert of another rank. experts_here: a tensor that maps
        global expert numbers to local numbers; -1: an expert of another rank.
        """
        places = self._experts_of_rank(experts_here)
        exchange = self._exchange(places, topk_ids.shape[1])
        routing = exchange.route(topk_ids.to(torch.int32).contiguous())
        payloads = [hidden_states, topk_weights.float(), *extra_tensors]
        rows, weights, *extras = exchange.dispatch(routing, [tensor.contiguous() for tensor in payloads])
        local = torch.from_numpy(routing.experts.copy()).long()
        mine = torch.tensor(routing.experts_here)
        ids = torch.where(local < 0, -1, mine[local.clamp(min=0)]).to(topk_ids.dtype)
        self._current = exchange, routing
        if self.rows_sent is not None:
            self._count(places, routing, topk_ids)
        return rows, weights.to(topk_weights.dtype), ids, extras

    def combine(self, rows, out=None):
        """Returns the sum over the ranks of each token's rows, in f32, rounded once. Collective."""
        if self._current is None:
            raise RuntimeError("combine() without a dispatch() before it")
        (exchange, routing), self._current = self._current, None
        if out is not None and (not out.is_contiguous() or out.data_ptr() == rows.data_ptr()):
            return out.copy_(exchange.combine(routing, rows.contiguous()))
        return exchange.combine(routing, rows.contiguous(), out=out)

    def close(self):
        for exchange in self._exchanges.values():
            exchange.close()
        self._exchanges.clear()

    def _experts_of_rank(self, expert_map):
        """Returns the experts of each rank. The first call for each layer is collective."""
        if id(expert_map) not in self._places:
            mine = expert_map.cpu() >= 0
            all_ranks = torch.empty((self.comm.size, len(mine)), dtype=torch.uint8)
            self.comm.all_gather(mine.to(torch.uint8).numpy(), all_ranks.numpy())
            numbers = [tuple(one.nonzero().flatten().tolist()) for one in all_ranks]
            self._places[id(expert_map)] = expert_map, (len(mine), tuple(numbers))
        return self._places[id(expert_map)][1]

    def _exchange(self, places, k):
        if (places, k) not in self._exchanges:
            experts, of_rank = places
            self._exchanges[places, k] = ExpertExchange(self.comm, experts, k, layout="rank_major", experts_of_rank=of_rank)
        return self._exchanges[places, k]

    def _count(self, places, routing, topk_ids):
        experts, of_rank = places
        rank_of = torch.full((experts + 1,), self.comm.size)
        for rank, numbers in enumerate(of_rank):
            rank_of[list(numbers)] = rank
        there = torch.zeros((len(topk_ids), self.comm.size + 1), dtype=torch.bool)
        there.scatter_(1, rank_of[topk_ids.long()], True)
        there[:, [self.comm.rank, self.comm.size]] = False
        arrived = torch.from_numpy(routing.sources.copy())[:, 0]
        self.rows_sent += int(there.sum() + ((arrived >= 0) & (arrived != self.comm.rank)).sum())


def with_expert_map(compute, output, hidden_states, topk_weights, topk_ids, expert_map, scale=None):
    """Runs a kernel that has only this rank's experts, on the choices that name these experts.

    compute(output, rows, weights, ids, scale): the kernel. It gets one choice per row, with local
    ids. For each token, this function writes the sum over the token's choices, in f32, to
    output[tokens, hidden], or zeros if the token has no choice here.
    """
    local = torch.where(topk_ids < 0, -1, expert_map[topk_ids.long().clamp(min=0)])
    token, place = (local >= 0).nonzero(as_tuple=True)
    if len(token) == 0:
        return output.zero_()
    outputs = output.new_empty((len(token), *output.shape[1:]))
    per_row = scale is not None and scale.dim() > 0 and len(scale) == len(hidden_states)
    compute(
        outputs, hidden_states[token], topk_weights[token, place, None].contiguous(),
        local[token, place, None].to(torch.int32).contiguous(), scale[token] if per_row else scale,
    )  # fmt: skip
    sums = torch.zeros(output.shape, dtype=torch.float32)
    return output.copy_(sums.index_add_(0, token, outputs.float()))
