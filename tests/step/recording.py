"""Reads the calls of a recorded run's ranks."""

import json
import subprocess
from typing import NamedTuple


class Call(NamedTuple):
    """A collective, or a send or receive, which has a peer, and no dtype or label."""

    start_us: float
    rank: int
    group: str
    members: tuple
    what: str
    dtype: str
    bytes: int
    peer: int | None
    label: str

    @property
    def kind(self):
        """The bytes of a call give its counts, so all_gather_v counts as all_gather."""
        return self.what.removesuffix("_v")


def record(unisono, ranks, trace, program):
    """Returns the recording of `program` (its words) on this many ranks; the test ends if it fails."""
    done = subprocess.run([unisono, "run", "-q", "-n", str(ranks), "--record", trace, "--", *program],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, program))}: {done.stderr}")
    return json.loads(trace.read_text())


def calls_in(data):
    """Returns all calls, in the order of their beginnings."""
    members = {name: tuple(sorted(group)) for name, group in zip(data["groups"]["name"], data["groups"]["ranks"])}
    ops, sent = data["ops"], data.get("transfers", {"rank": []})
    labels = ops.get("label", [""] * len(ops["rank"]))  # the program sets none
    calls = [Call(ops["start_us"][i], rank, ops["group"][i], members[ops["group"][i]],
                  ops["collective"][i], ops["dtype"][i], ops["bytes"][i], None, labels[i])
             for i, rank in enumerate(ops["rank"])]
    calls += [Call(sent["start_us"][i], rank, sent["group"][i], members[sent["group"][i]], sent["kind"][i], "",
                   sent["bytes"][i], sent["peer"][i], "") for i, rank in enumerate(sent["rank"])]
    return sorted(calls, key=lambda call: call.start_us)
