#!/usr/bin/env python3
"""unisono and Gloo beside processes that do nothing but compute, which want the same cores.

Both run the same rows on buffers of their own, timed by the same code, in turns, row by row; while
one runs the other sleeps, and the others compute all the time. A time is the median over turns of
the median call, in microseconds; a call ends when the slowest rank has it. The ratio is that of the
two columns: below 1 unisono is quicker.

  bench/report/beside.py                        8 busy loops, 2 and 4 ranks
  bench/report/beside.py --busy 0 --ranks 2     nothing beside them
"""

import argparse
import os
import statistics
import subprocess
import sys

from cases import Case, parse_size
from measure import Bench
from network import SharedMemory
from table import time_text

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = {"limit": "bench_limits", "unisono": "bench_peer_unisono", "gloo": "bench_peer_gloo"}
COLUMNS = ["unisono", "gloo"]


class Turns(Bench):
    """Both, each with the same row."""

    def contestants(self, case):
        row = case.row("ordinary", self.budget_ms)
        return [(name, name, row) for name in COLUMNS]

    def hop(self):
        return 0.0  # cores that others use are neither near nor far


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/report/beside.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"),
                        help="build folder with the benchmark programs (default: build/release)")
    parser.add_argument("--busy", type=int, default=8, help="processes that compute (default: 8)")
    parser.add_argument("--ranks", default="2,4", help="numbers of ranks (default: 2,4)")
    parser.add_argument("--sizes", default="8,64K,16M", help="bytes of the all_reduces")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each (default: 5)")
    parser.add_argument("--budget-ms", type=int, default=500, help="timed calls of one turn")
    return parser.parse_args()


def measure(bench, case):
    """One row. How many samples are wrong."""
    samples = bench.measure(case)
    times = {name: statistics.median(s["median_us"] for s in samples if s["column"] == name)
             for name in {s["column"] for s in samples}}
    ratio = f"{times['unisono'] / times['gloo']:.3f}" if len(times) == 2 else "-"
    cells = [time_text(times.get(name)) for name in COLUMNS] + [ratio]
    print(f"{case.label():26}" + "".join(f"{cell:>12}" for cell in cells), flush=True)
    return sum(sample["wrong"] != 0 for sample in samples)


def main():
    arguments = parse_arguments()
    programs = {name: os.path.join(arguments.build, "bench", file) for name, file in PROGRAMS.items()}
    missing = [path for path in programs.values() if not os.access(path, os.X_OK)]
    if missing:
        sys.exit(f"bench: {missing[0]} is missing; build the benchmark with Gloo first, or name its "
                 "folder with --build")
    print(f"beside {arguments.busy} busy loops on {len(os.sched_getaffinity(0))} CPUs; us, medians of "
          f"{arguments.repeats} turns")
    print(f"{'ranks, call':26}" + "".join(f"{name:>12}" for name in [*COLUMNS, "ratio"]))
    neighbours = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                  for _ in range(arguments.busy)]
    bench = Turns(programs, arguments.repeats, arguments.budget_ms, lambda *_: None, SharedMemory())
    wrong = 0
    try:
        for ranks in (int(word) for word in arguments.ranks.split(",")):
            calls = [("all_reduce", parse_size(size)) for size in arguments.sizes.split(",")]
            for collective, size in [*calls, ("barrier", 0)]:
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
