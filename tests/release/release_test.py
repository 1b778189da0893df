"""Tests scripts/release in a small checkout: the source part, its checksums, and the mistakes that it refuses."""
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import describe  # noqa: E402

NAME = f"unisono-{describe.version()}"
NAMES = ["scripts/release", "scripts/packages", "packaging", "CMakeLists.txt", "python/pyproject.toml", "CITATION.cff",
         "CHANGELOG.md", "python/src/unisono/__init__.py", "docs/guides/install.md", "docs/guides/install.zh.md",
         "docs/abi.md", "tests/install/symbols", "cmake/install", "viewer/package-lock.json"]


class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.checkout = self.folder / "checkout"
        for name in NAMES:
            target = self.checkout / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, target)
        shutil.copy(ROOT / ".gitignore", self.checkout)
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Add all")

    def git(self, *words):
        subprocess.run(["git", "-C", self.checkout, "-c", "user.name=a", "-c", "user.email=a@b.org", *words],
                       check=True, env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(self.folder)})

    def release(self, *words):
        return subprocess.run([self.checkout / "scripts/release", *words], capture_output=True, text=True, check=False)

    def test_source_twice(self):
        done = self.release("--check", "source", "--url", "https://example.org/u.tar.gz")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("release: source: two builds are equal", done.stdout)
        out = self.checkout / "build/dist"
        sums = dict(reversed(line.split("  ")) for line in (out / "SHA256SUMS").read_text().splitlines())
        self.assertLessEqual({f"{NAME}.tar.gz", f"{NAME}.spdx.json", "release-notes.md",
                              "recipes/spack/package.py", "Containerfile"}, set(sums))
        for name, value in sums.items():
            self.assertEqual(hashlib.sha256((out / name).read_bytes()).hexdigest(), value, name)
        with tarfile.open(out / f"{NAME}.tar.gz") as archive:
            self.assertEqual({name.split("/")[0] for name in archive.getnames()}, {NAME})
            self.assertEqual(len({member.mtime for member in archive}), 1)

    def test_changes_that_are_not_committed(self):
        (self.checkout / "CMakeLists.txt").write_text("changed\n")
        done = self.release("source")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not committed", done.stderr)

    def test_another_version_in_one_file(self):
        path = self.checkout / "docs/abi.md"
        path.write_text(path.read_text().replace("UNISONO_", "UNISONO_9"))
        self.git("commit", "-q", "-a", "-m", "Change the version")
        done = self.release("source")
        self.assertEqual(done.returncode, 1)
        self.assertIn("docs/abi.md 9", done.stderr)

    def test_wrong_words(self):
        for words in (["sourcery"], ["-o"], ["--suites"]):
            self.assertEqual(self.release(*words).returncode, 2, words)


if __name__ == "__main__":
    unittest.main()
