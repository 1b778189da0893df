#!/usr/bin/env python3
"""`unisono trace whatif --without rank=R` on jobs in which one rank computes 20 % longer, against the
same jobs without it (synthetic_job.py).

    simulated_change_test.py UNISONO [--seeds 20]

The simulation may be at most 5 % off the job without the slow rank, and off the recording without a
change."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import synthetic_job  # noqa: E402

MOST_OFF = 0.05


def duration_us(job):
    ends = [entry["end"] for entries in job.entries for entry in entries]
    starts = [entry["start"] for entries in job.entries for entry in entries]
    return (max(ends) - min(starts)) * 1e6


def ask(unisono, folder, *change):
    run = subprocess.run([unisono, "trace", "whatif", folder, *change, "--json"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("unisono")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    worst = worst_unchanged = 0.0
    for seed in range(options.seeds):
        slow = synthetic_job.Job("slow compute", seed, factor=1.2)
        even = synthetic_job.Job("slow compute", seed, factor=1.0)
        with tempfile.TemporaryDirectory() as folder:
            slow.write_flight_recorder(folder)
            without = ask(options.unisono, folder, "--without", f"rank={slow.culprits[0]}")
            faster = ask(options.unisono, folder, "--faster", "compute=1.2")
        changed = without["changes"][0]
        off = changed["us"] / duration_us(even) - 1
        unchanged = without["unchanged_us"] / duration_us(slow) - 1
        print(f"seed {seed}, {slow.n} ranks: {100 * off:+.2f} % off, unchanged {100 * unchanged:+.2f} %, "
              f"saves {100 * changed['saves']:.1f} %; {without['verdict']}")
        worst = max(worst, abs(off))
        worst_unchanged = max(worst_unchanged, abs(unchanged))
        saves = faster["changes"][0]["saves"]
        if not 0 < changed["saves"] < 1 or not 0 < saves < 1 - 1 / 1.2 + 0.01:
            sys.exit("a change that must save time saves none, or more than all of it")
    print(f"at most {100 * worst:.2f} % off, unchanged {100 * worst_unchanged:.2f} %")
    return 1 if worst > MOST_OFF or worst_unchanged > MOST_OFF else 0


if __name__ == "__main__":
    sys.exit(main())
