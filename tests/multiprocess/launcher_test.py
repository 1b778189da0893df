#!/usr/bin/env python3
"""Tests the reports and actions of `unisono run` when ranks fail, are stopped, or lack a resource.

  launcher_test.py UNISONO LAUNCHED

LAUNCHED is launched.cc. What needs another user or a network of its own is skipped without root.
"""

import contextlib
import ctypes
import errno
import json
import os
import pathlib
import pty
import re
import secrets
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

UNISONO = ""
LAUNCHED = ""
LIMIT_S = 120  # bounds a hang, no more


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    return kept | {"XDG_CONFIG_HOME": "/nonexistent"} | more


def run(*words, **more):
    settings = more.pop("env", {})
    return subprocess.run([UNISONO, "run", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, env=environment(**settings), **more)


def needs_root(what):
    return unittest.skipUnless(os.geteuid() == 0, f"run as root: {what}")


class Signals(unittest.TestCase):
    """Ranks that catch nothing are ended by the launcher's signal, not by an error of the others."""

    def check(self, code, said, number):
        self.assertEqual(code, 128 + number, said)
        for word in ("terminate called", "core dumped", "SIGABRT", "error["):
            self.assertNotIn(word, said)
        self.assertEqual(said.count(f"stopped by {signal.Signals(number).name}"), 1, said)

    def test_of_the_launcher_alone(self):
        for transport in ("shm", "tcp"):
            for number in (signal.SIGINT, signal.SIGTERM):
                job = subprocess.Popen([UNISONO, "run", "-n", "3", "--transport", transport, "--", LAUNCHED, "works"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       text=True, env=environment())
                said = "".join(job.stdout.readline() for _ in range(3))
                job.send_signal(number)
                said += job.communicate(timeout=LIMIT_S)[0]
                self.check(job.returncode, said, number)

    def test_of_a_terminal(self):
        """Rank 0, which reads the terminal, gets the signal before the others."""
        process, terminal = pty.fork()
        if process == 0:
            os.execve(UNISONO, [UNISONO, "run", "-n", "3", "--", LAUNCHED, "works"], environment())
        said = ""
        with contextlib.suppress(OSError):  # the terminal is closed
            while part := os.read(terminal, 4096).decode():
                said += part
                if "\x03" not in said and said.count("is ready") == 3:
                    os.write(terminal, b"\x03")
                    said += "\x03"
        self.check(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), said, signal.SIGINT)

    @needs_root("a rank of another host is one of another mount namespace here")
    def test_of_ranks_elsewhere(self):
        job = subprocess.Popen([UNISONO, "run", "--hosts", "127.0.0.1:2", "--launcher", "unshare --uts",
                                "--", LAUNCHED, "works"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=environment())
        said = "".join(job.stdout.readline() for _ in range(2))
        job.send_signal(signal.SIGTERM)
        said += job.communicate(timeout=LIMIT_S)[0]
        self.check(job.returncode, said, signal.SIGTERM)


class FirstFailure(unittest.TestCase):
    def test_is_the_one_that_the_others_name(self):
        done = run("-n", "3", "--", LAUNCHED, "ends last")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertRegex(done.stderr, r"rank 2 +exited with code 7.*<- first failure")

    def test_is_a_rank_that_was_killed(self):
        done = run("-n", "3", "--", LAUNCHED, "dies")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"rank 2 +killed by SIGKILL.*<- first failure")

    def test_names_a_rank_that_ended_well_too_soon(self):
        done = run("-n", "3", "--", LAUNCHED, "leaves")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"rank 2 +done.*<- the cause, says rank [01]")
        self.assertIn("rank 2 left while others waited for it", done.stderr)
        self.assertNotIn("first failure", done.stderr)

    def test_is_no_rank_that_waited_for_one_that_stood_still(self):
        done = run("-n", "3", "--json", "--", LAUNCHED, "stands still", env={"UNISONO_TIMEOUT_MS": "500"})
        self.assertRegex(done.stderr, r"rank 2 +stopped by the launcher.*<- the cause, says rank [01]")
        self.assertIn("rank 2 held the others up", done.stderr)
        self.assertNotIn("first failure", done.stderr)
        self.assertEqual(json.loads(done.stdout.splitlines()[-1])["cause"], 2)

    def test_is_found_behind_a_rank_that_the_launcher_ends(self):
        """Rank 0 blames rank 1, which does not end by itself, and which blames rank 2."""
        done = run("-n", "3", "--", "sh", "-c", """
            case $RANK in
              0) echo "failed 0 1 rank 1 is gone" >> $UNISONO_LAUNCHER; exit 3;;
              1) echo "failed 1 2 rank 2 is gone" >> $UNISONO_LAUNCHER; exec sleep 1000;;
              2) until grep -q "^end 0 " $UNISONO_LAUNCHER; do sleep 0.01; done; exit 7;;
            esac""")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertRegex(done.stderr, r"rank 2 +exited with code 7.*<- first failure")

    def test_shows_no_line_twice(self):
        done = run("-n", "2", "--", "sh", "-c", "[ $RANK = 0 ] && exit 0; echo goodbye from rank 1 >&2; exit 5")
        self.assertEqual(done.returncode, 5)
        self.assertEqual(done.stderr.count("goodbye from rank 1"), 1, done.stderr)
        hidden = run("-n", "2", "--only", "0", "--", "sh", "-c", "[ $RANK = 0 ] || { echo goodbye from rank 1 >&2; exit 5; }")
        self.assertEqual(hidden.stderr.count("goodbye from rank 1"), 1, hidden.stderr)


