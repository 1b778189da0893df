#!/usr/bin/env python3
"""What is left when the launcher of a job over several hosts is told to end, or killed.

  launcher_test.py UNISONO

The hosts are this one, under another name each, behind a launcher that execs one of the shells that
may be /bin/sh there.
"""

import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import jobs

PROGRAM = ""
SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}
FOR_EVER = ["bench", "all_reduce", "-b", "64K", "-e", "64K", "-n", "100000000"]


class Launcher(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.before = jobs.files_in_memory()

    def shells(self):
        """A launcher for each shell that is here."""
        for name, words in SHELLS.items():
            if shutil.which(words[0]) is None:
                print(f"{name} is not installed: left out")
                continue
            wrapper = self.scratch / name
            wrapper.write_text(f"#!/bin/sh\nexec {' '.join(words)}\n")
            wrapper.chmod(0o755)
            yield name, str(wrapper)

    def command(self, launcher, mark, *program, options=()):
        return [PROGRAM, "run", "--hosts", "127.0.0.1:2,localhost:1", "--launcher", launcher,
                "--transport", "tcp", "--env", mark, *options, "--", *program]

    def check_nothing_left(self, mark, message):
        self.assertEqual(jobs.wait_for_none(mark), [], message)
        left = jobs.wait_for(lambda: not (jobs.files_in_memory() - self.before), 5)
        self.assertTrue(left, f"{message}: {jobs.files_in_memory() - self.before}")

    def test_its_end_is_that_of_the_job(self):
        for name, launcher in self.shells():
            for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
                message = f"{name}, {number.name}"
                mark = jobs.new_mark()
                job = subprocess.Popen(self.command(launcher, mark, PROGRAM, *FOR_EVER),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env=jobs.environment())
                self.assertIn("3 ranks", job.stdout.readline(), message)
                time.sleep(0.2)
                begin = time.monotonic()
                job.send_signal(number)
                job.communicate(timeout=30)
                wanted = -number if number == signal.SIGKILL else 128 + number
                self.assertEqual(job.returncode, wanted, message)
                self.check_nothing_left(mark, message)
                self.assertLess(time.monotonic() - begin, 10, message)

    def test_a_rank_that_will_not_end_is_killed(self):
        stubborn = "trap '' TERM INT; echo up; while :; do sleep 0.1; done"
        for name, launcher in self.shells():
            for number in (signal.SIGKILL, signal.SIGTERM) if jobs.FULL else (signal.SIGKILL,):
                message = f"{name}, {number.name}"
                mark = jobs.new_mark()
                job = subprocess.Popen(self.command(launcher, mark, "sh", "-c", stubborn),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env=jobs.environment())
                self.assertIn("up", job.stdout.readline(), message)
                job.send_signal(number)
                job.communicate(timeout=30)
                self.check_nothing_left(mark, message)

    def test_exit_codes_come_through_every_shell(self):
        for name, launcher in self.shells():
            mark = jobs.new_mark()
            done = jobs.call(*self.command(launcher, mark, "sh", "-c",
                                           "[ $RANK != 1 ] || exit 7; exec sleep 30"))
            self.assertEqual(done.returncode, 7, f"{name}: {done.stderr}")
            self.assertIn("rank 1 ", done.stderr, name)
            self.check_nothing_left(mark, name)
            done = jobs.call(*self.command(launcher, mark, "true"))
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.check_nothing_left(mark, name)

    def test_signals_of_chaos_reach_a_rank_of_another_host(self):
        # Rank 2 says when it was stopped: its clock goes on. On a busy machine it takes a while until it
        # has begun, and until it has said so: only then it is stopped, and killed.
        ticks = ("[ $RANK = 2 ] || exec sleep 2; last=$(date +%s%N); while :; do sleep 0.02; "
                 "now=$(date +%s%N); [ $((now - last)) -lt 400000000 ] || echo stopped; last=$now; "
                 "done")
        for name, launcher in self.shells():
            mark = jobs.new_mark()
            done = jobs.call(*self.command(
                launcher, mark, "sh", "-c", ticks,
                options=["--chaos", "stop=2@2s+800ms,kill=2@6s,seed=1"]))
            self.assertEqual(done.returncode, 0, f"{name}: {done.stderr}")
            self.assertIn("stopped", done.stdout, name)
            self.check_nothing_left(mark, name)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
