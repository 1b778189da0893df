#!/usr/bin/env python3
"""Runs unchanged models of Hugging Face transformers over unisono, over gloo, and in one process:

    build/venv/bin/python bench/python/llm.py --model llama --layout tp --ranks 2

Each method has its own processes, which answer in turns while the others sleep. An answer is a prompt of 32
tokens followed by --tokens tokens, chosen greedily. "first ms" is the time until the first token. "tokens/s"
is the rate of the tokens after the first. Both are medians over the rounds. The all_reduces of the tokens
after the first are timed where transformers calls them, so their times include waiting for slower ranks. Each
rank is bound to its share of the processors. "bits" reports whether all ranks computed the same logits, bit
by bit.
"""

import argparse
import hashlib
import multiprocessing
import os
import statistics
import tempfile
import time

import llm_models


class Stopwatch:
    """Records the duration of every call of torch.distributed.all_reduce."""

    def __init__(self, dist):
        self.seconds = []
        original = dist.all_reduce

        def all_reduce(*args, **options):
            begin = time.perf_counter()
            result = original(*args, **options)
            self.seconds.append(time.perf_counter() - begin)
            return result

        dist.all_reduce = all_reduce


def answer(torch, model, prompt, count, watch):
    """Returns (seconds until the first token, seconds of the other tokens, the tokens). Afterwards `watch`
    has the all_reduces of the other tokens."""
    from transformers import StoppingCriteria, StoppingCriteriaList

    times = [time.perf_counter()]

    class Clock(StoppingCriteria):
        def __call__(self, ids, scores, **options):
            times.append(time.perf_counter())
            if len(times) == 2:
                watch.seconds.clear()
            return torch.zeros(len(ids), dtype=torch.bool)

    with torch.no_grad():
        tokens = model.generate(
            prompt, max_new_tokens=count, min_new_tokens=count, do_sample=False, pad_token_id=0,
            eos_token_id=None, stopping_criteria=StoppingCriteriaList([Clock()]),
        )  # fmt: skip
    return times[1] - times[0], times[-1] - times[1], tokens[0, prompt.shape[1] :].tolist()


def rank_main(way, rank, options, folder, pipe):
    ranks = 1 if way == "alone" else options.ranks
    layout = "alone" if way == "alone" else options.layout
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
        TRANSFORMERS_VERBOSITY="error",
    )  # fmt: skip
    import warnings

    import torch
    import torch.distributed as dist

    warnings.simplefilter("ignore")
    processors = sorted(os.sched_getaffinity(0))
    cpus = len(processors)
    if way != "alone":
        own = slice(rank * cpus // ranks, max((rank + 1) * cpus // ranks, rank * cpus // ranks + 1))
        os.sched_setaffinity(0, processors[own])
    torch.set_num_threads(min(options.ranks, cpus) if way == "alone" else max(1, cpus // ranks))
    if way != "alone":
        store = dist.FileStore(os.path.join(folder, f"store-{way}"), ranks)
        dist.init_process_group(way, store=store, rank=rank, world_size=ranks)
    model = llm_models.load(os.path.join(folder, "model"), layout, ranks, options.dtype)
    watch = Stopwatch(dist)
    generator = torch.Generator().manual_seed(1)
    prompt = torch.randint(3, model.config.vocab_size, (1, llm_models.PROMPT), generator=generator)
    with torch.no_grad():
        logits = model(prompt).logits.float()
    digest = hashlib.sha256(logits.numpy().tobytes()).hexdigest()
    pipe.send((digest, logits[0, -1].tolist()))
    while (count := pipe.recv()) is not None:
        first, rest, tokens = answer(torch, model, prompt, count, watch)
        pipe.send((first, rest, tokens, list(watch.seconds)))
    if way != "alone":
        dist.destroy_process_group()


class Way:
    """The processes of one method."""

    def __init__(self, name, options, folder):
        self.name, self.first, self.rest, self.reduces, self.tokens = name, [], [], [], None
        context = multiprocessing.get_context("spawn")
        self.processes, self.pipes = [], []
        for rank in range(1 if name == "alone" else options.ranks):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=rank_main, args=(name, rank, options, folder, theirs), daemon=True
            )
            process.start()
            theirs.close()
            self.processes.append(process)
            self.pipes.append(ours)
        said = [pipe.recv() for pipe in self.pipes]  # EOFError: a rank has failed and printed why
        self.same_bits = len({digest for digest, _ in said}) == 1
        self.logits = said[0][1]

    def run(self, count):
        for pipe in self.pipes:
            pipe.send(count)
        answers = [pipe.recv() for pipe in self.pipes]
        self.first.append(max(first for first, *_ in answers))
        self.rest.append(max(rest for _, rest, *_ in answers))
        self.same_bits = self.same_bits and all(a[2] == answers[0][2] for a in answers)
        self.tokens = answers[0][2]
        self.reduces += [seconds for *_, reduces in answers for seconds in reduces]

    def end(self):
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join()

    def row(self, count, reference):
        rate = (count - 1) / statistics.median(self.rest)
        apart = max(abs(a - b) for a, b in zip(self.logits, reference.logits))
        centiles = statistics.quantiles(self.reduces, n=100) if self.reduces else None
        times = "".join(f"{centiles[p - 1] * 1e6:10.0f}" for p in (50, 99)) if centiles else " " * 17 + "- -"
        same = sum(a == b for a, b in zip(self.tokens, reference.tokens))
        print(f"{self.name:9}{rate:10.1f}{statistics.median(self.first) * 1e3:10.1f}{times}"
              f"{'same' if self.same_bits else 'DIFFER':>8}{same:6} of {count}{apart:12.1e}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=llm_models.MODELS, default="llama")
    parser.add_argument("--layout", default="tp", help="tp, pp, ep or ep-WAY, as ep-all_reduce")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="unisono-llm-") as folder:
        llm_models.save(options.model, os.path.join(folder, "model"), options.dtype)
        if (why := llm_models.misfit(os.path.join(folder, "model"), options.layout, options.ranks)) is not None:
            parser.error(f"transformers cannot run {options.model} so: {why}; try other --ranks, or --layout pp")
        ways = [Way(name, options, folder) for name in ("alone", "unisono", "gloo")]
        for way in ways:
            way.run(4)  # warm-up
            way.first, way.rest, way.reduces = [], [], []
        for _ in range(options.rounds):
            for way in ways:
                way.run(options.tokens)
        print(f"{options.model}, {options.dtype}, {options.layout} on {options.ranks} ranks; alone: "
              f"one process with {min(options.ranks, len(os.sched_getaffinity(0)))} threads")  # fmt: skip
        print(f"{'way':9}{'tokens/s':>10}{'first ms':>10}{'p50 us':>10}{'p99 us':>10}{'bits':>8}"
              f"{'tokens as alone':>12}{'logits off':>12}")  # fmt: skip
        for way in ways:
            way.row(options.tokens, ways[0])
        for way in ways:
            way.end()
    return 0 if all(way.same_bits for way in ways) else 1


if __name__ == "__main__":
    raise SystemExit(main())