class SwallowedErrors(unittest.TestCase):
    def test_are_a_failure_of_the_job(self):
        for options in (["-n", "3"], ["-n", "3", "--transport", "tcp"],
                        ["--hosts", "127.0.0.1:3", "--launcher", "env"]):
            done = run(*options, "--", LAUNCHED, "swallows")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("the job failed, although its ranks exited with code 0", done.stderr)
            self.assertIn("rank 1 called abort(): for the test", done.stderr)
            self.assertNotIn("unisono-job-log", done.stdout + done.stderr)

    def test_are_none_after_a_recovery(self):
        done = run("-n", "3", "--", LAUNCHED, "recovers")
        self.assertEqual(done.returncode, 0, done.stderr)


class Hosts(unittest.TestCase):
    def test_are_before_the_lines_of_their_ranks(self):
        done = run(
            "--hosts", "me@near:1,[fd00::1]:1,fd00::2", "--launcher", "env", "--prefix", "always", "--",
            "sh", "-c", "echo here $RANK")
        self.assertEqual(sorted(done.stdout.splitlines()),
                         ["[fd00::1]:1 here 1", "[fd00::2]:2 here 2", "near:0 here 0"], done.stderr)

    def test_have_ipv6_addresses_without_brackets(self):
        for words, host in (("[::1]:2", "::1"), ("[fd00:99::1]:2", "fd00:99::1"), ("fd00::1", "fd00::1"),
                            ("me@[::1]:2", "me@::1"), ("[fe80::1%eth0]:1", "fe80::1%eth0")):
            done = run("--hosts", words, "--launcher", "env NAME={host}", "--no-prefix", "--", "sh", "-c",
                       "echo $NAME $MASTER_ADDR $UNISONO_ADDRESS")
            bare = host.partition("@")[2] or host
            self.assertRegex(done.stdout, rf"^{re.escape(host)} {re.escape(bare)} \[{re.escape(bare)}\]:\d+\n", done.stderr)

    def test_that_can_be_read_in_two_ways_are_refused(self):
        for words in ("fd00::1:2", "[node1]:2", "[::1:2", "::1]:2", "[::1]2", "[::1]:0"):
            done = run("--hosts", words, "--launcher", "env", "--", "true")
            self.assertEqual(done.returncode, 2, words + done.stderr)

    def test_are_read_from_a_file(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("fd00::1 2\nfd00::2 slots=1  # the last\n")
            file.flush()
            done = run("--hosts", "@" + file.name, "--launcher", "env NAME={host}", "--no-prefix", "--", "sh", "-c",
                       "echo $NAME $RANK")
            self.assertEqual(sorted(done.stdout.splitlines()), ["fd00::1 0", "fd00::1 1", "fd00::2 2"], done.stderr)

    def test_record_in_a_folder_that_nobody_else_enters(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("--hosts", "127.0.0.1:3", "--launcher", "env", "--record", folder + "/run.json", "--no-prefix",
                       "--", "sh", "-c", f'stat -c "%a %u" "$UNISONO_RECORD"; echo "$UNISONO_RECORD"; {LAUNCHED} dies',
                       env={"TMPDIR": folder})
            lines = set(done.stdout.splitlines())
            self.assertIn(f"700 {os.geteuid()}", lines, done.stdout + done.stderr)
            places = {line for line in lines if line.startswith(folder)}
            self.assertEqual(len(places), 1, lines)
            self.assertNotRegex(places.pop(), "unisono-run-")
            self.assertIn("recorded ", done.stderr)
            self.assertEqual(os.listdir(folder), ["run.json"])


class Labels(unittest.TestCase):
    def test_are_in_timeouts(self):
        done = run("-n", "2", "--", LAUNCHED, "waits", env={"UNISONO_TIMEOUT_MS": "500"})
        self.assertIn("layer 3 attention", done.stderr)

    def test_are_in_what_the_launcher_reports(self):
        done = run("-n", "2", "--timeout", "3s", "--", LAUNCHED, "waits")
        self.assertEqual(done.returncode, 4)
        self.assertRegex(done.stderr, r"rank 0 .*has not called barrier #1 \(layer 3 attention\)")

    def test_and_waits_that_go_on_are_in_what_is_seen_from_outside(self):
        job = subprocess.Popen([UNISONO, "run", "-n", "2", "--", LAUNCHED, "waits"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True, env=environment())
        self.addCleanup(job.communicate, timeout=LIMIT_S)
        self.addCleanup(job.terminate)
        for _ in range(2):
            job.stdout.readline()
        waits = {}
        while waits.get("waits_s", 0) < 0.2:
            seen = subprocess.run([UNISONO, "top", "--once", "--json"], capture_output=True, text=True,
                                  timeout=LIMIT_S, check=True, env=environment())
            ranks = [rank for one in json.loads(seen.stdout)["jobs"] for rank in one["ranks"]
                     if rank["label"] == "layer 3 attention"]
            waits = next((rank for rank in ranks if rank["rank"] == 1), {})
        self.assertGreaterEqual(waits["waited_s"], waits["waits_s"] * 0.9)
        self.assertEqual(waits["waited_most_for"], 0)


def refuse_memfd(error):
    """Applies a filter of system calls, as containers have."""
    architecture = os.uname().machine
    number = {"x86_64": 319, "aarch64": 279}[architecture]
    code = b"".join(struct.pack("HBBI", *each) for each in (
        (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7FFF0000)))
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, ctypes.create_string_buffer(program)) != 0:
        raise OSError(ctypes.get_errno(), "no filter of system calls here")


class Refusals(unittest.TestCase):
    def test_of_memfd_create_are_named(self):
        for error in (errno.EPERM, errno.ENOSYS):
            done = run("-n", "2", "--", LAUNCHED, "leaves", preexec_fn=lambda error=error: refuse_memfd(error))
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("allow memfd_create in the container's seccomp profile", done.stderr)

    @needs_root("ranks of two users are started")
    def test_of_ranks_of_two_users_are_named(self):
        settings = {"UNISONO_TOKEN": secrets.token_hex(16), "UNISONO_SIZE": "2", "UNISONO_JOB": secrets.token_hex(8),
                    "UNISONO_CONNECT_TIMEOUT_MS": "5000"}
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            program = pathlib.Path(folder, "launched")
            program.write_bytes(pathlib.Path(LAUNCHED).read_bytes())
            program.chmod(0o755)
            ranks = [subprocess.Popen([*before, str(program), "leaves"], stderr=subprocess.PIPE, text=True,
                                      env=environment(UNISONO_RANK=str(rank), **settings))
                     for rank, before in enumerate(([], ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]))]
            said = [rank.communicate(timeout=LIMIT_S)[1] for rank in ranks]
        self.assertRegex(said[0], r"process \d+ of user 65534 was turned away, because this rank runs as user 0")
        self.assertRegex(said[1], r"rank 0 runs as user 0 and this rank as user 65534")


SILENT_SERVER = """
import socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(["mount", "--bind", sys.argv[1], "/etc/resolv.conf"], check=True)
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
sys.exit(subprocess.run(sys.argv[2:]).returncode)
"""


class NameServer(unittest.TestCase):
    @needs_root("a network namespace gets a name server that does not answer")
    def test_that_does_not_answer_takes_no_longer_than_the_deadline(self):
        with tempfile.NamedTemporaryFile("w") as file:
            # Longer than the duration of the test.
            file.write("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n")
            file.flush()
            done = subprocess.run(["unshare", "--net", "--mount", sys.executable, "-c", SILENT_SERVER, file.name, LAUNCHED],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100,
                                  env=environment(UNISONO_RANK="1", UNISONO_SIZE="2", UNISONO_JOB="names",
                                                  UNISONO_TOKEN=secrets.token_hex(16),
                                                  UNISONO_ADDRESS="node0.example:29600",
                                                  UNISONO_CONNECT_TIMEOUT_MS="500"))
        self.assertIn('no name server answered in time for "node0.example"', done.stderr)


if __name__ == "__main__":
    UNISONO, LAUNCHED = sys.argv[1:3]
    del sys.argv[1:3]
    unittest.main()
