#!/usr/bin/env python3
"""Tests bench/device/suite.sh on the driver that needs no GPU (UNISONO_CUDA): suite_test.py --bench PROGRAM

Its rows are right, a stopped run resumes where it stopped, and a wrong row is reported.
"""
import argparse
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SUITE = Path(__file__).with_name("suite.sh")
BENCH = None


def run(folder, out, *options):
    done = subprocess.run(["bash", SUITE, "run", folder, out, "--quick", *options], text=True,
                          capture_output=True, check=False)
    rows = [line.split("\t") for line in (Path(out) / "results.tsv").read_text().splitlines()]
    return done, rows


class Suite(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name) / "suite"
        self.out = Path(scratch.name) / "out"
        self.folder.mkdir()
        shutil.copy(BENCH, self.folder / "bench_device")

    def test_every_row_is_right_and_logged(self):
        stages = ["conformance", "graphs", "failures", "speed"]
        done, rows = run(self.folder, self.out, "--minutes", "120",
                         *[word for stage in stages for word in ("--only", stage)])
        # There is no wheel for this Python.
        self.assertEqual([row[2] for row in rows if "torch" in row[1]], ["left out"])
        rows = [row for row in rows if "torch" not in row[1]]
        self.assertEqual([row for row in rows if row[2] != "right"], [], done.stdout + done.stderr)
        self.assertEqual(len(rows), 6 + 2 + 10 + 4)
        for stage in stages:
            self.assertIn("====", (self.out / f"{stage}.log").read_text())
        self.assertIn("0 wrong of", (self.out / "table.txt").read_text())

    def test_goes_on_where_it_stopped(self):
        done, rows = run(self.folder, self.out, "--minutes", "0", "--only", "graphs")
        self.assertEqual({row[2] for row in rows}, {"left out"}, done.stdout)
        self.assertEqual(done.returncode, 0)
        before = self.out / "results.tsv"
        before.write_text("graphs\t2 threads\tright\t1\tas it was\n" + before.read_text())
        kept = self.out.with_name("kept.tsv")
        shutil.copy(before, kept)
        _, rows = run(self.folder, self.out, "--continue", kept, "--only", "graphs", "--minutes", "120")
        self.assertEqual(rows[0], ["graphs", "2 threads", "right", "1", "as it was"])
        self.assertEqual(rows[1][1:3], ["4 threads", "right"])

    def test_a_wrong_row_is_seen(self):
        (self.folder / "bench_device").write_text("#!/bin/sh\necho 3 wrong of 5 calls\nexit 1\n")
        done, rows = run(self.folder, self.out, "--only", "speed", "--minutes", "120")
        self.assertEqual(done.returncode, 1)
        self.assertEqual({(row[2], row[4]) for row in rows}, {("wrong", "3 wrong of 5 calls")})

    def test_says_what_is_missing(self):
        (self.folder / "bench_device").unlink()
        done = subprocess.run(["bash", SUITE, "run", self.folder, self.out], text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("suite.sh prepare", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, required=True)
    options, rest = parser.parse_known_args()
    BENCH = options.bench
    os.environ.pop("OUT", None)
    unittest.main(argv=[__file__, *rest])
