"""Expert parallelism for Hugging Face transformers (5.23, 5.24) by dispatch and combine.

    import unisono.torch.transformers  # registers it
    from transformers.distributed import DistributedConfig

    config = DistributedConfig(tp_size=2, ep_size=2, ep_implementation="unisono")
    model = AutoModelForCausalLM.from_pretrained(name, distributed_config=config)

On the CPU, transformers itself makes every rank compute its experts for the whole batch, and sums
the outputs of the whole batch by all_reduce. With this module, a rank computes only the rows of the
tokens that chose its experts. It sends only these rows. One rank sums the rows of each token and
sends the sum to all ranks. The ranks of an expert group may be on several hosts. They exchange
their addresses over the group.
"""

import weakref

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate, Shard
from transformers.distributed.expert_parallel import EPImplementation, EPImplementationInterface

from unisono.expert import ExpertExchange
from unisono.torch.experts import MoEDispatcher, _connect

__all__ = ["DispatchEP"]

_made = weakref.WeakKeyDictionary()  # by process group: its communicator, and objects created with it


def _of_group(group, key, make):
    """Returns make(communicator). The object is made once for each group and key. Layers share it,
    because they run one after the other."""
    known = _made.setdefault(group, {})
    if "comm" not in known:
        known["comm"] = _connect(group)
    if key not in known:
        known[key] = make(known["comm"])
    return known[key]


class DispatchEP(EPImplementation):
    """Expert parallelism by dispatch and combine. `rows_sent`: the number of rows of hidden size
    that this rank has sent to other ranks."""

    def __init__(self, experts, ep_mesh, tp_mesh):
        super().__init__(experts, ep_mesh, tp_mesh)
        self.group = ep_mesh.get_group()
        self.rank, self.ranks = ep_mesh.get_local_rank(), ep_mesh.size()
        self.rows_sent = 0

    def __call__(self, hidden_states, top_k_index, top_k_weights):
        trains = torch.is_grad_enabled() and hidden_states.requires_grad
        if self.shares_batch and not trains:
            return self._combine_shared(hidden_states, top_k_index, top_k_weights)
        return self._exchange(hidden_states, top_k_index, top_k_weights)

    def _combine_shared(self, hidden_states, top_k_index, top_k_weights):
        """Computes the sums without a dispatch, because all ranks hold all tokens. Each rank sums
        the rows of its share of the tokens."""
        tokens, hidden = hidden_states.shape
        share = -(-tokens // self.ranks)
        mine = slice(min(tokens, self.rank * share), min(tokens, (self.rank + 1) * share))
        chosen = top_k_index[mine].contiguous()
        exchange = self._exchange_of(chosen.shape[1])
        routing = exchange.route(chosen)
        source, token, _ = torch.from_numpy(routing.sources.copy()).T
        here = source * share + token  # each row's token number in the batch
        first = self.rank * self.num_local_experts
        local = top_k_index[here] - first
        elsewhere = (local < 0) | (local >= self.num_local_experts)
        rows = self._compute(
            hidden_states[here],
            local.masked_fill(elsewhere, self.num_local_experts),
            top_k_weights[here].masked_fill(elsewhere, 0.0),
        )
        part = hidden_states.new_zeros((share, hidden))
        exchange.combine(routing, rows.contiguous(), out=part[: mine.stop - mine.start])
        out = hidden_states.new_empty((share * self.ranks, hidden))
        dist.all_gather_into_tensor(out, part, group=self.group)
        self.rows_sent += int((source != self.rank).sum()) + (self.ranks - 1) * share
        return out[:tokens]

    def _exchange(self, hidden_states, top_k_index, top_k_weights):
        """Sends tokens to their experts. Ranks that share a batch handle one part of it each."""
        tokens, hidden = hidden_states.shape
        given = hidden_states, top_k_index, top_k_weights
        if self.tp_mesh.size() > 1:
            given = (
                DTensor.from_local(tensor, self.tp_mesh, [Replicate()], run_check=False)
                .redistribute(placements=[Shard(0)])
                .to_local()
                for tensor in given
            )
        part, chosen, weights = given
        k = chosen.shape[1]
        dispatcher = _of_group(
            self.group,
            ("dispatcher", self.num_local_experts, k),
            lambda comm: MoEDispatcher(self.num_local_experts * self.ranks, k, comm),
        )
        rows, routing = dispatcher.dispatch(part.contiguous(), chosen)
        counts = [len(range(*routing.rows_of_expert(i).indices(routing.rows)))
                  for i in range(self.num_local_experts)]  # fmt: skip
        local = torch.arange(self.num_local_experts).repeat_interleave(torch.tensor(counts))
        outputs = self._compute(rows, local[:, None], rows.new_ones((len(local), 1)))
        sums = dispatcher.combine(outputs, routing, weights.contiguous())
        source = torch.from_numpy(routing.sources.copy())[:, 0]
        # Each token is sent once to each rank that has one of its experts. Such a rank returns one
        # row for each of these experts.
        there = torch.zeros((len(chosen), self.ranks + 1), dtype=torch.bool)
        there.scatter_(1, torch.where(chosen < 0, self.ranks, chosen // self.num_local_experts).long(), True)
        there[:, [self.rank, self.ranks]] = False
        self.rows_sent += int((source >= 0).sum() - (source == self.rank).sum() + there.sum())
        if self.tp_mesh.size() == 1:
            return sums
        whole = DTensor.from_local(
            sums.contiguous(), self.tp_mesh, [Shard(0)], shape=(tokens, hidden), stride=(hidden, 1)
        )
        self.rows_sent += (self.tp_mesh.size() - 1) * len(sums)
        return whole.full_tensor()

    def _exchange_of(self, k):
        experts = self.num_local_experts * self.ranks
        return _of_group(
            self.group, ("exchange", experts, k), lambda comm: ExpertExchange(comm, experts, k, layout="rank_major")
        )

    def _compute(self, rows, local, weights):
        if len(rows) > 0:
            return self.experts_forward(rows, local, weights)
        # Even without rows, the parameters need a gradient and the exchange needs its backward
        # pass.
        one = rows.sum(dim=0, keepdim=True)
        return self.experts_forward(one, local.new_zeros((1, local.shape[1])), one.new_ones((1, local.shape[1])))[:0]


EPImplementationInterface.register("unisono", DispatchEP)
