"""Runs jobs: benchmark programs that are started once per number of ranks and then run row by row."""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

START_SECONDS = 30


class JobError(Exception):
    """A job did not start, ended early, or did not answer in time."""


def launch_commands(implementation, program, ranks, directory, network):
    """Returns the processes of a job, each as its arguments and its additional environment variables."""
    program = [program, "--directory", directory]
    if implementation == "limit":
        return [(program, {})]
    launchers = {"openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe",
                             "--bind-to", "none"],
                 "mpich": ["mpiexec.mpich"]}
    if implementation in launchers:
        launcher = launchers[implementation] + network.mpi_arguments(implementation)
        environment = network.environment(implementation, 0, ranks)
        if network.inside(0, program) == program:
            return [([*launcher, "-n", str(ranks), *program], environment)]
        parts = []
        for rank in range(ranks):
            parts += [":"] * (rank > 0) + ["-n", "1", *network.inside(rank, program)]
        return [(network.launcher(implementation, launcher + parts), environment)]
    return [(network.inside(rank, [*program, "--rank", str(rank), "--size", str(ranks)]),
             network.environment(implementation, rank, ranks)) for rank in range(ranks)]


# Starts the processes of a job, and ends as soon as one of them fails.
STARTER = """
import json, os, subprocess, sys
job = json.loads(os.environ.pop("UNISONO_BENCH_JOB"))
ranks = [subprocess.Popen(command, env={**os.environ, **more}) for command, more in job]
sys.exit(any(os.wait()[1] != 0 for _ in ranks))
"""


def in_one_session(commands):
    """Returns one command that starts all processes of a job in one session, as a launcher does. Linux first
    shares a core's time between sessions (autogroups), so a rank in its own session could not yield to
    another rank. Environment variables may be secret, so they are not on the command line."""
    if len(commands) == 1:
        return commands[0]
    return [sys.executable, "-c", STARTER], {"UNISONO_BENCH_JOB": json.dumps(commands)}


class Job:
    """A running benchmark program, whose ranks sleep between rows."""

    def __init__(self, implementation, program, ranks, network):
        self.implementation = implementation
        self.directory = tempfile.mkdtemp(prefix="unisono-bench-")
        for name in ("rows", "answers"):
            os.mkfifo(os.path.join(self.directory, name))
        open(os.path.join(self.directory, "control"), "wb").close()
        # Opened for both directions, so that neither side waits for the other to open.
        self.rows = os.open(os.path.join(self.directory, "rows"), os.O_RDWR)
        self.answers = os.open(os.path.join(self.directory, "answers"), os.O_RDWR)
        self.pending = b""
        self.log = open(os.path.join(self.directory, "log"), "w+b")
        command, environment = in_one_session(
            launch_commands(implementation, program, ranks, self.directory, network))
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            start_new_session=True, env={**os.environ, **environment})
        try:
            self._read_line(START_SECONDS)
        except JobError:
            self.close()
            raise

    def ask(self, row, timeout):
        """Runs a row. Returns the answer as a dictionary."""
        os.write(self.rows, (row + "\n").encode())
        return json.loads(self._read_line(timeout))

    def _read_line(self, timeout):
        end = time.monotonic() + timeout
        while b"\n" not in self.pending:
            if self.process.poll() not in (None, 0):
                raise JobError(f"{self.implementation}: {self._first_line()}")
            if time.monotonic() > end:
                raise JobError(f"{self.implementation}: no answer in {timeout:.0f} s")
            if select.select([self.answers], [], [], 0.2)[0]:
                self.pending += os.read(self.answers, 65536)
        line, self.pending = self.pending.split(b"\n", 1)
        return line.decode()

    def _first_line(self):
        self.log.flush()
        self.log.seek(0)
        text = self.log.read().decode(errors="replace").strip()
        return text.splitlines()[0] if text else "ended without output"

    def close(self):
        try:
            os.write(self.rows, b"quit\n")
        except OSError:
            pass
        for seconds, signal in ((5, 15), (3, 9)):
            try:
                self.process.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal)
        try:
            os.killpg(self.process.pid, 9)  # ranks that a failed rank has left behind
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.rows)
        os.close(self.answers)
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)
