"""scripts/coverage adds up folders, and lists the least covered first."""

import importlib.machinery
import importlib.util
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

PATH = Path(__file__).resolve().parents[2] / "scripts" / "coverage"
LOADER = importlib.machinery.SourceFileLoader("coverage_script", str(PATH))
coverage = importlib.util.module_from_spec(importlib.util.spec_from_loader("coverage_script", LOADER))
LOADER.exec_module(coverage)


def file(name, lines, covered, branches, taken):
    return {"filename": name, "line_total": lines, "line_covered": covered, "branch_total": branches,
            "branch_covered": taken}


class Rooms(unittest.TestCase):
    def test_adds_up_and_leaves_tests_out(self):
        found = coverage.rooms({"files": [
            file("src/base/a.cc", 10, 9, 4, 2), file("src/base/deeper/b.cc", 30, 30, 0, 0),
            file("src/base/a_test.cc", 100, 100, 10, 10), file("tools/unisono/c.cc", 5, 0, 0, 0),
            file("src/engine/d.cc", 4, 1, 0, 0)]})
        self.assertEqual(found, {"base": [40, 39, 4, 2], "engine": [4, 1, 0, 0]})

    def test_the_least_covered_first_and_the_whole_last(self):
        lines = coverage.table({"base": [40, 39, 4, 2], "engine": [4, 1, 0, 0], "empty": [0, 0, 0, 0]}).splitlines()
        self.assertEqual([line.split() for line in lines[1:]], [
            ["engine", "4", "25.0", "0", "-"], ["base", "40", "97.5", "4", "50.0"],
            ["empty", "0", "-", "0", "-"], ["src", "44", "90.9", "4", "50.0"]])

    @unittest.skipUnless(shutil.which("gcovr") and shutil.which("g++"), "scripts/setup coverage installs gcovr")
    def test_a_program(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            (root / "src/base").mkdir(parents=True)
            (root / "build").mkdir()
            (root / "src/base/a.cc").write_text("int chosen(int x) {\n  if (x > 1) {\n    return 2;\n  }\n"
                                                "  return 3;\n}\n")
            (root / "src/base/a_test.cc").write_text("int chosen(int);\nint main() {\n  return chosen(1) - 3;\n}\n")
            subprocess.run(["g++", "--coverage", "../src/base/a.cc", "../src/base/a_test.cc", "-o", "a"],
                           cwd=root / "build", check=True)
            subprocess.run([root / "build/a"], check=True)
            found = coverage.rooms(coverage.measure(root, root / "build", root / "build/coverage.json"))
        self.assertEqual(found, {"base": [4, 3, 2, 1]})


if __name__ == "__main__":
    unittest.main()
