#!/usr/bin/env python3
"""Measures the engine over unisono and over its own communicator: speed.py [--pairs 7] [--hosts 1|2].

Two ranks, one thread each, run a small Llama with tensor parallelism. Both communicators serve the same
engine and take turns, batch by batch for tokens/s, and call by call for the time of an all_reduce in a
decode step. So a busy machine slows both. Two hosts are network namespaces with a cable between them,
which needs root; their bytes are counted on the cable.
"""

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
import table  # noqa: E402  sets the environment before vLLM is imported
from namespaces import RUN_WITH, TwoNodes  # noqa: E402

OURS = "unisono"
ROW_BYTES = 4 * table.models.SHAPE["hidden_size"]
REQUESTS = {8: 8192 // ROW_BYTES, 32: 32768 // ROW_BYTES}  # by the KiB of an all_reduce in a decode step
PREFILL, DECODE = 96, 24  # tokens
CLONE_NEWNET = 0x40000000


class InTurns:
    """Combines both communicators: all_reduce alternates, and its times are kept by (bytes, way)."""

    def __init__(self, ways):
        self.ways, self.names, self.calls, self.times = ways, list(ways), 0, {}

    def all_reduce(self, tensor):
        way = self.names[self.calls % len(self.names)]
        self.calls += 1
        size = tensor.nbytes
        begin = time.perf_counter()
        result = self.ways[way].all_reduce(tensor)
        self.times.setdefault((size, way), []).append(time.perf_counter() - begin)
        return result

    def __getattr__(self, name):
        return getattr(self.ways[OURS], name)


class Gloo:
    """Uses torch.distributed where vLLM uses shared memory."""

    def __init__(self, group):
        self.group = group

    def all_reduce(self, tensor):
        import torch.distributed as dist

        dist.all_reduce(tensor, group=self.group)
        return tensor


def ways_of(group):
    from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator
    from vllm.platforms import current_platform

    current_platform.import_kernels()
    ours = group.device_communicator
    stock = CpuCommunicator(
        ours.cpu_group, device=ours.device, device_group=ours.device_group, unique_name=group.unique_name
    )
    if stock.supports_tensor_dict:
        return {OURS: ours, "vLLM's shared memory": stock}, {"gloo": Gloo(group.device_group)}
    return {OURS: ours, "vLLM's own, over gloo": stock}, {}


def run(made, requests, prompt, tokens, seed):
    from vllm import SamplingParams

    prompts = [
        {"prompt_token_ids": [(seed + 31 * number + 7 * i * i) % table.models.WORDS for i in range(prompt)]}
        for number in range(requests)
    ]
    wanted = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
    begin = time.perf_counter()
    answers = made.generate(prompts, wanted, use_tqdm=False)
    duration = time.perf_counter() - begin
    return duration, [list(answer.outputs[0].token_ids) for answer in answers]


def bytes_sent():
    """Counts the bytes at this rank's end of the cable; 0 on one host."""
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "cable":
            return int(counts.split()[8])
    return 0


def measure(folder, pairs):
    from vllm.distributed.parallel_state import get_tp_group

    made = table.engine(f"{folder}/models/llama", 2, {"tensor_parallel_size": 2})
    group = get_tp_group()
    ways, others = ways_of(group)
    found = {"speed": {}, "bytes": {}, "equal": True, "us": []}
    for pair in range(-1, pairs):  # the first warms up
        tokens = {}
        for way in list(ways) if pair % 2 else list(ways)[::-1]:
            group.device_communicator = ways[way]
            for phase, requests, prompt, count in (("prefill", 16, PREFILL, 1), ("decode", 16, 4, DECODE)):
                sent = bytes_sent()
                duration, tokens[phase, way] = run(made, requests, prompt, count, pair)
                if pair >= 0:
                    done = requests * (prompt if phase == "prefill" else count)
                    found["speed"].setdefault(f"{phase}/{way}", []).append(done / duration)
                    found["bytes"].setdefault(f"{phase}/{way}", []).append((bytes_sent() - sent) / done)
        found["equal"] &= all(one == tokens[phase, OURS] for (phase, _), one in tokens.items())
    group.device_communicator = turns = InTurns({**ways, **others})
    for pair in range(pairs):
        for requests in REQUESTS.values():
            run(made, requests, 4, DECODE, pair)
    for (size, way), times in turns.times.items():
        if size / 1024 in REQUESTS:
            found["us"].append((size // 1024, way, [1e6 * one for one in times[len(times) // 10 :]]))
    return found


def enter(nodes, rank):
    """Moves this process to the host of its rank."""
    with open(f"/run/netns/{nodes.names[rank]}") as place:
        if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    os.environ.update(
        MASTER_ADDR=nodes.addresses[0], VLLM_HOST_IP=nodes.addresses[rank], GLOO_SOCKET_IFNAME="cable", LOCAL_RANK="0",
        UNISONO_HOST=nodes.names[rank], VLLM_DIST_IDENT=nodes.names[rank],
    )  # fmt: skip


def show(ranks, hosts):
    where = "one host" if hosts == 1 else "two hosts"
    print(f"{where}: the tokens of both ways are {'equal' if all(rank['equal'] for rank in ranks) else 'DIFFERENT'}")
    speed, sent = ranks[0]["speed"], ranks[0]["bytes"]
    for phase in ("prefill", "decode"):
        ours, (other,) = speed[f"{phase}/{OURS}"], [key for key in speed if key.startswith(phase) and not key.endswith(OURS)]
        ratio = statistics.median(one / two for one, two in zip(ours, speed[other]))
        amounts = [statistics.median(sum(pair) for pair in zip(*(rank["bytes"][key] for rank in ranks)))
                   for key in (f"{phase}/{OURS}", other)]  # fmt: skip
        print(
            f"{where}: {phase:7} {statistics.median(ours):8.0f} tokens/s over unisono, {statistics.median(speed[other]):8.0f} "
            f"over {other.partition('/')[2]}: {ratio:.2f} times (median of {len(ours)} pairs)"
            + (f"; {amounts[0]:.0f} and {amounts[1]:.0f} bytes a token" if hosts == 2 else "")
        )
    for kib in REQUESTS:
        for way in dict.fromkeys(way for rank in ranks for size, way, _ in rank["us"]):
            times = sorted(one for rank in ranks for size, name, all_times in rank["us"] if (size, name) == (kib, way) for one in all_times)
            p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
            print(f"{where}: all_reduce {kib:2} KiB  {way:22} p50 {p50:8.1f} us  p99 {p99:8.1f} us  ({len(times)} calls)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--hosts", type=int, choices=(1, 2))
    parser.add_argument("--folder", help="for models, results and logs")
    options = parser.parse_args()
    folder = options.folder or tempfile.mkdtemp(prefix="unisono-vllm-")
    table.prepare(folder)
    wrong = False
    for hosts in (options.hosts,) if options.hosts else (1, 2):
        nodes = TwoNodes() if hosts == 2 else None

        def body(rank, nodes=nodes):
            os.environ["VLLM_PLUGINS"] = "unisono"
            if nodes is not None:
                enter(nodes, rank)
            return measure(folder, options.pairs)

        try:
            if nodes is not None:
                nodes.make()
            results = table.fork(body, f"speed {hosts}", 2, folder)
        except (OSError, subprocess.SubprocessError) as error:
            if nodes is None:
                raise
            why = (getattr(error, "stderr", None) or str(error)).strip()
            print(f"two hosts: left out: {why}; {RUN_WITH}")
            continue
        finally:
            if nodes is not None:
                nodes.remove()
        failed = [f"rank {rank} ends with {code}: {table.last_words(log)}"
                  for rank, (code, result, log) in enumerate(results) if result is None]  # fmt: skip
        if failed:
            print("\n".join(failed))
            wrong = True
            continue
        show([result for _, result, _ in results], hosts)
        wrong |= not all(result["equal"] for _, result, _ in results)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
