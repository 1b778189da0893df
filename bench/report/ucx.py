"""Compares unisono over UCX with Open MPI over UCX (pml ucx), and with unisono's own TCP.

All run the same rows on their own buffers, timed by the same code, in turns, row by row; while one runs, the
others sleep. A time is the median over turns of the median call, in microseconds. A call ends when the
slowest rank ends. Calls are back to back on the same buffers.

  bench/report/ucx.py --over tcp,sm
"""

import argparse
import os
import statistics
import sys

from cases import Case, parse_size
from measure import Bench
from network import Ucx
from table import time_text

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COLUMNS = ["openmpi", "tcp", "unisono"]
PROGRAMS = {"limit": "bench_limits", "openmpi": "bench_peer_openmpi", "tcp": "bench_peer_unisono",
            "unisono": "bench_peer_unisono"}


class Turns(Bench):
    """Measures all three with the same row."""

    def contestants(self, case):
        row = case.row("ordinary", self.budget_ms)
        return [(name, name, row) for name in COLUMNS if name in self.programs]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/report/ucx.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"),
                        help="build folder with the benchmark programs (default: build/release)")
    parser.add_argument("--over", default="tcp,sm", help="UCX's transports (default: tcp,sm)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", default="8,1K,16K,256K,4M,64M")
    parser.add_argument("--collectives", default="all_reduce,all_gather,reduce_scatter,broadcast")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each (default: 5)")
    parser.add_argument("--budget-ms", type=int, default=60, help="timed calls of one turn")
    return parser.parse_args()


def measure(over, arguments):
    """Prints one table. Returns the number of right rows."""
    found = {name: os.path.join(arguments.build, "bench", file)
             for name, file in PROGRAMS.items()}
    programs = {name: path for name, path in found.items() if os.access(path, os.X_OK)}
    if "unisono" not in programs or "limit" not in programs:
        sys.exit("bench: build the benchmark first, or name its folder with --build")
    bench = Turns(programs, arguments.repeats, arguments.budget_ms, lambda *_: None, Ucx(over))
    print(f"\nUCX_TLS={over},self, {arguments.ranks} ranks; us; ratios of unisono over UCX")
    print(f"{'case':26}{'openmpi':>10}{'our tcp':>10}{'our ucx':>10}{'/openmpi':>10}{'/our tcp':>10}")
    wrong = 0
    try:
        for collective in arguments.collectives.split(","):
            for size in (parse_size(word) for word in arguments.sizes.split(",")):
                case = Case(arguments.ranks, collective, size, False)
                samples = bench.measure(case)
                wrong += sum(sample["wrong"] != 0 for sample in samples)
                times = {name: [s["median_us"] for s in samples if s["column"] == name]
                         for name in COLUMNS}
                median = {name: statistics.median(t) for name, t in times.items() if t}
                cells = [time_text(median.get(name)) for name in COLUMNS]
                for base in ("openmpi", "tcp"):
                    ratio = median["unisono"] / median[base] if {base, "unisono"} <= set(median) else None
                    cells.append("-" if ratio is None else f"{ratio:.2f}")
                print(f"{case.label():26}" + "".join(f"{cell:>10}" for cell in cells), flush=True)
    finally:
        bench.close()
    versions = ", ".join(f"{name} {version}" for name, version in sorted(bench.versions.items()))
    print(f"versions: {versions}")
    return wrong


def main():
    arguments = parse_arguments()
    wrong = sum(measure(over, arguments) for over in arguments.over.split(","))
    if wrong:
        print(f"{wrong} rows with wrong results")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
