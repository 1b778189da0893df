#!/usr/bin/env python3
"""Every call for memory, a descriptor or a thread fails once: faults_test.py SMALL_JOB UNISONO FAILING_LIBRARY

Then all ranks end, right or with an error that says what was missing; nobody crashes or hangs, and
nothing is left. The full form tries all calls but malloc, and a sample of those; the quick one a
sample of each.
"""

import pathlib
import random
import sys
import tempfile
import unittest

import jobs

JOB, PROGRAM, LIBRARY = "", "", ""
CALLS = ["mmap", "memfd_create", "socket", "accept4", "epoll_create1", "eventfd", "pthread_create",
         "malloc"]
WORLDS = {"shm": {}, "tcp": {"UNISONO_TLS": "0"}}
RANKS = 3


class Faults(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.mark = pathlib.Path(scratch.name) / "failed"
        self.files = jobs.files_in_memory()

    def one(self, world, call, at, rank):
        """False: there was no such call any more."""
        self.mark.unlink(missing_ok=True)
        process = jobs.new_mark()
        variables = {"FAIL_CALL": call, "FAIL_AT": at, "FAIL_RANK": rank, "FAIL_MARK": self.mark,
                     "LD_PRELOAD": LIBRARY, "UNISONO_TIMEOUT_MS": 5000,
                     "UNISONO_CONNECT_TIMEOUT_MS": 5000}
        words = [PROGRAM, "run", "-n", RANKS, "--transport", world, "--timeout", "30s", "--env", process]
        # For the ranks and not for the launcher.
        program = ["env", *(f"{name}={value}" for name, value in variables.items()), JOB]
        done = jobs.call(*words, "--", *program)
        again = f"{call} number {at} of rank {rank}, {world}"
        said = f"{again}:\n{done.stdout}{done.stderr}"
        self.assertEqual(jobs.wait_for_none(process), [], again)
        self.assertLessEqual(jobs.files_in_memory(), self.files, again)
        if not self.mark.exists():
            self.assertEqual(done.returncode, 0, said)
            return False
        self.assertIn(done.returncode, (0, 3), said)
        self.assertNotIn("WRONG", said)
        self.assertNotIn("killed by", said)
        self.assertNotIn("error[internal]", said)
        return True

    def count(self, world, call, rank):
        """How many of these calls a rank makes: doubling, then halving."""
        most = 1
        while self.one(world, call, most, rank):
            most *= 2
        least = most // 2
        while most - least > max(1, most // 16):
            middle = (least + most) // 2
            least, most = (middle, most) if self.one(world, call, middle, rank) else (least, middle)
        return least

    def test_each_call_fails_once(self):
        seed = jobs.seed_of(None)
        draw = random.Random(seed)
        for world in WORLDS:
            for call in CALLS:
                rank = draw.randrange(RANKS)
                calls = self.count(world, call, rank)
                tries = min(calls, 200 if jobs.FULL else 3)
                print(f"{world}: {call} of rank {rank}: {tries} of {calls}", flush=True)
                for at in draw.sample(range(1, calls + 1), tries):
                    with self.subTest(seed=seed):
                        self.one(world, call, at, rank)


if __name__ == "__main__":
    JOB, PROGRAM, LIBRARY = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:4])
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
