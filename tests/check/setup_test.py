"""scripts/setup with fake package tools: the packages that it installs, and its messages when it cannot."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SETUP = Path(__file__).resolve().parents[2] / "scripts" / "setup"
LISTS = SETUP.parent / "packages"


def packages(name):
    lines = (LISTS / f"{name}.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


# The packages that setUp() leaves out.
MISSING = [name for name in packages("bench") if name not in packages("test")]


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = Path(folder.name) / "bin"
        self.bin.mkdir()
        self.log = Path(folder.name) / "log"
        for name in ("bash", "cat", "dirname", "env", "grep", "mkdir", "sed", "tail"):
            os.symlink(f"/bin/{name}" if Path(f"/bin/{name}").exists() else f"/usr/bin/{name}",
                       self.bin / name)
        self.tool("id", "echo 0")
        self.apt()
        self.installed(packages("build") + packages("test"))

    def tool(self, name, body):
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def installed(self, names):
        lines = "\n".join(f"installed {name}" for name in names)
        self.tool("dpkg-query", f"cat <<'END'\n{lines}\nEND")

    def apt(self, *, index=True, body="true"):
        """Fakes apt-get: the packages that it knows, and its side effects."""
        self.tool("apt-get", f"[[ $1 == -s ]] && exit {0 if index else 100}\n"
                             f'echo "apt-get $*" >>{self.log}\n{body}')

    def run_setup(self, *lists):
        done = subprocess.run([str(SETUP), *lists], env={"PATH": str(self.bin)}, check=False,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        log = self.log.read_text().splitlines() if self.log.exists() else []
        return done.returncode, done.stdout + done.stderr, log

    def test_nothing_missing_is_silent_and_asks_nobody(self):
        self.assertEqual(self.run_setup("build", "test"), (0, "", []))

    def test_nothing_missing_needs_no_root(self):
        self.tool("id", "echo 1000")
        self.assertEqual(self.run_setup("build", "test"), (0, "", []))

    def test_missing_packages_are_named_and_installed(self):
        status, text, log = self.run_setup("build", "bench")
        names = " ".join(MISSING)
        self.assertEqual(status, 0)
        self.assertIn(f"installing {len(MISSING)} packages with apt-get: {names}", text)
        self.assertEqual(len(log), 1)
        self.assertTrue(log[0].endswith(f"install --no-install-recommends {names}"), log)

    def test_an_empty_index_is_fetched_first(self):
        self.apt(index=False)
        status, _, log = self.run_setup("bench")
        self.assertEqual(status, 0)
        self.assertEqual([line.split()[-1] for line in log], ["update", MISSING[-1]])

    def test_an_old_index_is_fetched_after_a_failure(self):
        self.apt(body=f"[[ $* != *install* || $(grep -c update {self.log}) == 1 ]]")
        status, _, log = self.run_setup("bench")
        self.assertEqual(status, 0)
        self.assertEqual(len(log), 3)

    def test_a_failed_installation_fails(self):
        self.apt(body="exit 100")
        status, _, _ = self.run_setup("bench")
        self.assertNotEqual(status, 0)

    def test_sudo_is_used_and_never_asks(self):
        self.tool("id", "echo 1000")
        self.tool("sudo", f'echo "sudo $1" >>{self.log}; shift; "$@"')
        status, _, log = self.run_setup("bench")
        self.assertEqual((status, log[0]), (0, "sudo -n"))

    def test_without_root_and_sudo_it_says_what_to_do(self):
        self.tool("id", "echo 1000")
        status, text, log = self.run_setup("bench")
        self.assertEqual((status, log), (2, []))
        self.assertIn("apt-get install --no-install-recommends " + " ".join(MISSING), text)

    def test_another_system_gets_the_list(self):
        (self.bin / "dpkg-query").unlink()
        status, text, _ = self.run_setup("build")
        self.assertEqual(status, 2)
        self.assertIn("  ninja-build\n", text)
        self.assertIn("SETUP=true", text)

    def test_unknown_list(self):
        status, text, _ = self.run_setup("nonsense")
        self.assertEqual(status, 2)
        self.assertIn("no package list 'nonsense'", text)


if __name__ == "__main__":
    unittest.main()
