"""Predicts the cost of calls, by formulas for a flat network or by simulation on a topology.

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
    """An algorithm that works on these ranks, and the costs along its critical path."""

    algorithm: str
    time_us: float
    messages: float  # on the critical path
    bytes: float  # sent on the critical path
    reduced_bytes: float  # on the critical path
    steps: int
    sent_bytes: float  # bytes that the busiest rank sends; 0 if the schedule was not built


@dataclass(frozen=True)
class Plan:
    """The fastest algorithm on a network, and the reason."""

    candidates: list  # of Candidate, fastest first
    reasons: list  # reasons[i]: why candidates[0] is better than candidates[i + 1]
    ranges: list  # (from_bytes, algorithm): the fastest algorithm from this size on
    unable: dict  # by algorithm: the numbers of ranks that it supports
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

    bytes: the bytes that a rank sends or receives in total, whichever number is larger. For up to
    512 ranks the times come from the schedules, and for more ranks from closed formulas. Raises
    ValueError for invalid arguments.
    """
    made = _core.plan(collective, ranks, bytes, link)
    made["candidates"] = [Candidate(**row) for row in made["candidates"]]
    return Plan(**made)


def _text(source):
    """Returns JSON text. source: a document, its text, or the Path of a file."""
    if isinstance(source, (dict, list)):
        return json.dumps(source)
    if isinstance(source, Path):
        return source.read_text()
    return source


def topology(source):
    """Returns a topology. source: a preset (see presets()), a document, or a Path."""
    return source if isinstance(source, Topology) else _core.topology(_text(source))


def _layout_text(layout):
    """Returns the text of a layout that is given as a dict; empty for None."""
    if layout is None:
        return ""
    if not layout:
        raise ValueError('layout must have at least one axis, such as {"tp": 1}')
    return ",".join(f"{'mb' if axis == 'micro_batch' else axis}={size}" for axis, size in layout.items())


def plan_training(
    model, on, batch=256, sequence=8192, precision="bf16", layout=None, device="", top=10,
):  # fmt: skip
    """Returns the layouts for training a model on all devices of a topology, fastest first.

    model: a name ("llama3-70b"), or a config.json as a dict, its text or a Path.
    on: an argument of topology().
    batch: sequences per step, over all devices.
    precision: "bf16", "f8" or "f4".
    device: the type of the devices, such as "h100", if the topology does not name it.
    layout: estimate only this layout, such as {"tp": 4, "pp": 8, "micro_batch": 1,
    "recompute": "full"}. Without "dp", the number of devices and the other axes determine dp.

    Returns a dict:
      "layouts"              for each layout: its axes, "step_s", "seconds" by part, and "bytes" by
                             part on the rank that needs most memory
      "refused"              the number of refused layouts by reason
      "least_missing_bytes"  if no layout fits: the bytes that the closest layout lacks
      "reason"               why the first layout is better than the second
    Raises ValueError or UsageError for invalid arguments.
    """
    return _core.plan_training(
        _text(model), topology(on), batch, sequence, precision, _layout_text(layout), device, top
    )


def plan_serving(
    model, on, input=1024, output=1024, precision="", concurrency=0, ttft=0, tpot=0.05, rate=0,
    imbalance=1, prefix_hits=0, speculate=None, pools=False, layout=None, device="", top=10,
):  # fmt: skip
    """Returns the layouts for serving a model, the most tokens per second and device first.

    input, output: tokens of a prompt and of an answer.
    concurrency: concurrent requests per instance; 0: as many as memory and the limits allow.
    precision: precision of weights and products; "": the precision that the quantization_config in
    a config.json names, otherwise bf16.
    ttft, tpot: limits, in seconds, of the time to the first token and of the time per output token;
    0: no limit.
    rate: requests per second, which arrive at random. Each layout then has the fewest instances
    with which nine of ten requests keep the limits. It also has "waits", with "p50", "p90" and
    "p99" of "first_token_s" and "token_s".
    imbalance: rows for the experts of the busiest device, divided by the mean over the devices.
    prefix_hits: the part of a prompt that is already cached, from 0 to below 1.
    speculate: (drafted tokens per step, probability that a drafted token is accepted). A third
    number gives the time to draft one token, in steps.
    pools: also try layouts in which separate devices read the prompts. Such a layout has "prompts",
    a dict with the axes of these devices and "prompt_s".
    layout: estimate only this layout, such as {"tp": 4, "instances": 2}.
    The other arguments and the result are as for plan_training().
    """
    return _core.plan_serving(
        _text(model), topology(on), input, output, precision, concurrency, ttft, tpot, rate, imbalance,
        prefix_hits, speculate, pools, _layout_text(layout), device, top,
    )  # fmt: skip


class Simulation:
    """The simulated time of a workload on a topology, and the parts of this time."""

    def __init__(self, made):
        self._made = made
        self.total_us = made.total_us
        self.messages = made.messages

    @property
    def item_end_us(self):
        """Returns, for each item of the workload, the time at which the last rank ended it."""
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
    Options:
      bytes=2**20, root=0, ranks (default: all ranks of the topology)
      late_us={rank: us}, slow={rank: factor}
      degrade={link or device: factor of its bandwidth}
      ports=1, gamma_gb_per_s, segment_bytes, contention="auto"|"on"|"off", jitter=0, seed=1
      records=N, which keeps N messages for trace()
    The same arguments give the same result. Raises ValueError or UsageError for invalid arguments.
    """
    network = on if isinstance(on, Link) else topology(on)
    if not isinstance(target, _core.Schedule):
        target = _text(target)
    return Simulation(_core.simulate(target, network, **options))
