#!/usr/bin/env python3
"""Tests the remains of a job over several hosts whose launcher is told to end, or killed.

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
        """Yields a launcher for each installed shell."""
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
                job.communicate(timeout=600)
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
                job.communicate(timeout=600)
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

    # On a busy machine a rank may start late, so the signal is repeated.
    def strike(self, name, launcher, program, strikes):
        mark = jobs.new_mark()
        done = jobs.call(*self.command(launcher, mark, "sh", "-c", f"[ $RANK = 2 ] || exit 0; {program}",
                                       options=["--chaos", f"{strikes},seed=1"]))
        self.assertEqual(done.returncode, 0, f"{name}: {done.stderr}")
        self.check_nothing_left(mark, name)
        return done

    def test_a_stop_of_chaos_reaches_a_rank_of_another_host(self):
        # Rank 2 prints the time at which it was stopped.
        ticks = ("last=$(date +%s%N); while :; do sleep 0.02; now=$(date +%s%N); "
                 "[ $((now - last)) -lt 500000000 ] || { echo stopped; exit 0; }; last=$now; done")
        stops = ",".join(f"stop=2@{at}s+800ms" for at in (1, 3, 6, 12, 24, 40))
        for name, launcher in self.shells():
            self.assertIn("stopped", self.strike(name, launcher, ticks, stops).stdout, name)

    def test_a_kill_of_chaos_reaches_a_rank_of_another_host(self):
        for name, launcher in self.shells():
            self.strike(name, launcher, "sleep 60; exit 3", "kill=2@1s,kill=2@5s,kill=2@20s,kill=2@40s")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
