#!/usr/bin/env python3
"""Jobs that lack a resource: shared memory, descriptors, system calls, memory.

  resources_test.py UNISONO

Each runs right, or says in a sentence what it did not get. Nothing hangs, no rank dies by a signal,
nothing is left.
"""

import os
import pathlib
import platform
import random
import signal
import subprocess
import sys
import time
import unittest

import jobs

PROGRAM = ""
HERE = pathlib.Path(__file__).resolve().parent
ALL = ["bench", "all", "-b", "64", "-e", "256K", "-f", "4096", "--time-per-row", "1ms"]
FOR_EVER = ["bench", "all_reduce", "-b", "64K", "-e", "64K", "-n", "100000000"]
WORLDS = {"shm": [], "tcp": ["--transport", "tcp"]}


class Resources(unittest.TestCase):
    def setUp(self):
        self.before = jobs.files_in_memory()

    def tearDown(self):
        left = jobs.wait_for(lambda: not (jobs.files_in_memory() - self.before), 5)
        self.assertTrue(left, jobs.files_in_memory() - self.before)

    def check_right(self, done, message):
        self.assertEqual(done.returncode, 0, f"{message}: {done.stdout}{done.stderr}")
        rows = [line for line in done.stdout.splitlines() if line and not line.startswith("#")]
        self.assertGreater(len(rows), 20, message)
        self.assertEqual([row for row in rows if row.split()[-1] != "0"], [], message)

    def check_right_or_named(self, done, message):
        if done.returncode != 0:
            self.assertIn(done.returncode, (2, 3), f"{message}: {done.stderr}")
            self.assertRegex(done.stderr, r"error\[(resource|config|connection)\]: \S+ \S+", message)
            self.assertNotIn("killed by", done.stderr, message)
            return
        self.check_right(done, message)

    def ranks(self, world, *limiter, ranks=3):
        """`limiter` precedes the program of each rank, not the launcher."""
        return jobs.call(PROGRAM, "run", "-n", ranks, *WORLDS[world], "--", *limiter, PROGRAM, *ALL)

    def cases(self, *names):
        """Yields each case with every kind of world; in the quick form with one of them."""
        worlds = list(WORLDS)
        for i, name in enumerate(names):
            for world in (worlds if jobs.FULL else [worlds[i % 2]]):
                yield world, name

    def test_dev_shm_small_full_read_only_or_absent(self):
        job = f"{PROGRAM} run -n 3 -- {PROGRAM} {' '.join(ALL)}"
        small = "mount -t tmpfs -o size={} none /dev/shm"
        cases = {"64 MB": small.format("64m"), "1 MB": small.format("1m"),
                 "full": small.format("1m") + "; head -c 2M /dev/zero >/dev/shm/full 2>/dev/null",
                 "read-only": "mount -t tmpfs -o ro,size=1m none /dev/shm",
                 "absent": "mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3"}
        for name, preparation in cases.items():
            done = jobs.call("unshare", "-m", "sh", "-c", f"{preparation}; {job}")
            if "unshare failed" in done.stderr:
                self.skipTest("this user may not mount here")
            self.check_right(done, name)
            self.assertEqual(done.stderr, "", name)

    def test_limits_of_the_process(self):
        for world, limit in self.cases("--nofile=8", "--nofile=16", "--nofile=32", "--nofile=128",
                                       "--memlock=0", "--as=60000000", "--as=150000000",
                                       "--as=400000000", "--fsize=0", "--sigpending=0"):
            self.check_right_or_named(self.ranks(world, "prlimit", limit), f"{world} {limit}")

    def test_memory_that_runs_out_at_any_time_is_named(self):
        """The least memory of a rank depends on the build: somewhere above it, memory runs out during the job."""
        for megabytes in range(52, 84, 2 if jobs.FULL else 4):
            limit = f"--as={megabytes}000000"
            self.check_right_or_named(self.ranks("tcp", "prlimit", limit), limit)

    def test_a_limit_on_files_is_named(self):
        done = self.ranks("shm", "prlimit", "--fsize=1000000")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"error\[resource\]: shared memory of \d+ bytes failed: File too")

    def test_no_more_processes(self):
        # A limit of processes does not apply to root.
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        reset = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        done = jobs.call(*reset, "prlimit", "--nproc=3:3", PROGRAM, "run", "-n", 4, "--", PROGRAM, *ALL)
        if "Permission denied" in done.stderr:
            self.skipTest("another user cannot run the program from here")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("ulimit -u", done.stderr)

    def test_system_calls_that_a_container_forbids(self):
        if platform.machine() != "x86_64":
            self.skipTest("the numbers of system calls here are those of x86-64")
        for world, calls in self.cases("process_vm_readv", "epoll_create1", "pidfd_open", "eventfd2",
                                       "memfd_create", "membarrier", "sched_setaffinity",
                                       "mbind,get_mempolicy,process_vm_readv,membarrier,pidfd_open"):
            for error in ("EPERM", "ENOSYS") if jobs.FULL else ("EPERM",):
                done = self.ranks(world, sys.executable, HERE / "deny.py", calls, error)
                if "no seccomp" in done.stderr:
                    self.skipTest(done.stderr)
                self.check_right_or_named(done, f"{world} {calls} {error}")

    def test_a_launcher_without_memory_for_its_words(self):
        if platform.machine() != "x86_64":
            self.skipTest("the numbers of system calls here are those of x86-64")
        done = jobs.call(sys.executable, HERE / "deny.py", "memfd_create", "EPERM", PROGRAM, "run",
                         "-n", 2, "--", "sh", "-c", "echo words: ${UNISONO_LAUNCHER-none}")
        if "no seccomp" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        # Equal lines of two ranks become one if they arrive together.
        words = [line.partition("words: ")[2] for line in done.stdout.splitlines()]
        expected = ["none"] if "[ranks 0,1]" in done.stdout else ["none"] * 2
        self.assertEqual(words, expected, done.stdout + done.stderr)

    def test_a_rank_killed_for_want_of_memory_is_named(self):
        group = pathlib.Path("/sys/fs/cgroup/memory") / f"unisono-test-{os.getpid()}"
        try:
            group.mkdir()
            limit = group / "memory.limit_in_bytes"
            limit.write_text("200000000")
        except OSError as error:
            self.skipTest(f"no memory cgroup can be made here: {error}")
        greedy = (f"if [ $RANK = 2 ]; then echo $$ >{group}/cgroup.procs; "
                  "(sleep 1; head -c 2G /dev/zero | tail >/dev/null; kill -9 $$) & fi; "
                  f"exec {PROGRAM} {' '.join(FOR_EVER)}")
        try:
            done = jobs.call(PROGRAM, "run", "-n", "4", "--", "sh", "-c", greedy)
        finally:
            jobs.wait_for(lambda: not (group / "cgroup.procs").read_text(), 5)
            group.rmdir()
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"rank 2 \(pid \d+\) is gone: killed by SIGKILL")
        self.assertIn("out of memory? try: dmesg", done.stderr)

    def test_a_job_that_is_killed_leaves_nothing(self):
        draw = random.Random(jobs.seed_of(None))
        for _ in range(100 if jobs.FULL else 10):
            mark = jobs.new_mark()
            world = draw.choice(list(WORLDS))
            job = subprocess.Popen(
                [PROGRAM, "run", "-n", "4", *WORLDS[world], "--env", mark, "--", PROGRAM, *FOR_EVER],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=jobs.environment())
            time.sleep(draw.uniform(0, 0.3))
            everybody = jobs.marked(mark)
            for pid in [job.pid] + [pid for pid, _ in everybody]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            job.wait()
            self.assertEqual(jobs.wait_for_none(mark), [], world)
        self.check_right(self.ranks("tcp"), "the next job")


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
