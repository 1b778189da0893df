#!/usr/bin/env python3
"""Tests that the ranks of examples/rollout name a rank that dies, on its own side and on the other.

Usage: death_test.py --rollout ROLLOUT
"""

import argparse
import re
import signal
import sys
import tempfile

from job import Job


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program")  # accepted like in all tests of this folder
    parser.add_argument("--rollout", required=True)
    args = parser.parse_args()
    wrong = []
    for victim in (0, 2, 4, 5):
        with tempfile.TemporaryDirectory() as folder:
            wrong += [f"without rank {victim}: {mistake}" for mistake in kill(args.rollout, folder, victim)]
    print("\n".join(wrong))
    print(f"{len(wrong)} mistakes")
    return 1 if wrong else 0


def kill(rollout, folder, victim):
    """Kills a rank while the trainer trains and the engine prints its first answers."""
    with Job(rollout, folder, "--steps", "1000000") as job:
        if "busy" not in job.until("step  20"):
            yield f"no step 20: {job.said(0)}"
            return
        job.ranks[victim].send_signal(signal.SIGKILL)
        job.drain()
        job.until("no such line")
        codes = job.codes()
        want = [1] * 6
        want[victim] = -signal.SIGKILL
        if codes != want:
            yield f"exit statuses {codes}"
        for rank in set(range(6)) - {victim}:
            if not re.search(rf"peer_lost.*\brank {victim}\b", job.said(rank)):
                yield f"rank {rank} does not name it: {job.said(rank)!r}"


if __name__ == "__main__":
    sys.exit(main())
