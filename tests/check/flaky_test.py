"""Tests scripts/flaky: it counts the failures of each test, keeps one output, and leaves no load behind."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLAKY = ROOT / "scripts" / "flaky"

# Fails in every second run, and prints only when it fails.
SECOND = "if rm FOLDER/mark 2>/dev/null; then echo it was there; exit 1; fi; : >FOLDER/mark"


def busy():
    """Returns the load processes of this process session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_text().split("\0")
            if words[1:3] == ["-c", "while True: pass"] and os.getsid(int(folder.name)) == os.getsid(0):
                found.append(folder.name)
        except OSError:  # it has ended meanwhile
            pass
    return found


class Flaky(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)
        tests = {"right": "exit 0", "second": SECOND.replace("FOLDER", folder.name), "hangs": "exec sleep 600"}
        (self.build / "CTestTestfile.cmake").write_text(
            "".join(f"add_test([=[{name}]=] sh -c [=[{body}]=])\n" for name, body in tests.items()))
        # The repository's own build/flaky stays unchanged.
        self.script = self.build / "scripts" / "flaky"
        self.script.parent.mkdir()
        self.script.write_text(FLAKY.read_text())

    def command(self, *words):
        return [sys.executable, str(self.script), "--build", str(self.build), *words]

    def flaky(self, *words):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout + done.stderr

    def test_the_share_of_failures_and_the_output_of_one(self):
        status, text = self.flaky("-n", "4", "--load", "2", "right", "second")
        self.assertEqual(status, 1, text)
        self.assertIn(" 50.0 %  2 of 4  second  build/flaky/second.log\n", text)
        self.assertTrue(text.endswith("1 passed, 1 failed\n"), text)
        self.assertIn("it was there", (self.build / "build" / "flaky" / "second.log").read_text())
        self.assertEqual(busy(), [])

    def test_names_are_whole(self):
        status, text = self.flaky("-n", "2", "--load", "0", "righ", "right")
        self.assertEqual((status, text.splitlines()[-1]), (0, "1 passed, 0 failed"))

    def test_no_such_test(self):
        status, text = self.flaky("-n", "1", "--load", "1", "wrong")
        self.assertEqual(status, 2)
        self.assertIn("ran no test", text)

    def test_the_limit_ends_a_test_that_hangs(self):
        status, text = self.flaky("-n", "1", "--load", "1", "--limit", "0.02", "hangs")
        self.assertEqual(status, 1)
        self.assertIn("stopped in round 1 after 0.02 minutes", text)
        self.assertEqual(busy(), [])

    def test_a_signal_ends_the_load(self):
        process = subprocess.Popen(self.command("-n", "1000000", "--load", "2", "right"), text=True,
                                   stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.assertIn("round 1 ", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertEqual(busy(), [])


if __name__ == "__main__":
    unittest.main()
