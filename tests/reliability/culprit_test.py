#!/usr/bin/env python3
"""Tests that every other rank names the rank that brings a job to a stop, whatever the cause.

  culprit_test.py CULPRIT UNISONO [SEED]
"""

import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import jobs

JOB, PROGRAM, SEED = "", "", None
TIMEOUT_MS = 2000 if jobs.FULL else 8000  # so that a busy machine does not make another rank late
KINDS = ["stopped", "busy", "asleep", "receives", "killed", "ended"]
COLLECTIVES = ["barrier", "broadcast", "all_gather", "all_to_all", "all_reduce", "all_reduce_async"]
WORLDS = ["shm", "tcp"]
CASES = 300 if jobs.FULL else 6


class Culprit(unittest.TestCase):
    def one(self, draw, kind, world):
        """Returns the mistakes, and the time in ms until the other ranks got the error."""
        ranks = draw.randrange(2, 6)
        victim = draw.randrange(ranks)
        words = [kind, victim, draw.choice(COLLECTIVES), 8 << draw.randrange(18), draw.randrange(50)]
        with tempfile.TemporaryDirectory() as logs:
            command = [PROGRAM, "run", "-n", ranks, "--transport", world, "--keep-going", "--log-dir", logs,
                       "--env", f"UNISONO_TIMEOUT_MS={TIMEOUT_MS}", "--", JOB, *words]  # fmt: skip
            files = [pathlib.Path(logs) / f"rank-{rank}.out" for rank in range(ranks) if rank != victim]
            job = subprocess.Popen([str(word) for word in command], env=jobs.environment(),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
            jobs.wait_for(lambda: all(file.exists() and file.read_text() for file in files), 60)
            job.send_signal(signal.SIGINT)  # a victim may run forever
            output = job.communicate(timeout=600)[0]
            texts = [file.read_text() for file in files]
        told = [re.match(r"(?s)told of (-?\d+) after (\d+) ms: (.*)", text) for text in texts]
        # A rank that receives from a rank that waits for it may be told first, about the other
        # rank.
        guilty = {victim, (victim + 1) % ranks} if kind == "receives" else {victim}
        wrong = any(match is None or int(match.group(1)) not in guilty
                    or f"rank {victim}" not in match.group(3) for match in told)
        said = " ".join(map(str, command)) + "\n" + output if wrong else ""
        return said, [int(match.group(2)) for match in told if match]

    def test_every_survivor_is_told(self):
        seed = jobs.seed_of(SEED)
        draw = random.Random(seed)
        wrong, waits = [], {}
        for i in range(CASES):
            kind = KINDS[i % len(KINDS)]
            said, ms = self.one(draw, kind, WORLDS[(i + i // len(KINDS)) % 2])
            wrong += [said] if said else []
            waits.setdefault(kind, []).extend(ms)
        for kind, ms in waits.items():
            late = max(ms, default=0) - (0 if kind in ("killed", "ended") else TIMEOUT_MS)
            since = "" if kind in ("killed", "ended") else " after the timeout"
            print(f"{kind}: the others were told at most {late} ms{since}")
        print(f"{CASES - len(wrong)} of {CASES} right")
        self.assertLessEqual(len(wrong), CASES // 100, f"seed {seed}\n" + "\n".join(wrong[:3]))


if __name__ == "__main__":
    JOB, PROGRAM = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
    SEED = sys.argv[3] if len(sys.argv) > 3 else None
    unittest.main(argv=sys.argv[:1])
