#!/usr/bin/env python3
"""Traffic that is not of the job, at the ports where ranks listen: strangers_test.py UNISONO

While rank 0 waits for rank 1, it is scanned, flooded and dawdled at (D1, D2). The job comes about all
the same, its result is right, and the descriptors of rank 0 stay bounded.
"""

import os
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import jobs
from ports import free_port

PROGRAM = ""
SECONDS = 30 if jobs.FULL else 2
DAWDLERS = 500 if jobs.FULL else 200
MOST_DESCRIPTORS = 64 + 40  # strangers served at once, and a rank's usual descriptors
HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(200)  # the beginning of TLS
GREETINGS = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", HELLO, b"", b"\0", b"SSH-2.0-scan\r\n", os.urandom(65536)]


class Strangers(unittest.TestCase):
    def setUp(self):
        self.port = free_port()
        self.mark = jobs.new_mark()
        self.ranks = []
        self.addCleanup(lambda: [rank.kill() for rank in self.ranks])

    def start(self, rank):
        variables = {"UNISONO_RANK": str(rank), "UNISONO_SIZE": "2", "UNISONO_TRANSPORT": "tcp",
                     "UNISONO_ADDRESS": f"127.0.0.1:{self.port}", "UNISONO_TOKEN": "t" * 32,
                     "UNISONO_JOB": "strangers", "UNISONO_CONNECT_TIMEOUT_MS": "100000"}
        process = subprocess.Popen(
            [PROGRAM, "bench", "all_reduce", "-b", "64K", "-e", "64K", "-n", "20"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=jobs.environment(**variables))
        self.ranks.append(process)
        return process

    def dial(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.ranks[0].pid}/fd"))

    def check_that_the_job_comes_about(self, seconds):
        begin = time.monotonic()
        self.start(1)
        out, err = self.ranks[0].communicate(timeout=600)
        took = time.monotonic() - begin
        other = self.ranks[1].communicate(timeout=600)
        self.assertEqual([rank.returncode for rank in self.ranks], [0, 0], err + str(other))
        rows = [line.split() for line in out.splitlines() if not line.startswith("#")]
        self.assertEqual([row[-1] for row in rows if row], ["0", "0"], out)
        self.assertLess(took, seconds)

    def test_a_flood_of_strangers(self):
        self.start(0)
        self.assertTrue(jobs.wait_for(lambda: jobs.listening(self.port)))
        most = 0
        dialled = 0
        draw = random.Random(jobs.seed_of(None))
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with self.dial() as stranger:
                try:
                    stranger.sendall(draw.choice(GREETINGS))
                except OSError:
                    pass  # disconnected
            dialled += 1
            most = max(most, self.descriptors()) if dialled % 20 == 0 else most
        print(f"{dialled / SECONDS:.0f} strangers a second; {most} descriptors at most")
        self.assertGreater(dialled / SECONDS, 100)
        self.assertLessEqual(most, MOST_DESCRIPTORS)
        self.check_that_the_job_comes_about(10)

    def test_the_flood_goes_on_while_the_ranks_meet(self):
        self.start(0)
        self.assertTrue(jobs.wait_for(lambda: jobs.listening(self.port)))
        over = threading.Event()

        def flood():
            while not over.is_set():
                try:
                    with self.dial() as stranger:
                        stranger.sendall(GREETINGS[0])
                except OSError:
                    time.sleep(0.01)  # the rendezvous has ended

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            self.check_that_the_job_comes_about(15)
        finally:
            over.set()
            thread.join()

    def test_many_that_dawdle(self):
        """Connections that send one byte per second, and more of them than are served at the same time."""
        self.start(0)
        self.assertTrue(jobs.wait_for(lambda: jobs.listening(self.port)))
        dawdlers = [self.dial() for _ in range(DAWDLERS)]
        try:
            for _ in range(3 if jobs.FULL else 1):
                for dawdler in dawdlers:
                    try:
                        dawdler.send(b"\0")
                    except OSError:
                        pass  # dropped
                time.sleep(1)
            self.assertLessEqual(self.descriptors(), MOST_DESCRIPTORS)
            self.check_that_the_job_comes_about(10)
        finally:
            for dawdler in dawdlers:
                dawdler.close()


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
