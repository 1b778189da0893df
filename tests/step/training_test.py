#!/usr/bin/env python3
"""Tests that the calls of examples/transformer's ranks are those of the model's training step.

For each layout the program trains two steps, recorded. The collectives,
sends and receives of each rank and each of its communicators must be those of `unisono step show --train`:
the same kinds, bytes and order, twice. Attention, the sharded state, the loss and the lanes of a pipeline have
communicators of their own, also where these are of the same ranks; between those there is no order. A pipeline posts its
receives ahead: what it sends to each rank and receives from each is in order alone. What comes before and after is not
part of a step: whole weights are gathered in the end. What redistribute() agrees on by the way is not, either:
all_gathers of its addresses, and barriers.

Usage: training_test.py --program UNISONO --transformer TRANSFORMER [--every N] [LAYOUT...]
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from recording import calls_in, record

CONFIG = {"model_type": "gpt2", "n_layer": 4, "n_embd": 256, "n_head": 8, "num_key_value_heads": 4,
          "intermediate_size": 1024, "vocab_size": 512, "tie_word_embeddings": False}
STEPS = 2
LANES = ("activations", "gradients")
ATTENTION = ("to heads", "d to heads", "to rows", "keys and values", "d keys and values")
LAYOUTS = Path(__file__).parents[2] / "examples" / "transformer" / "layout.cc"


def layouts():
    listed = re.findall(r'^    "([a-z]+=.*)",$', LAYOUTS.read_text(), re.MULTILINE)
    return [one for one in listed if one.split()[0] != "tp=1"]


def expected(args, layout, folder):
    """Returns the calls of a step for each rank, group and part of the program, in order."""
    mesh, _, words = layout.partition(" ")
    done = subprocess.run([args.program, "step", "show", folder / "config.json", "--layout", mesh, "--train", "8x32",
                           "--with", words, "--precision", "f32", "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{layout}: {done.stdout}{done.stderr}")
    ranks = json.loads(done.stdout)["ranks"]
    calls = [defaultdict(list) for _ in ranks]
    for rank in ranks:
        for call in rank["calls"]:
            if call["what"] != "computing":
                lane = call["node"] in LANES and (call["node"], call["what"], call["peer"])
                part = (lane or ("attention" if call["node"] in ATTENTION else
                                 "norm" if call["node"] == "norm of stages" else
                                 "loss" if call["node"] == "loss of all" else "state"))
                calls[rank["rank"]][tuple(sorted(call["group"])), part].append(
                    (call["what"], call["bytes"], *([call["peer"]] if "peer" in call else [])))
    return calls


def recorded(args, layout, ranks, folder):
    """Returns the calls for each rank, group and communicator, in order."""
    data = record(args.program, ranks, folder / "trace.json", [args.transformer, "--try", layout])
    calls = [defaultdict(list) for _ in range(ranks)]
    has_stages = layout.startswith("pp=")
    for call in calls_in(data):
        if call.peer is not None:
            lane = (call.what, call.peer) if has_stages and call.members == stages_of(layout, ranks, call.rank) else ()
            calls[call.rank][call.members, (call.group, *lane)].append((call.what, call.bytes, call.peer))
        elif is_of_step(call, has_stages):
            calls[call.rank][call.members, (call.group,)].append((call.kind, call.bytes))
    return calls


def is_of_step(call, has_stages):
    """For a pipeline, the world sums only the loss."""
    if call.group == "world":
        return has_stages and (call.what, call.dtype) == ("all_reduce", "i64")
    return call.what != "barrier" and call.dtype in ("f32", "i64")


def stages_of(layout, ranks, rank):
    """Returns the ranks along pp, which is the slowest axis."""
    stride = ranks // int(re.match(r"pp=(\d+)", layout).group(1))
    return tuple(range(rank % stride, ranks, stride))


def difference(did, said):
    """Returns where the calls differ, and the calls that follow."""
    at = next((i for i, (x, y) in enumerate(zip(did, said)) if x != y), min(len(did), len(said)))
    return at, did[at:at + 3], said[at:at + 3]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--transformer", required=True)
    parser.add_argument("--every", type=int, default=1, help="only each N-th layout of the example")
    parser.add_argument("layouts", nargs="*")
    args = parser.parse_args()
    wrong, compared = 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_text(json.dumps(CONFIG))
        for layout in args.layouts or layouts()[::args.every]:
            step = expected(args, layout, folder)
            for rank, (said, did) in enumerate(zip(step, recorded(args, layout, len(step), folder))):
                # A call of a group of one rank moves no data.
                left = {key: calls for key, calls in did.items() if len(key[0]) > 1 and calls}
                for (group, part), calls in said.items():
                    wanted = calls * STEPS
                    compared += len(wanted)
                    found = [key for key in left if key[0] == group and left[key][:len(wanted)] == wanted]
                    if found:
                        del left[min(found, key=lambda key: len(left[key]))]
                        continue
                    wrong += 1
                    print(f"{layout}: rank {rank}, {part} of {group}: no communicator did {wanted[:4]} ...; there are "
                          + ", ".join(str(difference(left[key], wanted)) for key in left if key[0] == group))
                wrong += len(left)
                for key, calls in left.items():
                    print(f"{layout}: rank {rank} called {calls[:4]} of {key[0]}, which the step does not say")
    print(f"{len(args.layouts or layouts())} layouts, {compared} calls, {wrong} wrong")
    return 1 if wrong or compared == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
