#!/usr/bin/env python3
"""Collectives over bad links, by `unisono run --chaos`.

  links_test.py UNISONO [SEED]

Right results whatever the link does; with checksums or encryption never a wrong one from a link that
damages. Each failure prints the command that replays it. The full form goes through a grid of 50.
"""

import pathlib
import random
import sys
import unittest

import jobs

PROGRAM, SEED = "", 0
DELAYS = ["delay=0us", "delay=1ms", "delay=5ms,jitter=5ms", "delay=20ms,jitter=5ms", "delay=200ms"]
LOSSES = ["", "loss=0.1%", "loss=1%", "loss=5%"]
RATES = ["", "rate=10Mbit", "rate=100Mbit", "rate=1Gbit"]


def run(ranks, chaos, *words, **variables):
    entries = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
    command = [PROGRAM, "run", "-n", str(ranks), "--transport", "tcp", "--timeout", "100s", "--chaos",
               chaos, *entries, "--", PROGRAM, "bench", *words]
    return jobs.call(*command)


def rows(done):
    return [line.split() for line in done.stdout.splitlines() if line and not line.startswith("#")]


class Links(unittest.TestCase):
    def setUp(self):
        self.draw = random.Random(SEED)

    def check_right(self, done, least=1):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreaterEqual(len(rows(done)), least, done.stdout)
        self.assertEqual([row for row in rows(done) if row[-1] != "0"], [], done.stderr)

    def test_slow_and_lossy_links_change_no_result(self):
        grid = [(delay, loss, rate) for delay in DELAYS for loss in LOSSES for rate in RATES]
        for delay, loss, rate in self.draw.sample(grid, 50 if jobs.FULL else 4):
            chaos = ",".join(word for word in (delay, loss, rate) if word)
            chaos += f",seed={self.draw.randrange(10**6)}"
            collective = self.draw.choice(["all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                           "all_to_all", "all_gather_v", "barrier"])
            size = self.draw.choice(["8", "1K", "64K"] + (["512K"] if jobs.FULL else []))
            done = run(self.draw.randrange(2, 5), chaos, collective, "-b", size, "-e", size, "-n", "2",
                       "-w", "1")
            self.check_right(done)

    def test_damage_is_never_a_result(self):
        """C4: without a checksum a wrong result occurs; otherwise the test would prove nothing."""
        wrong = 0
        for i in range(60 if jobs.FULL else 4):
            chaos = f"corrupt={self.draw.choice(['0.2%', '1%', '5%'])},seed={self.draw.randrange(10**6)}"
            how = [{}, {"UNISONO_TLS": "1", "UNISONO_CHECKSUM": "0"}][i % 2]
            done = run(3, chaos, "all_reduce", "-b", "256K", "-e", "256K", "-n", "100", "-w", "1", **how)
            self.assertNotIn("error[internal]", done.stderr)
            if done.returncode == 0:
                self.check_right(done)
            else:
                self.assertRegex(done.stderr, r"error\[(corrupt|peer_lost|connection)\]")
                self.assertIn(" --chaos corrupt=", done.stderr.splitlines()[-1])
        for _ in range(10):
            done = run(2, f"corrupt=1%,seed={self.draw.randrange(10**6)}", "all_reduce", "-b", "256K",
                       "-e", "256K", "-n", "20", "-w", "1", UNISONO_CHECKSUM="0")
            wrong += any(row[-1] not in ("0", "-") for row in rows(done))
            if wrong > 0:
                break
        self.assertGreater(wrong, 0, "no damage was seen in ten runs without checksums")

    def test_a_reset_connection_is_named(self):
        for victim in range(3) if jobs.FULL else [1]:
            done = run(3, f"reset={victim}@700ms,seed=1", "all_reduce", "-b", "64K", "-e", "64K", "-n",
                       "1000000")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertRegex(done.stderr, r"the connection to rank \d was", done.stderr)
            self.assertNotIn("error[timeout]", done.stderr)

    @unittest.skipUnless(jobs.FULL, "it is timed: run it by make reliability")
    def test_a_long_vector_takes_what_the_link_gives(self):
        """A call of 8 MiB is at least 0.8 times as fast as a stream of the same bytes on such a link."""
        for rate, mbit in (("100Mbit", 100), ("1Gbit", 1000)):
            done = run(2, f"rate={rate},seed=1", "all_reduce", "-b", "8M", "-e", "8M", "-n", "5", "-w", "1")
            self.check_right(done)
            time_us = float(rows(done)[0][7])
            stream_us = (8 << 20) * 8 / mbit  # each rank sends all of it once
            print(f"{rate}: {stream_us / time_us:.2f} of the link", flush=True)
            self.assertLess(time_us, stream_us / 0.8, done.stdout)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
    SEED = jobs.seed_of(sys.argv[2] if len(sys.argv) > 2 else None)
    unittest.main(argv=sys.argv[:1])
