#!/usr/bin/env python3
"""Starts ranks with real launchers: launchers_test.py UNISONO [TORCHRUN]

Each test is skipped where its launcher is not installed.
"""

import contextlib
import os
import pathlib
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from ports import free_port

PROGRAM = sys.argv[1]
TORCHRUN = sys.argv[2] if len(sys.argv) > 2 else "torchrun"
WORK = ["bench", "all_reduce", "-b", "64", "-e", "64K", "-f", "32", "-n", "20"]
OF_OTHERS = ("UNISONO_", "OMPI_", "PMI_", "SLURM_", "PRTE_")


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_OTHERS)}
    return kept | {"XDG_CONFIG_HOME": "/nonexistent"} | more


def run(*words, **more):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100,
                          stdin=subprocess.DEVNULL, env=environment(**more))


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"no {program} here: scripts/setup test python installs it")


class Case(unittest.TestCase):
    def check(self, done, where):
        """All four ranks connected, and their results are right."""
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"4 ranks {where}", done.stdout)
        rows = [line.split() for line in done.stdout.splitlines() if " f32 " in line]
        self.assertEqual(len(rows), 6, done.stdout)
        self.assertEqual({row[-1] for row in rows}, {"0"}, done.stdout)


class Launchers(Case):
    def over_the_network(self):
        """The settings of ranks on several hosts, and the setting that separates ranks of one host."""
        return {"UNISONO_TRANSPORT": "tcp", "UNISONO_TOKEN": secrets.token_hex(16),
                "UNISONO_ADDRESS": f"127.0.0.1:{free_port()}"}

    @needs("mpirun.openmpi")
    def test_open_mpi(self):
        mpirun = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "4"]
        self.check(run(*mpirun, PROGRAM, *WORK), "on 1 host")
        # The key of Open MPI is the token.
        given = self.over_the_network()
        del given["UNISONO_TOKEN"]
        passed = [word for name in given for word in ("-x", name)]
        self.check(run(*mpirun, *passed, PROGRAM, *WORK, **given), "over the network")

    @needs("mpiexec.mpich")
    def test_mpich(self):
        self.check(run("mpiexec.mpich", "-n", "4", PROGRAM, *WORK), "on 1 host")
        self.check(run("mpiexec.mpich", "-n", "4", PROGRAM, *WORK, **self.over_the_network()),
                   "over the network")

    @needs(TORCHRUN)
    def test_torchrun(self):
        torchrun = [TORCHRUN, "--nproc-per-node", "4", "--master-addr", "127.0.0.1",
                    "--master-port", str(free_port()), "--no-python", PROGRAM, *WORK]
        self.check(run(*torchrun), "on 1 host")
        given = self.over_the_network()
        del given["UNISONO_ADDRESS"]  # follows from the port of torchrun
        self.check(run(*torchrun, **given), "over the network")


@contextlib.contextmanager
def ssh_server():
    """A server on a port of its own that lets this user in with a key of its own: the words of a
    client. The user's folder is another one for the server alone, in its mount namespace."""
    with tempfile.TemporaryDirectory(prefix="unisono-ssh-") as folder:
        home = pathlib.Path(folder)
        home.chmod(0o700)
        (home / ".ssh").mkdir(mode=0o700)
        for command in (["dropbearkey", "-t", "ed25519", "-f", str(home / "host")],
                        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / "key")]):
            subprocess.run(command, check=True, capture_output=True)
        shutil.copy(home / "key.pub", home / ".ssh" / "authorized_keys")
        me = pwd.getpwuid(os.getuid())
        (home / "passwd").write_text(f"{me.pw_name}:x:{me.pw_uid}:{me.pw_gid}::{folder}:/bin/sh\n")
        port = free_port()
        script = f"mount --bind {home}/passwd /etc/passwd && exec dropbear -F -E -s -r {home}/host " \
                 f"-p 127.0.0.1:{port} -P {home}/pid"
        with open(home / "log", "w") as log:
            server = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], stdout=log, stderr=log)
        try:
            end = time.monotonic() + 10
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                if server.poll() is not None or time.monotonic() > end:
                    raise unittest.SkipTest("no ssh server: " + (home / "log").read_text())
                time.sleep(0.05)
            yield (f"ssh -i {home}/key -p {port} -o BatchMode=yes -o StrictHostKeyChecking=no "
                   f"-o UserKnownHostsFile={home}/known -o LogLevel=ERROR {{host}}")
        finally:
            server.kill()
            server.wait()


def marked(mark):
    """Returns the processes that have `mark` in their environment."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


@needs("dropbear")
@needs("ssh")
class Ssh(Case):
    HOSTS = "127.0.0.1:2,localhost:2"

    def setUp(self):
        self.ssh = self.enterContext(ssh_server())
        self.mark = f"LAUNCHERS_TEST={os.getpid()}.{time.monotonic_ns()}"

    def start(self, *program, **more):
        command = [PROGRAM, "run", "--hosts", self.HOSTS, "--launcher", self.ssh, "--env", self.mark, "--",
                   *program]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, env=environment(**more))

    def end(self, job):
        said, _ = job.communicate(timeout=600)
        return subprocess.CompletedProcess(job.args, job.returncode, said)

    def wait_for(self, count):
        """Waits until this many processes of the job exist, or none."""
        end = time.monotonic() + 20
        while (count == 0) == bool(left := marked(self.mark)) or len(left) < count:
            self.assertLess(time.monotonic(), end, f"{len(left)} processes: {left}")
            time.sleep(0.05)

    def test_ranks_meet(self):
        self.check(self.end(self.start(PROGRAM, *WORK)), "on 1 host")
        self.check(self.end(self.start(PROGRAM, *WORK, UNISONO_TRANSPORT="tcp")), "over the network")
        self.wait_for(0)

    def test_nothing_outlives_the_launcher(self):
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signum):
                job = self.start("sleep", "600")
                self.wait_for(4)
                job.send_signal(signum)
                job.communicate(timeout=600)
                self.wait_for(0)

    def test_a_wrong_key_is_said(self):
        self.ssh = self.ssh.replace("/key ", "/host ")
        done = self.end(self.start(PROGRAM, *WORK))
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout, "(?i)permission denied|invalid format|libcrypto")
        self.assertIn("rank", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
