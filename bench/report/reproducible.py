"""Measures the cost of `reproducible` or `tree_order`: runs the same calls with the default choice and under
UNISONO_ALGORITHM=..., in turns, on hosts that are loopback addresses of this host. Prints ratios of medians
over turns; the last line is their geometric mean.

  bench/report/reproducible.py --layouts 1x4,2x2,4x1
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/report/reproducible.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/tools/unisono/unisono"))
    parser.add_argument("--layouts", default="1x2,1x4,1x8,2x1,4x1,2x2,2x4,4x2", help="hosts x ranks of each")
    parser.add_argument("--collectives", default="all_reduce,reduce,reduce_scatter")
    parser.add_argument("--algorithm", default="reproducible", choices=("reproducible", "tree_order"))
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each (default: 3)")
    return parser.parse_args()


def bench(arguments, layout, choice):
    """Returns the times of one run by (collective, dtype, size), in microseconds."""
    hosts, ranks = (int(word) for word in layout.split("x"))
    place = ["--hosts", ",".join(f"127.0.0.{host + 1}:{ranks}" for host in range(hosts)),
             "--launcher", "env UNISONO_HOST={host} sh -c"] if hosts > 1 else ["-n", str(ranks)]
    command = [arguments.program, "run", "-q", *place, "--", arguments.program, "bench", arguments.collectives,
               "-b", "64K", "-e", "16M", "-f", "16", "-d", arguments.dtypes, "--place", "out", "--format", "jsonl"]
    environment = dict(os.environ, UNISONO_ALGORITHM=choice)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    rows = [row for row in rows if "collective" in row and "time_us" in row]
    if done.returncode != 0 or not rows:
        sys.exit(f"bench: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return {(row["collective"], row["dtype"], row["bytes"]): row["time_us"] for row in rows}


def main():
    arguments = parse_arguments()
    ratios = []
    choices = ("", arguments.algorithm)
    for layout in arguments.layouts.split(","):
        turns = {choice: [] for choice in choices}
        for _ in range(arguments.repeats):
            for choice in choices:
                turns[choice].append(bench(arguments, layout, choice))
        for key in turns[""][0]:
            usual, reproducible = (statistics.median(turn[key] for turn in turns[choice]) for choice in choices)
            ratios.append(reproducible / usual)
            print(f"{layout:6}{key[0]:16}{key[1]:6}{key[2]:>10}{usual:>12.1f}{reproducible:>12.1f}{ratios[-1]:>8.2f}",
                  flush=True)
    print(f"geometric mean of {len(ratios)}: {math.exp(statistics.fmean(map(math.log, ratios))):.2f}")


if __name__ == "__main__":
    main()
