#!/usr/bin/env python3
"""Tests that the ranks of examples/llm name a rank that dies during an answer, and answer again without it.

Rank 0 writes into a pipe that holds less than its answer, and that nobody reads until a rank was killed:
so the answer is begun, and cannot have ended, however fast or slow the machine is.

Usage: death_test.py --llm LLM
"""

import argparse
import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile

TOKENS = 1500
PIPE_BYTES = 4096
LIMIT_S = 120


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--llm", required=True)
    args = parser.parse_args()
    ask = [args.llm, "--model", "random", "--prompt", "hello", "--tokens", str(TOKENS)]
    alone = subprocess.run(ask, capture_output=True, text=True, timeout=LIMIT_S, preexec_fn=have_one_processor)
    wrong = []
    if len(alone.stdout.split()) != TOKENS or len(alone.stdout) < PIPE_BYTES + 500:
        wrong.append(f"one process said {alone.stdout!r} {alone.stderr!r}")
    for victim, keeps_going in ((1, True), (2, True), (1, False)):
        what = f"without rank {victim}{', keeping going' if keeps_going else ''}"
        wrong += [f"{what}: {mistake}" for mistake in kill(ask, victim, keeps_going, alone.stdout)]
    print("\n".join(wrong))
    print(f"{len(wrong)} mistakes")
    return 1 if wrong else 0


def have_one_processor():
    """Binds the process to one processor, because small products are slow if their threads wait for each other on a busy machine."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def kill(ask, victim, keeps_going, answer):
    """Returns the mistakes after this rank of three died."""
    with tempfile.TemporaryDirectory() as folder:
        meet = {"UNISONO_FILE": os.path.join(folder, "meet"), "UNISONO_SIZE": "3", "UNISONO_COLOR": "never"}
        ranks = []
        for rank in range(3):
            ranks.append(subprocess.Popen([*ask, *(["--keep-going"] if keeps_going else [])], bufsize=0,
                                          env={**os.environ, **meet, "UNISONO_RANK": str(rank)},
                                          stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                                          stderr=open(os.path.join(folder, f"said-{rank}"), "w")))
            if rank == 0:
                fcntl.fcntl(ranks[0].stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        try:
            begun = ranks[0].stdout.read(1)
            ranks[victim].send_signal(signal.SIGKILL)
            out = (begun + ranks[0].stdout.read()).decode()
            codes = [rank.wait(LIMIT_S) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        said = [open(os.path.join(folder, f"said-{rank}")).read() for rank in range(3)]
    return list(mistakes(victim, keeps_going, out, codes, said, answer))


def mistakes(victim, keeps_going, out, codes, said, answer):
    want = [0 if keeps_going else 1] * 3
    want[victim] = -signal.SIGKILL
    if codes != want:
        yield f"exit statuses {codes}, not {want}: {said}"
    for rank in {0, 1, 2} - {victim}:
        if not re.search(rf"\brank {victim}\b", said[rank]):
            yield f"rank {rank} does not name it: {said[rank]!r}"
    before, _, again = out.partition("\n# again, with tp=2\n")
    if len(before.split()) >= TOKENS or not answer.startswith(before):
        yield f"before, {len(before.split())} tokens: {before[-60:]!r}"
    if again != (answer if keeps_going else ""):
        yield f"again: {again[:60]!r}..., {len(again)} characters, not {answer[:60]!r}..., {len(answer)}"


if __name__ == "__main__":
    sys.exit(main())
