"""Predicts the cost of calls: formulas for a flat network, and simulations on a topology.

    link = unisono.model.Link(alpha_us=5, beta_gb_per_s=12.5)
    print(unisono.model.plan("all_reduce", ranks=8, bytes=64 << 20, link=link))
    print(unisono.model.simulate("all_reduce/ring", on="dgx_h100:nodes=2", bytes=1 << 30).total_us)
"""

import json
from dataclasses import dataclass
from pathlib import Path

from unisono import _core
from unisono._core import Link, Machine, Topology, presets

__all__ = [
    "Candidate", "Link", "Machine", "Plan", "Simulation", "Topology", "plan", "plan_serving",
    "plan_training", "presets", "simulate", "topology",
]  # fmt: skip


@dataclass(frozen=True)
class Candidate:
    """A usable algorithm, with the critical path of its schedule."""

    algorithm: str
    time_us: float
    messages: float  # in a row
    bytes: float  # in a row, sent
    reduced_bytes: float  # in a row
    steps: int
    sent_bytes: float  # by the rank that sends most; 0 if the schedule was not built


@dataclass(frozen=True)
class Plan:
    """The fastest algorithm on a network, and the reason."""

    candidates: list  # of Candidate, fastest first
    reasons: list  # reasons[i]: why the first is better than candidates[i + 1]
    ranges: list  # (from_bytes, algorithm): the fastest algorithm by size
    unable: dict  # algorithm: the numbers of ranks that it supports
    bound_us: float  # lower bound for any algorithm on this network

    def __str__(self):
        width = max(len(candidate.algorithm) for candidate in self.candidates)
        lines = [f"{'algorithm':{width}}  {'messages':>9}  {'time_us':>12}"]
        for candidate in self.candidates:
            lines.append(
                f"{candidate.algorithm:{width}}  {candidate.messages:9.0f}  {candidate.time_us:12.2f}"
            )
        return "\n".join(lines)


def plan(collective, ranks, bytes, link):
    """Predicts the time of every algorithm of a collective on a flat network.

    bytes: the larger of the bytes that a rank sends and receives in total. Up to 512 ranks the times
    come from the schedules, above that from closed formulas. ValueError for invalid arguments.
    """
    made = _core.plan(collective, ranks, bytes, link)
    made["candidates"] = [Candidate(**row) for row in made["candidates"]]
    return Plan(**made)


def _text(source):
    """Returns JSON text, given a document, its text, or a file."""
    if isinstance(source, (dict, list)):
        return json.dumps(source)
    if isinstance(source, Path):
        return source.read_text()
    return source


def topology(source):
    """Returns a topology, given a preset such as "dgx_h100:nodes=2" (see presets()), a document, or a Path."""
    return source if isinstance(source, Topology) else _core.topology(_text(source))


def _layout_text(layout):
    """Returns the text of a layout, given a dict; empty for None."""
    if layout is None:
        return ""
    if not layout:
        raise ValueError('layout must have at least one axis, such as {"tp": 1}')
    return ",".join(f"{'mb' if axis == 'micro_batch' else axis}={size}" for axis, size in layout.items())


def plan_training(
    model, on, batch=256, sequence=8192, precision="bf16", layout=None, device="", top=10,
):  # fmt: skip
    """Returns the layouts for training a model on all devices of a topology, fastest first.

    model: a name ("llama3-70b"), or a config.json as a dict, its text or a Path. on: as topology().
    batch: sequences per step, over all devices. precision: "bf16", "f8" or "f4". device: the device of
    the ranks ("h100"), if the topology does not name it. layout: only this one, such as
    {"tp": 4, "pp": 8, "micro_batch": 1, "recompute": "full"}; without "dp", that follows from the devices.

    Returns a dict: "layouts", each with its axes, "step_s", "seconds" by part and "bytes" of the
    fullest rank by part; "refused" (count by reason), "least_missing_bytes" if nothing fits, and
    "reason", why the first layout beats the second. ValueError, UsageError for invalid arguments.
    """
    return _core.plan_training(
        _text(model), topology(on), batch, sequence, precision, _layout_text(layout), device, top
    )


def plan_serving(
    model, on, input=1024, output=1024, precision="", concurrency=0, ttft=0, tpot=0.05, rate=0,
    imbalance=1, prefix_hits=0, speculate=None, pools=False, layout=None, device="", top=10,
):  # fmt: skip
    """Returns the layouts for serving a model, by tokens per second and device.

    input, output: tokens of a prompt and of an answer. concurrency: concurrent requests per instance;
    0: as many as memory and the limits allow. precision: of weights and products; "": that of the
    quantization_config in a config.json, else bf16. ttft, tpot: limits in seconds of the time to the
    first token and of the time per output token; 0: none.
    rate: requests per second that arrive at random. Each layout then has the fewest instances with
    which nine of ten requests keep the limits, and "waits", with "p50", "p90" and "p99" of
    "first_token_s" and "token_s". imbalance: rows of
    the busiest device's experts, over the mean. prefix_hits: share of a prompt that is cached already. speculate:
    (drafted tokens per step, chance of each), and as a third number the time of drafting one, in steps.
    pools: also try layouts that read prompts on devices of their own; such a layout has "prompts", a
    dict with the axes of these devices and "prompt_s". layout: only this one, such as
    {"tp": 4, "instances": 2}. The other arguments and the result are those of plan_training().
    """
    return _core.plan_serving(
        _text(model), topology(on), input, output, precision, concurrency, ttft, tpot, rate, imbalance,
        prefix_hits, speculate, pools, _layout_text(layout), device, top,
    )  # fmt: skip


class Simulation:
    """The simulated time of a workload on a topology, and its parts."""

    def __init__(self, made):
        self._made = made
        self.total_us = made.total_us
        self.messages = made.messages

    @property
    def item_end_us(self):
        """Returns when the last rank ended each item of the workload."""
        return self._made.item_end_us

    def report(self):
        """Returns the critical path, the activity of each rank, and the busiest links, as a dict."""
        return json.loads(self._made.report_json())

    def trace(self):
        """Returns the text of a file for chrome://tracing; needs simulate(..., records=N)."""
        return self._made.trace_json()

    def __repr__(self):
        return f"<Simulation, {self.total_us:.2f} us, {self.messages:.0f} messages>"


def simulate(target, on, **options):
    """Simulates an algorithm, a schedule or a workload on a topology.

    target: "all_reduce/ring", a Schedule, or a workload (dict, JSON text, or Path).
    on: an argument of topology(), or a Link for a flat network.
    Options: bytes=2**20, ranks (all of the topology), root=0; late_us={rank: us},
    slow={rank: factor}, degrade={link or device: part of its bandwidth}; ports=1, gamma_gb_per_s,
    segment_bytes, contention="auto"|"on"|"off", jitter=0, seed=1; records=N keeps N messages for
    trace(). The same arguments give the same result. ValueError, UsageError for invalid arguments.
    """
    network = on if isinstance(on, Link) else topology(on)
    if not isinstance(target, _core.Schedule):
        target = _text(target)
    return Simulation(_core.simulate(target, network, **options))
