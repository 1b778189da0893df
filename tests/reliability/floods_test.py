#!/usr/bin/env python3
"""Worlds that meet under a flood, and worlds that hang in a circle of groups: floods_test.py UNISONO CROSSED

Four ranks meet over TCP, plain, with checksums and with TLS, while strangers knock at the port of rank 0, 100 or 300 a
second or as fast as they can. And ranks wait for each other in different groups, on one host, on several and on one
each: the error of every rank names the circle.
"""

import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import jobs
from ports import free_port

PROGRAM = ""
CROSSED = ""
WORLDS = 30 if jobs.FULL else 1
CIRCLES = 60 if jobs.FULL else 6
PROTECTION = {"plain": {"UNISONO_CHECKSUM": "0"}, "checksums": {}, "TLS": {"UNISONO_TLS": "1"}}
RATES = {"none": 0, "100/s": 100, "300/s": 300, "unlimited": None}
GREETING = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Flood:
    """Two threads that connect to a port; `rate`: connections per second in total, None: as fast as possible."""

    def __init__(self, port, rate):
        self.port = port
        self.pause = 0 if rate is None else 2 / rate
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(2)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.over.is_set():
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as stranger:
                    stranger.sendall(GREETING)
            except OSError:
                time.sleep(0.001)  # the port is not open yet, or closed again
            if self.pause:
                time.sleep(self.pause)

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


class Floods(unittest.TestCase):
    def meet(self, number, rate, variables):
        """Returns the time of a world of four ranks from the start of the last rank, which is late, to its end."""
        port = free_port()
        flood = None if rate == 0 else Flood(port, rate)
        ranks = []
        try:
            for rank in range(4):
                if rank == 3:
                    time.sleep(0.3)  # strangers have connected to every rank by now
                begin = time.monotonic()
                ranks.append(subprocess.Popen(
                    [PROGRAM, "bench", "all_reduce", "-b", "64K", "-e", "64K", "-n", "5"],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    env=jobs.environment(UNISONO_RANK=str(rank), UNISONO_SIZE="4", UNISONO_TRANSPORT="tcp",
                                         UNISONO_ADDRESS=f"127.0.0.1:{port}", UNISONO_TOKEN="f" * 32,
                                         UNISONO_JOB=f"flood{number}", **variables)))
            said = [rank.communicate(timeout=100) for rank in ranks]
            took = time.monotonic() - begin
        finally:
            for rank in ranks:
                rank.kill()
            if flood:
                flood.stop()
        self.assertEqual([rank.returncode for rank in ranks], [0] * 4, said)
        return took

    def test_every_world_meets(self):
        slowest = 0
        for name, variables in PROTECTION.items():
            usual = 0
            for rate_name, rate in RATES.items():
                times = [self.meet(number, rate, variables) for number in range(WORLDS)]
                usual = statistics.median(times) if rate == 0 else usual
                extra = max(times) - usual
                slowest = max(slowest, extra if rate != 0 else 0)
                print(f"{name:10} {rate_name:10} {len(times)} worlds: median {statistics.median(times):.2f} s, "
                      f"longest {max(times):.2f} s, {extra:.2f} s more than without strangers", flush=True)
        if jobs.FULL:
            self.assertLess(slowest, 10)  # 2 s on an idle machine


class Circles(unittest.TestCase):
    def test_the_circle_is_in_the_error_of_every_rank(self):
        for number in range(CIRCLES):
            ranks = 3 + number % 3
            collective = ["barrier", "all_reduce"][number // 3 % 2]
            words = [["-n", str(ranks), "--transport", "shm"], ["-n", str(ranks), "--transport", "tcp"],
                     ["--hosts", f"127.0.0.1:{ranks - 1},127.0.0.2:1", "--launcher",
                      "env UNISONO_HOST={host} sh -c"]][number // 6 % 3 if jobs.FULL else number % 3]
            with tempfile.TemporaryDirectory() as folder, self.subTest(ranks=ranks, collective=collective,
                                                                       words=words):
                done = subprocess.run(
                    [PROGRAM, "run", "-q", *words, "--log-dir", folder, "--", CROSSED, collective],
                    capture_output=True, text=True, timeout=600,
                    env=jobs.environment(UNISONO_TIMEOUT_MS="1500"), check=False)
                # The ranks catch the error and exit with code 0, but their world has failed.
                self.assertEqual(done.returncode, 3, done.stderr)
                for rank in range(ranks):
                    said = (pathlib.Path(folder) / f"rank-{rank}.out").read_text()
                    self.assertIn("ranks wait for each other in different groups:", said)
                    self.assertEqual(len(re.findall(r"^rank \d waits for rank \d in", said, re.MULTILINE)), ranks, said)


if __name__ == "__main__":
    CROSSED = str(pathlib.Path(sys.argv.pop(2)).resolve())
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
