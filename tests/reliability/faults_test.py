#!/usr/bin/env python3
"""Every call for memory, a descriptor or a thread fails once: faults_test.py SMALL_JOB UNISONO FAILING_LIBRARY

Then all ranks end, right or with an error that says what was missing; nobody crashes or hangs, and
nothing is left. The full form tries all calls but those for memory, and a sample of those; the quick one a
sample of each.
"""

import concurrent.futures
import pathlib
import random
import sys
import tempfile
import unittest

import jobs

JOB, PROGRAM, LIBRARY = "", "", ""
CALLS = ["mmap", "memfd_create", "socket", "accept4", "epoll_create1", "eventfd", "pthread_create",
         "new"]
WORLDS = ["shm", "tcp"]
RANKS = 3


class Faults(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.files = jobs.files_in_memory()

    def one(self, world, call, at, rank):
        """Returns False if there was no such call any more."""
        process = jobs.new_mark()
        failed = self.scratch / process
        variables = {"FAIL_CALL": call, "FAIL_AT": at, "FAIL_RANK": rank, "FAIL_MARK": failed,
                     "LD_PRELOAD": LIBRARY, "UNISONO_TIMEOUT_MS": 5000,
                     "UNISONO_CONNECT_TIMEOUT_MS": 5000}
        words = [PROGRAM, "run", "-n", RANKS, "--transport", world, "--timeout", "30s", "--env", process]
        # Set for the ranks, not for the launcher.
        program = ["env", *(f"{name}={value}" for name, value in variables.items()), JOB]
        done = jobs.call(*words, "--", *program)
        again = f"{call} number {at} of rank {rank}, {world}"
        said = f"{again}:\n{done.stdout}{done.stderr}"
        self.assertEqual(jobs.wait_for_none(process), [], again)
        self.assertLessEqual(jobs.files_in_memory(), self.files, again)
        if not failed.exists():
            self.assertEqual(done.returncode, 0, said)
            return False
        self.assertIn(done.returncode, (0, 3), said)
        self.assertNotIn("WRONG", said)
        self.assertNotRegex(said, "killed by SIG(SEGV|ABRT|BUS|FPE|ILL|KILL)")
        self.assertNotIn("error[internal]", said)
        return True

    def count(self, world, call, rank):
        """Returns about how many of these calls a rank makes: the number depends on its waits."""
        most = 1
        while most < 4096 and self.one(world, call, most, rank):
            most *= 2
        return most

    def test_some_calls_fail_once(self):
        draw = random.Random(jobs.seed_of(None))
        failed = 0
        for i, call in enumerate(CALLS + ["new"]):
            rank = draw.randrange(RANKS)
            at = draw.randrange(1, 500) if call == "new" else 1
            failed += self.one(WORLDS[i % 2], call, at, rank)
        self.assertGreater(failed, 3)

    @unittest.skipUnless(jobs.FULL, "it takes minutes: run it by make reliability")
    def test_each_call_fails_once(self):
        draw = random.Random(jobs.seed_of(None))
        cases = []
        for world in WORLDS:
            for call in CALLS:
                for rank in range(RANKS) if call != "new" else [draw.randrange(RANKS)]:
                    calls = self.count(world, call, rank)
                    tries = draw.sample(range(1, calls + 1), min(calls, 150))
                    cases += [(world, call, at, rank) for at in tries]
        print(f"{len(cases)} calls", flush=True)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            failed = sum(pool.map(lambda case: self.one(*case), cases))
        print(f"{failed} of them failed")
        self.assertGreater(failed, len(cases) // 3)


if __name__ == "__main__":
    JOB, PROGRAM, LIBRARY = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:4])
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
