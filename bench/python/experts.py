#!/usr/bin/env python3
"""Compares dispatch and combine with plain PyTorch: all_to_all_single and index_select over gloo.

    build/venv/bin/python bench/python/experts.py
    build/venv/bin/python bench/python/experts.py --ranks 4 --tokens 64 --hidden 2048 --experts 64 -k 8
"""

import argparse
import statistics
import time

import ranks

CASES = ((4096, 2048, 64, 8), (2048, 4096, 8, 2), (128, 7168, 64, 8), (64, 2048, 64, 8), (1, 7168, 64, 8))


class Textbook:
    """The plain PyTorch method: sorts rows by expert, exchanges counts and rows, sorts again; and back."""

    def __init__(self, torch, dist, experts, group):
        self.torch, self.dist, self.group = torch, dist, group
        self.experts, self.ranks = experts, dist.get_world_size(group)

    def dispatch(self, tokens, chosen):
        torch = self.torch
        flat = chosen.reshape(-1).long()
        self.order = flat.argsort(stable=True)
        counts = torch.bincount(flat, minlength=self.experts)
        came = torch.empty_like(counts)  # [rank]: rows for each expert of this rank
        self.dist.all_to_all_single(came, counts, group=self.group)
        self.sent = counts.reshape(self.ranks, -1).sum(1).tolist()
        self.got = came.reshape(self.ranks, -1).sum(1).tolist()
        rows = torch.empty(sum(self.got), tokens.shape[1], dtype=tokens.dtype)
        mine = tokens.index_select(0, self.order // chosen.shape[1])
        self.dist.all_to_all_single(rows, mine, self.got, self.sent, group=self.group)
        here = torch.arange(self.experts // self.ranks).repeat(self.ranks)
        self.by_expert = torch.repeat_interleave(here, came).argsort(stable=True)
        return rows.index_select(0, self.by_expert)

    def combine(self, rows, weights):
        torch = self.torch
        sorted_rows = torch.empty_like(rows)
        sorted_rows[self.by_expert] = rows
        back = torch.empty(len(self.order), rows.shape[1], dtype=rows.dtype)
        self.dist.all_to_all_single(back, sorted_rows, self.sent, self.got, group=self.group)
        of_places = torch.empty_like(back)
        of_places[self.order] = back
        return (of_places.reshape(*weights.shape, -1) * weights.unsqueeze(-1)).sum(1)


def median_us(dist, call, repeat):
    """Returns the slowest rank's time of each repetition."""
    import torch

    times = []
    for _ in range(repeat):
        dist.barrier()
        begin = time.perf_counter()
        result = call()
        took = torch.tensor([time.perf_counter() - begin])
        dist.all_reduce(took, dist.ReduceOp.MAX)
        times.append(1e6 * took.item())
    return statistics.median(times), result


def rank_main(rank, options, folder):
    import torch
    import torch.distributed as dist
    from unisono.torch import MoEDispatcher

    gloo = ranks.join(rank, options.ranks, folder, "unisono")["gloo"]
    given = (options.tokens, options.hidden, options.experts, options.k)
    for tokens, hidden, experts, k in (given,) if options.tokens else CASES:
        torch.manual_seed(rank)
        x = torch.randn(tokens, hidden).bfloat16()
        chosen = torch.rand(tokens, experts).topk(k).indices.int()
        weights = torch.rand(tokens, k)
        exchange = MoEDispatcher(experts, k).exchange
        textbook = Textbook(torch, dist, experts, gloo)
        repeat = max(3, min(200, 4096 // tokens))

        def ours_out(exchange=exchange, chosen=chosen, x=x):
            routing = exchange.route(chosen)
            return routing, exchange.dispatch(routing, x)

        ours_there, (routing, rows) = median_us(dist, ours_out, repeat)
        ours_back, sums = median_us(dist, lambda: exchange.combine(routing, rows, weights), repeat)
        gloo_there, same = median_us(dist, lambda: textbook.dispatch(x, chosen), repeat)
        low = weights.bfloat16()
        gloo_back, near = median_us(dist, lambda: textbook.combine(same, low), repeat)
        torch.testing.assert_close(sums, near, atol=0.1, rtol=0.1)
        if rank == 0:
            print(f"{tokens:5} tokens of {hidden}, {k} of {experts} experts: route and dispatch {ours_there:9.0f} us, "
                  f"gloo {gloo_there:9.0f} ({ours_there / gloo_there:.2f}); combine {ours_back:9.0f}, "
                  f"gloo {gloo_back:9.0f} ({ours_back / gloo_back:.2f})", flush=True)  # fmt: skip
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=0, help="of a rank; 0: the cases of unisono bench moe")
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--experts", type=int, default=64)
    parser.add_argument("-k", type=int, default=8)
    return ranks.start(rank_main, parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
