#!/usr/bin/env python3
"""Tests that the calls of examples/llm's ranks are those of the model's step.

For each layout the program answers a prompt, recorded. The collectives, sends and
receives of each rank and each of its groups must be those of `unisono step show`: the same kinds, bytes and
order. What the exchange of experts and redistribute() agree on by the way is not part of a step:
all_gathers of bytes, and barriers, in groups of experts.

Usage: recorded_test.py --program UNISONO --llm LLM [LAYOUT...]
"""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from recording import calls_in, record

PROMPT = "abcdefg"  # one token per letter
TOKENS = 3
# The model that examples/llm makes up.
CONFIG = {"model_type": "llama", "num_hidden_layers": 3, "hidden_size": 72, "num_attention_heads": 9,
          "num_key_value_heads": 3, "head_dim": 8, "intermediate_size": 160, "vocab_size": 256,
          "tie_word_embeddings": True}
ROUTED = "as the router chose"  # bytes that no step can predict
LAYOUTS = ["tp=2", "tp=3", "tp=4", "tp=5", "tp=9", "pp=2", "pp=3", "cp=2", "cp=3", "cp=4", "ep=2", "ep=3",
           "ep=4", "pp=2,tp=2", "pp=3,tp=2", "pp=2,tp=3", "cp=2,tp=2", "cp=2,tp=3", "cp=3,tp=2", "ep=2,tp=2",
           "ep=2,tp=3", "ep=4,tp=2", "pp=2,cp=2", "pp=2,ep=2", "cp=2,ep=2", "pp=2,cp=2,tp=2",
           "pp=2,cp=2,ep=2", "pp=3,cp=2", "cp=4,tp=2", "pp=2,tp=4"]


def sizes_of(layout):
    return {axis: int(size) for axis, size in re.findall(r"([a-z]+)=(\d+)", layout)}


def expected(args, layout, folder):
    """Returns the calls of each rank and group, in order."""
    ranks = math.prod(sizes_of(layout).values())
    experts = sizes_of(layout).get("ep", 1)
    calls = [defaultdict(list) for _ in range(ranks)]
    for number in range(TOKENS):
        tokens = len(PROMPT) if number == 0 else 1
        words = [args.program, "step", "show", folder / "config.json", "--layout", layout, "--precision", "f32",
                 "--json"]
        words += ["--prompt", str(tokens)] if number == 0 else ["--behind", str(len(PROMPT) + number - 1)]
        words += ["--upcycled", str(2 * experts)] if experts > 1 else []
        step = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        for rank in step["ranks"]:
            for call in rank["calls"]:
                if call["what"] == "computing":
                    continue
                mine = calls[rank["rank"]][tuple(sorted(call["group"]))]
                if call["what"] == "dispatch":
                    # On one host rows are read in place; the messages contain how many tokens chose
                    # which expert and, for the rank of each expert, which tokens they are.
                    mine += [("all_gather", 2 * experts * 4 * experts), ("all_to_all", ROUTED)]
                elif call["what"] != "combine":
                    mine.append((call["what"], call["bytes"], call.get("peer")) if "peer" in call
                                else (call["what"], call["bytes"]))
    return calls


def recorded(args, layout, folder):
    ranks = math.prod(sizes_of(layout).values())
    data = record(args.program, ranks, folder / "trace.json", [
        args.llm, "--model", "random", "--layout", layout, "--prompt", PROMPT, "--tokens", str(TOKENS)])
    calls = [defaultdict(list) for _ in range(ranks)]
    labels = [[] for _ in range(ranks)]
    for call in calls_in(data):
        mine = calls[call.rank][call.members]
        if call.peer is not None:
            mine.append((call.what, call.bytes, call.peer))
            continue
        # The world's own calls, and the agreements of meshes and exchanges, come before a step or
        # beside it.
        if call.dtype == "u64" or call.what == "barrier" or call.group == "world":
            continue
        routed = call.dtype == "u8" and call.what == "all_to_all_v"
        if not (call.dtype == "u8" and call.what == "all_gather" and is_experts(layout, call.members)):
            mine.append((call.kind, ROUTED if routed else call.bytes))
        # Sums over tp are named by their layer and purpose, two per layer.
        if call.what == "all_reduce" and layout == f"tp={ranks}":
            labels[call.rank].append(call.label)
    if layout == f"tp={ranks}":
        layers = [f"layer {layer} {part}" for layer in range(CONFIG["num_hidden_layers"])
                  for part in ("attention", "mlp")]
        assert all([one for one in mine if one in layers] == layers * TOKENS for mine in labels), labels
    return calls


def is_experts(layout, group):
    """Returns whether a group is a group of the axis ep."""
    sizes = sizes_of(layout)
    stride = math.prod(size for axis, size in list(sizes.items())[list(sizes).index("ep") + 1:]) if "ep" in sizes else 0
    return "ep" in sizes and len(group) == sizes["ep"] and all(
        b - a == stride for a, b in zip(group, group[1:]))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--llm", required=True)
    parser.add_argument("layouts", nargs="*")
    args = parser.parse_args()
    wrong = 0
    compared = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_text(json.dumps(CONFIG))
        for layout in args.layouts or LAYOUTS:
            wanted, found = expected(args, layout, folder), recorded(args, layout, folder)
            for rank, (said, did) in enumerate(zip(wanted, found)):
                # A call of a group of one rank moves no data.
                for group in sorted(one for one in set(said) | set(did) if len(one) > 1):
                    a, b = said.get(group, []), did.get(group, [])
                    compared += len(a)
                    if a != b:
                        wrong += 1
                        at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
                        print(f"{layout}: rank {rank}, group {group}: call {at} of {len(a)} and {len(b)} is "
                              f"{b[at:at + 3]}, the step says {a[at:at + 3]}")
    print(f"{len(args.layouts or LAYOUTS)} layouts, {compared} calls, {wrong} wrong")
    return 1 if wrong or compared == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
