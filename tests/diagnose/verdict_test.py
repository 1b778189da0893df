#!/usr/bin/env python3
"""`unisono trace why` on dumps of jobs that have one known thing wrong with them (synthetic_job.py).

    verdict_test.py UNISONO [--seeds 60] [--kind "slow link"] [--keep DIR]

Counts how often the first finding has the right kind and the right ranks. Without --seeds it runs a
few of each kind and requires all of them; with --seeds it requires 99 %."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import synthetic_job  # noqa: E402


def formats_of(kind, seed):
    """Returns the format of a seed: the log has no times, and a missing log gives no information about its rank."""
    if kind in ("other call", "other sizes", "other order", "deadlock") and seed % 4 == 3:
        return "nccl"
    return ("json", "pickle", "json")[seed % 3]


def judge(unisono, kind, seed, folder):
    job = synthetic_job.Job(kind, seed)
    written = formats_of(kind, seed)
    if written == "nccl":
        job.write_nccl_log(folder)
    else:
        job.write_flight_recorder(folder, ("2.9", "2.10")[seed % 2], written == "json")
    run = subprocess.run([unisono, "trace", "why", folder, "--json"], capture_output=True, text=True)
    if run.returncode not in (0, 1):
        return f"failed: {run.stderr}"
    findings = json.loads(run.stdout)["jobs"][0]["findings"]
    if not findings:
        return "nothing found"
    first = findings[0]
    if first["kind"] != kind or first["ranks"] != sorted(job.culprits):
        return f"{first['kind']} {first['ranks']}: {first['text']}  <- {kind} {sorted(job.culprits)}, {job.n} ranks, {written}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("unisono")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--kind", action="append")
    parser.add_argument("--keep")
    options = parser.parse_args()
    wrong = count = 0
    for kind in options.kind or synthetic_job.KINDS:
        wrong_here = 0
        for seed in range(options.seeds or 2):
            with tempfile.TemporaryDirectory() as folder:
                where = folder
                if options.keep:
                    where = os.path.join(options.keep, f"{kind.replace(' ', '-')}-{seed}")
                    os.makedirs(where, exist_ok=True)
                message = judge(options.unisono, kind, seed, where)
            count += 1
            if message:
                wrong_here += 1
                print(f"{kind}, seed {seed}: {message}")
        wrong += wrong_here
        print(f"{kind}: {wrong_here} wrong")
    print(f"{count - wrong} of {count} right")
    return 1 if wrong > (count * 0.01 if options.seeds else 0) else 0


if __name__ == "__main__":
    sys.exit(main())
