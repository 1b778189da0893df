#!/usr/bin/env python3
"""Compares unisono with another library while processes that only compute compete for the same cores.

Both libraries run the same rows on their own buffers, timed by the same code, in turns, row by row. One
library sleeps while the other runs; the other processes compute all the time. A call ends when the slowest
rank ends. Times are in microseconds, as medians over turns of a turn's median call and of its mean call. A
rank that lost its core waits for milliseconds; the median call does not show this, but the mean does. A ratio
below 1 means that unisono is faster.

  bench/report/beside.py                        8 busy loops, 2 and 4 ranks
  bench/report/beside.py --busy 0 --ranks 2     no competing processes
  bench/report/beside.py --busy 2 --peer openmpi --calls all_reduce:8,all_to_all:1M
"""

import argparse
import os
import statistics
import subprocess
import sys

from cases import Case, parse_size
from measure import PEERS, Bench
from network import SharedMemory
from table import time_text

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Turns(Bench):
    """Measures unisono and a peer with the same row."""

    def __init__(self, peer, *rest):
        super().__init__(*rest)
        self.columns = ["unisono", peer]

    def contestants(self, case):
        row = case.row("ordinary", self.budget_ms)
        return [(name, name, row) for name in self.columns]

    def hop(self):
        return 0.0  # with busy cores, near and far mean nothing


def parse_calls(text):
    calls = [call.partition(":") for call in text.split(",")]
    return [(collective, parse_size(size or "0")) for collective, _, size in calls]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/report/beside.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"),
                        help="build folder with the benchmark programs (default: build/release)")
    parser.add_argument("--busy", type=int, default=8, help="processes that compute (default: 8)")
    parser.add_argument("--ranks", default="2,4", help="numbers of ranks (default: 2,4)")
    parser.add_argument("--peer", default="gloo", choices=PEERS, help="the other library (default: gloo)")
    parser.add_argument("--calls", type=parse_calls,
                        default="all_reduce:8,all_reduce:64K,all_reduce:16M,barrier",
                        help="collectives with their bytes, such as all_reduce:8,all_to_all:1M,barrier")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each (default: 5)")
    parser.add_argument("--budget-ms", type=int, default=500, help="timed calls of one turn")
    return parser.parse_args()


def median_of(samples, name, what):
    """Returns the median, or None if there are no samples."""
    times = [sample[what] for sample in samples if sample["column"] == name]
    return statistics.median(times) if times else None


def measure(bench, case):
    """Measures and prints one row. Returns the number of wrong samples."""
    samples = bench.measure(case)
    cells = []
    for what in ("median_us", "mean_us"):
        us, peer = (median_of(samples, name, what) for name in bench.columns)
        cells += [time_text(us), time_text(peer), f"{us / peer:.3f}" if us and peer else "-"]
    print(f"{case.label():26}" + "".join(f"{cell:>10}" for cell in cells), flush=True)
    return sum(sample["wrong"] != 0 for sample in samples)


def main():
    arguments = parse_arguments()
    files = {"limit": "bench_limits", "unisono": "bench_peer_unisono",
             arguments.peer: f"bench_peer_{arguments.peer}"}
    programs = {name: os.path.join(arguments.build, "bench", file) for name, file in files.items()}
    missing = [path for path in programs.values() if not os.access(path, os.X_OK)]
    if missing:
        sys.exit(f"bench: {missing[0]} is missing; build the benchmark with that library first, "
                 "or name its folder with --build")
    print(f"beside {arguments.busy} busy loops on {len(os.sched_getaffinity(0))} CPUs; us, medians of "
          f"{arguments.repeats} turns")
    neighbours = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                  for _ in range(arguments.busy)]
    bench = Turns(arguments.peer, programs, arguments.repeats, arguments.budget_ms, lambda *_: None,
                  SharedMemory())
    print(f"{'median, then mean':26}" + "".join(f"{name:>10}" for name in 2 * [*bench.columns, "ratio"]))
    wrong = 0
    try:
        for ranks in (int(word) for word in arguments.ranks.split(",")):
            for collective, size in arguments.calls:
                wrong += measure(bench, Case(ranks, collective, size, False))
    finally:
        bench.close()
        for process in neighbours:
            process.kill()
    if wrong:
        print(f"{wrong} samples with wrong results")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
