#!/usr/bin/env python3
"""Ranks that are stopped, or get no processor: a time limit takes effect when it should, and only then.

  stalls_test.py SMALL_JOB UNISONO
"""

import pathlib
import re
import subprocess
import sys
import unittest

import jobs

JOB, PROGRAM = "", ""
ROUNDS = "1000000"
BUSY, SECONDS = (100, 180) if jobs.FULL else (20, 6)


def run(world, chaos, rounds, timeout_ms, *more):
    return jobs.call(PROGRAM, "run", "-n", 4, "--transport", world, *more, "--chaos", chaos, "--env",
                     f"UNISONO_TIMEOUT_MS={timeout_ms}", "--", JOB, rounds)


class Stalls(unittest.TestCase):
    def test_a_short_stop_is_no_alarm(self):
        for world in ("shm", "tcp"):
            done = run(world, "stop=1@200ms+1s,stop=3@1500ms+800ms,kill=0@3s,seed=1", ROUNDS, 3000)
            # No event occurred before the requested end.
            ends = [float(end) for end in re.findall(r" after ([\d.]+) s \(", done.stderr)]
            self.assertGreaterEqual(min(ends, default=0), 2.9, done.stderr)
            self.assertIn("rank 0 ", done.stdout, world)
            self.assertNotIn("error[timeout]", done.stdout, world)

    def test_a_long_stop_is_a_timeout_and_the_woken_rank_is_told(self):
        for world in ("shm", "tcp"):
            # Not earlier, because on a busy machine the rendezvous takes up to a second.
            done = run(world, "stop=2@3s+6s,seed=1", ROUNDS, 1000, "--keep-going")
            said = done.stdout
            # The three waiting ranks name the stopped rank when the time is over, even if the first
            # rank to give up waits for another rank that waits for it.
            first = re.split(r"chaos: .*SIGCONT", said)[0]
            self.assertIn("error[timeout]", first, world)
            named = "rank 2 is stopped" if world == "shm" else r"rank 2\b"
            self.assertRegex(first, named, world)
            self.assertRegex(done.stderr, r"rank 2 .*<- first failure")
            # It wakes at 9 s and ends by itself, with an error that states the reason.
            woken = re.findall(r"^\S*:2 (error\[\w+\]: .*)", said, re.MULTILINE)
            self.assertEqual(len(woken), 1, f"{world}: {said}")
            self.assertRegex(woken[0], r"error\[(timeout|peer_lost|aborted)\]: .*rank \d", world)
            self.assertNotIn("killed by SIG", done.stderr, world)
            self.assertNotRegex(done.stderr, r"rank 2 +stopped by the launcher", world)

    def test_ranks_that_get_no_processor_raise_no_alarm(self):
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(BUSY)]
        try:
            for world in ("shm", "tcp"):
                done = run(world, f"kill=3@{SECONDS // 2}s,seed=1", ROUNDS, 5000)
                self.assertRegex(done.stdout, r"error\[peer_lost\]: .*rank 3", world)
                self.assertNotIn("error[timeout]", done.stdout, world)
        finally:
            for process in busy:
                process.kill()
            for process in busy:
                process.wait()


if __name__ == "__main__":
    JOB, PROGRAM = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
