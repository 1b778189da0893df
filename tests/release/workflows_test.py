"""Tests the workflows in .github: every action is pinned by a commit, and permissions are minimal."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def findings(text):
    for line in text.splitlines():
        if match := re.match(r"\s*(?:- )?uses: (.*)$", line):
            if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[0-9.]+", match.group(1)):
                yield f"not pinned by a commit with its version behind it: {match.group(1)}"
    if not re.search(r"^permissions:\n  contents: read$", text, re.MULTILINE):
        yield "permissions of the whole workflow are not `contents: read`"
    checkouts = text.count("uses: actions/checkout@")
    if text.count("persist-credentials: false") != checkouts:
        yield "a checkout keeps its credentials"
    if text.count("runs-on:") != text.count("timeout-minutes:"):
        yield "a job has no timeout-minutes"


class Workflows(unittest.TestCase):
    def test_all(self):
        paths = sorted((ROOT / ".github/workflows").glob("*.yml"))
        self.assertGreaterEqual(len(paths), 3)
        for path in paths:
            self.assertEqual(list(findings(path.read_text())), [], path.name)

    def test_mistakes(self):
        good = (ROOT / ".github/workflows/check.yml").read_text()
        for old, new, word in ((r"checkout@[0-9a-f]{40} # v[0-9.]+", "checkout@v4", "not pinned"),
                               (r" # v[0-9.]+", "", "not pinned"),
                               (r"contents: read", "contents: write", "permissions"),
                               (r"persist-credentials: false", "fetch-depth: 0", "credentials"),
                               (r"    timeout-minutes: \d+\n", "", "timeout")):
            changed = re.sub(old, new, good, count=1)
            self.assertNotEqual(changed, good)
            self.assertTrue([one for one in findings(changed) if word in one], word)


if __name__ == "__main__":
    unittest.main()
