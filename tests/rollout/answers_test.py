#!/usr/bin/env python3
"""Tests that examples/rollout answers with the weights of the steps that it names, and never delays the trainer.

Answers under several layouts of both sides are compared with those of one process that reads the checkpoints. Then
the engine is stopped at its first answers: the trainer must do all its steps, and skip the transfers between.

Usage: answers_test.py --program UNISONO --rollout ROLLOUT
"""

import argparse
import re
import subprocess
import sys
import tempfile

from job import LIMIT_S, Job

STEPS = 30
LAYOUTS = ((6, "dp=2,tp=2 sp"), (5, "dp=2 zero=3"), (4, "pp=2 1f1b m=4"))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--rollout", required=True)
    args = parser.parse_args()
    wrong = []
    for ranks, layout in LAYOUTS:
        with tempfile.TemporaryDirectory() as folder:
            wrong += [f"{layout} on {ranks}: {mistake}" for mistake in answers(args, ranks, layout, folder)]
    with tempfile.TemporaryDirectory() as folder:
        wrong += [f"engine stopped: {mistake}" for mistake in stopped_engine(args.rollout, folder)]
    print("\n".join(wrong))
    print(f"{len(wrong)} mistakes")
    return 1 if wrong else 0


def answers(args, ranks, layout, folder):
    job = run(args.program, "run", "-n", str(ranks), "--", args.rollout, "--layout", layout, "--steps", str(STEPS),
              "--save", folder)
    answered = steps(r"engine +step +(\d+):", job.stdout)
    given = steps(r"trainer +step +(\d+): loss [\d.]+$", job.stdout)
    if job.returncode != 0 or answered != given or answered[:1] != [10] or answered[-1:] != [STEPS]:
        yield f"exit status {job.returncode}: {job.stdout} {job.stderr}"
        return
    if not re.search(r"sends ([\d.]+) MiB; no plan sends less than \1 MiB", job.stdout):
        yield f"not the fewest bytes: {job.stdout}"
    alone = run(args.rollout, "--compare", folder)
    all_same = "{0} of the engine's {0} answers are".format(10 * len(answered))
    if (alone.returncode != 0 or all_same not in alone.stdout
            or steps(r"alone +step +(\d+): same tokens in 10 answers", alone.stdout) != answered):
        yield f"compared with one process: {alone.stdout} {alone.stderr}"


def stopped_engine(rollout, folder):
    with Job(rollout, folder, "--steps", "40") as job:
        if not job.until("40 steps done"):
            yield f"the trainer stops: {job.said(0)}"
            return
        if job.ranks[4].poll() is not None:
            yield f"the engine has not come to a stop: {job.said(4)}"
        engine = job.drain()
        last = job.until("transfers")
        codes = job.codes()
    if codes != [0] * 6 or "2 transfers" not in last or "2 skipped" not in last or steps(r"step +(\d+)", engine) != [
            10, 40]:
        yield f"{codes}: {last!r} {engine!r}"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)


def steps(pattern, text):
    return [int(step) for step in re.findall(pattern, text, re.MULTILINE)]


if __name__ == "__main__":
    sys.exit(main())
