"""Tests scripts/check-message: the subjects that it refuses, and its warnings; and scripts/install-hooks."""

import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
CHECK = SCRIPTS / "check-message"
LONG = "Retry " + "x" * 66


class Message(unittest.TestCase):
    def check(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([str(CHECK), file.name], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def test_orders(self):
        for subject in ("Add a test", "tcp: Retry a handshake that the peer closed", "Bring up the mesh",
                        "String tables: Share them", "Need less memory", "Embed the page", "docs: README.zh: Name the model",
                        "cli, docs: Fit tables into 80 columns", "LZ4: drop it", "使用说明: 更新", "Use C++20"):
            self.assertEqual(self.check(subject + "\n"), (0, ""), subject)

    def test_no_orders_are_warned_about(self):
        for subject in ("Launcher: what it no longer includes", "The driver without a GPU", "Fixed a hang",
                        "tcp: Adding a retry", "A barrier is in no graph"):
            status, text = self.check(subject + "\n\nWhy.\n")
            self.assertEqual(status, 0)
            self.assertIn("warning: begin the subject with a verb", text, subject)

    def test_the_length_of_the_subject(self):
        self.assertEqual(self.check(LONG + "\n"), (0, ""))
        status, text = self.check(LONG + "y\n\nbody\n")
        self.assertEqual(status, 1)
        self.assertIn(f"the subject has 73 characters, at most 72; put the reason into the body:\n  {LONG}|y\n", text)

    def test_characters_count_and_not_bytes(self):
        self.assertEqual(self.check("改" * 72), (0, ""))

    def test_lines_that_git_drops(self):
        self.assertEqual(self.check("# " + "x" * 80 + "\n\nAdd a test\n" + "a long line of the body " * 9), (0, ""))
        self.assertEqual(self.check("# ------------------------ >8 ------------------------\n" + "x" * 80), (0, ""))
        self.assertEqual(self.check(""), (0, ""))

    def test_subjects_that_git_writes(self):
        for subject in (f'Revert "{LONG}"', f"Merge branch '{LONG}'", f"fixup! {LONG}"):
            self.assertEqual(self.check(subject), (0, ""))


class Hooks(unittest.TestCase):
    def test_a_subject_that_is_too_long_is_not_committed(self):
        with tempfile.TemporaryDirectory() as folder:
            def run(*words):
                done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False,
                                      env={"PATH": "/usr/bin:/bin", "HOME": folder})
                return done.returncode, done.stdout + done.stderr

            run("git", "init", "-q")
            (Path(folder) / "scripts").mkdir()
            for name in ("check-message", "install-hooks"):
                (Path(folder) / "scripts" / name).write_bytes((SCRIPTS / name).read_bytes())
                (Path(folder) / "scripts" / name).chmod(0o755)
            hooks = Path(folder) / ".git" / "hooks"
            for word, expected in (("--help", 0), ("--hepl", 2)):
                status, text = run("scripts/install-hooks", word)
                self.assertEqual(status, expected)
                self.assertIn("Installs the git hooks", text)
                self.assertFalse((hooks / "pre-commit").exists(), "a question installs nothing")
            (hooks / "pre-push").write_text("echo mine\n")
            status, text = run("scripts/install-hooks")
            self.assertIn("pre-push is there already; add this line to it: scripts/check --syntax", text)
            self.assertEqual((status, (hooks / "pre-push").read_text()), (1, "echo mine\n"))
            commit = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty", "-qm")
            self.assertEqual(run(*commit, LONG), (0, ""))
            status, text = run(*commit, LONG + "y")
            self.assertEqual(status, 1)
            self.assertIn("73 characters", text)


if __name__ == "__main__":
    unittest.main()
