#!/usr/bin/env python3
"""Tests scripts/test_times.py: the times that it reads from ninja's logs, and from reports of tests."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import test_times  # noqa: E402

LOG = """# ninja log v5
0\t9000\t0\tsrc/base/CMakeFiles/unisono_base.dir/text.cc.o\ta
1000\t3500\t0\tsrc/base/CMakeFiles/unisono_base.dir/text.cc.o\tb
3500\t4000\t0\tman/one.1\tc
3500\t4000\t0\tman/two.1\tc
4000\t5000\t0\ttests/cli/CMakeFiles/lines.dir/lines.cc.o\td
"""
REPORT = """<testsuites><testsuite><testcase name="schedule" classname="schedule" time="2.5"/>
<testcase name="page" classname="view" time="7.25"/></testsuite></testsuites>"""


class Times(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.build = Path(self.folder.name)
        (self.build / "times").mkdir()
        (self.build / "dev").mkdir()
        (self.build / "dev" / ".ninja_log").write_text(LOG)
        (self.build / "times" / "dev.xml").write_text(REPORT)
        (self.build / "times" / "steps.txt").write_text("dev build 10.0 15.5 1.5\nnonsense\n")

    def tearDown(self):
        self.folder.cleanup()

    def test_a_job_counts_once_as_it_was_done_last(self):
        jobs = dict((name, seconds) for seconds, name in test_times.jobs_of(self.build / "dev" / ".ninja_log"))
        self.assertEqual(sorted(jobs.values()), [0.5, 1.0, 2.5])

    def test_kinds(self):
        self.assertEqual(test_times.kind_of("src/base/CMakeFiles/unisono_base.dir/text.cc.o"), "unisono_base")
        self.assertEqual(test_times.kind_of("tests/cli/CMakeFiles/lines.dir/lines.cc.o"), "tests")
        self.assertEqual(test_times.kind_of("src/x/CMakeFiles/x_test.dir/x_test.cc.o"), "tests")
        self.assertEqual(test_times.kind_of("lib/libunisono.a"), "links and others")

    def test_the_table(self):
        text = test_times.table(self.build, 1)
        self.assertIn("dev: 3 jobs of the build, 4 s", text)
        self.assertIn("dev: 2 tests, 10 s", text)
        self.assertRegex(text, r"dev: build +10 s +17 s")
        self.assertTrue(text.endswith("the 1 slowest tests\n      7.2 s  dev: view: page\n"), text)


if __name__ == "__main__":
    unittest.main()
