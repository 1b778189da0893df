"""Tests approve.py and its transcripts with a made-up program: reading, comparing, accepting and refusing."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent

# Prints its words, its input and a variable; "fail" is an exit code, "raw" has no last newline.
PROGRAM = """#!/bin/sh
[ "$1" = raw ] && { printf 'no end'; exit 0; }
printf '%s\\n' "$@" "x=$X" "columns=$COLUMNS"
cat
[ "$1" != fail ] || { echo 'wrong: SCRATCH' >&2; exit 7; }
"""
RIGHT = r"""# Cases of a made-up program.

= my_words
$ unisono 'a b' c
| a b
| c
| x=
| columns=100

# This one fails.
= my_fails
$ X='1 2' unisono fail 'two
> lines'
< some

< input
| fail
| two
| lines
| x=1 2
| columns=100
| some
|
| input
! wrong: SCRATCH
? 7

= my_raw
$ unisono raw
| no end
\
# The end.
""".replace("< some\n\n<", "< some\n<\n<")


class Transcripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for file in HERE.glob("*.py"):
            shutil.copy(file, self.folder)
        for name in ("files", "transcripts"):
            (self.folder / name).mkdir()
        self.program = self.folder / "program"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        self.file = self.folder / "transcripts" / "made_up.txt"
        self.file.write_text(RIGHT)

    def approve(self, *words):
        # --only skips the checks of the real program.
        done = subprocess.run([sys.executable, str(self.folder / "approve.py"), "--program", str(self.program), *words],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_all_are_right(self):
        for name in ("my_words", "my_fails", "my_raw"):
            self.assertEqual(self.approve("--only", name), (0, "1 cases, 0 failed\n"))

    def test_each_part_counts(self):
        for old, new in (("| c\n", "| d\n"), ("! wrong", "! Wrong"), ("? 7\n", ""), ("? 7", "? 8"), ("\\\n", ""),
                         ("X='1 2' ", ""), ("< some\n", "")):
            self.file.write_text(RIGHT.replace(old, new))
            statuses = [self.approve("--only", name)[0] for name in ("my_words", "my_fails", "my_raw")]
            self.assertEqual(sorted(statuses), [0, 0, 1], (old, statuses))

    def test_a_difference_names_its_place(self):
        self.file.write_text(RIGHT.replace("| c\n", "| d\n"))
        _, text = self.approve("--only", "my_words")
        self.assertIn("--- made_up.txt:3\n+++ printed\n", text)
        self.assertIn("\n-| d\n+| c\n", text)

    def test_accept_changes_only_what_is_printed(self):
        lines = [line for line in RIGHT.splitlines() if line[:1] not in ("|", "!", "?", "\\")]
        self.file.write_text("\n".join(lines) + "\n")
        for name in ("my_words", "my_fails", "my_raw"):
            self.assertEqual(self.approve("--only", name, "--accept"), (0, f"accepted {name}\n1 cases, 0 failed\n"))
        self.assertEqual(self.file.read_text(), RIGHT)

    def test_no_such_case(self):
        self.assertEqual(self.approve("--only", "nothing")[0], 1)

    def test_what_is_no_case_is_refused(self):
        for text, said in (("= a\n| x\n", "made_up.txt:1: a case is '= name' and then '$ unisono ...'"),
                           ("| x\n", "made_up.txt:1: no line of a case: | x"),
                           ("= a\n$ unisono 'x\n", "made_up.txt:1: No closing quotation"),
                           ("= a\n$ other x\n", "made_up.txt:1: the command must be unisono"),
                           ("= a\n$ unisono\nx\n", "made_up.txt:3: no line of a case: x"),
                           ("= a\n$ unisono\n\n= a\n$ unisono\n", "made_up.txt:4: a is also in made_up.txt:1")):
            self.file.write_text(text)
            status, printed = self.approve("--only", "a")
            self.assertNotEqual(status, 0)
            self.assertIn(said, printed)


if __name__ == "__main__":
    unittest.main()
