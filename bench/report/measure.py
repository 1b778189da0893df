"""Interleaved measurement: implementations take turns, and the machine's state is recorded with each
sample."""

import os
import statistics
import sys

from cases import ROOTED
from jobs import Job, JobError

ROW_SECONDS = 120
NEAR_HOP_US = 0.1
PEERS = ["openmpi", "mpich", "gloo"]


def state_of(hop_us):
    return "near" if hop_us < NEAR_HOP_US else "far"


class Bench:
    """Owns the jobs, and measures cases with them."""

    def __init__(self, programs, repeats, budget_ms, progress, network):
        self.programs = programs        # implementation -> path of its program
        self.repeats = repeats
        self.budget_ms = budget_ms
        self.progress = progress
        self.network = network
        self.jobs = {}                  # (implementation, ranks) -> Job
        self.versions = {}
        self.switch_us = None
        self.errors = []

    def job(self, implementation, ranks):
        ranks = 1 if implementation == "limit" else ranks
        key = (implementation, ranks)
        if key not in self.jobs:
            self.jobs[key] = Job(implementation, self.programs[implementation], ranks,
                                 self.network)
        return self.jobs[key]

    def drop_job(self, implementation, ranks):
        job = self.jobs.pop((implementation, 1 if implementation == "limit" else ranks), None)
        if job:
            job.close()

    def close(self):
        for job in self.jobs.values():
            job.close()
        self.jobs = {}

    def hop(self):
        return self.job("limit", 1).ask("hop", ROW_SECONDS)["median_us"]

    def contestants(self, case):
        """Returns the implementations that take turns, as (column, implementation, row)."""
        rows = [("limit", "limit", case.row("ordinary", self.budget_ms) + f" ranks={case.ranks}")]
        rows += [(name, name, case.row("ordinary", self.budget_ms))
                 for name in PEERS if name in self.programs and case.dtype == "f32"]
        if "unisono" in self.programs:
            rows += [(memory, "unisono", case.row(memory, self.budget_ms)) for memory in self.network.memories]
            if case.dtype != "f32":
                same_count = case.same_count_f32()
                rows.append(("f32", "unisono", same_count.row("ordinary", self.budget_ms)))
                rows.append(("f32 registered", "unisono",
                             same_count.row("registered", self.budget_ms)))
        # Only all_reduce of f32 has a limit program; the hop is the limit of small rows.
        if case.collective != "all_reduce" or case.dtype != "f32" or "raw" in self.programs:
            rows = rows[1:]
        # Over TCP, the limit is an exchange of the bytes between the ranks of each pair. Between
        # network namespaces this limit holds only for two ranks: more ranks can communicate more
        # cheaply within a namespace.
        pairs = case.ranks == 2 or case.ranks % 2 == 0 and self.network.name == "tcp"
        if "raw" in self.programs and pairs and case.collective == "all_reduce":
            rows.append(("limit", "raw", case.exchange().row("ordinary", self.budget_ms)))
        return rows

    def measure(self, case):
        """Returns all samples of a case: a list of {column, median_us, hop_us, state, ...}."""
        rows = self.contestants(case)
        if not rows:
            return []
        samples = []
        out = set()                      # columns that failed or are not offered
        for turn in range(2 * self.repeats):
            if turn >= self.repeats and self._enough(samples, rows, out):
                break
            # Each turn starts with a different implementation.
            order = rows[turn % len(rows):] + rows[:turn % len(rows)]
            hop_us = self.hop()
            for column, implementation, row in order:
                if column in out:
                    continue
                self.progress(case, column, turn, self.repeats)
                answer = self._ask(case, implementation, row)
                if answer is None or answer.get("unsupported"):
                    out.add(column)
                    continue
                after_us = self.hop()
                before_us, hop_us = hop_us, after_us
                if state_of(before_us) == state_of(after_us):
                    samples.append({**answer, "column": column, "state": state_of(after_us),
                                    "hop_us": min(before_us, after_us)})
        return samples

    def _enough(self, samples, rows, out):
        wanted = {column for column, _, _ in rows} - out
        for state in ("near", "far"):
            counts = [sum(s["column"] == column and s["state"] == state for s in samples)
                      for column in wanted]
            if counts and min(counts) * 2 >= self.repeats:
                return True
        return not wanted

    def _ask(self, case, implementation, row):
        try:
            answer = self.job(implementation, case.ranks).ask(row, ROW_SECONDS)
        except JobError as error:
            self.errors.append(f"{case.label()}: {error}")
            print(f"bench: {case.label()}: {error}", file=sys.stderr)
            self.drop_job(implementation, case.ranks)
            return None
        if "version" in answer:
            self.versions[implementation] = answer["version"]
        return answer

    def one_switch(self):
        if self.switch_us is None:
            self.switch_us = self.job("limit", 1).ask("switch", ROW_SECONDS)["median_us"]
        return self.switch_us


def summarise(case, samples, bench):
    """Returns the result of a case: the medians in the state with samples from the most implementations."""
    def medians(state):
        found = {}
        for sample in samples:
            if sample["state"] == state:
                found.setdefault(sample["column"], []).append(sample)
        return found

    by_state = {state: medians(state) for state in ("near", "far")}
    state = max(by_state, key=lambda s: (len(by_state[s]),
                                         min((len(v) for v in by_state[s].values()), default=0)))
    chosen = by_state[state]
    result = {"case": case, "state": state, "times_us": {}, "least_us": {}, "wrong": [],
              "samples": {}}
    if not chosen:
        return result
    result["hop_us"] = statistics.median(s["hop_us"] for v in chosen.values() for s in v)
    for column, found in chosen.items():
        result["samples"][column] = len(found)
        if any(sample["wrong"] for sample in found):
            result["wrong"].append(column)
            continue
        result["times_us"][column] = statistics.median(s["median_us"] for s in found)
        result["least_us"][column] = min(s.get("min_us", s["median_us"]) for s in found)
    times = result["times_us"]
    peers = [(times[name], name) for name in PEERS if name in times]
    if peers:
        result["best_us"], result["best"] = min(peers)
    result["limit_us"] = limit_us(case, times, result["hop_us"], bench)
    return result


def limit_us(case, times, hop_us, bench):
    """Returns the least time that any implementation can reach on this machine, or None if unknown."""
    cpus = len(os.sched_getaffinity(0))
    turns = -(-case.ranks // cpus) - 1      # further ranks that share one CPU
    waiting = turns * bench.one_switch() if turns else 0.0
    if bench.network.name != "shm":
        return times.get("limit")
    if "limit" in times:
        return times["limit"] + waiting
    if case.collective in ROOTED and not case.fresh:
        return None                         # one-way calls overlap
    if case.bytes <= 256 or case.collective == "barrier":
        return hop_us + waiting
    return None
