"""Shared by the tests of this folder: jobs that are marked, and their remains."""

import os
import pathlib
import random
import re
import subprocess
import sys
import time

FULL = os.environ.get("UNISONO_TEST_FULL") == "1"
SKIPPED = 77


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


def seed_of(argument):
    """Returns the seed of this run: given, or drawn and printed."""
    seed = int(argument) if argument else random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    return seed


def environment(**more):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("UNISONO_", "OMPI_", "PMI_", "SLURM_"))}
    return kept | {"XDG_CONFIG_HOME": "/nonexistent"} | more


def new_mark():
    return f"TEST_JOB_MARK=m{os.getpid()}.{time.monotonic_ns()}"


def marked(mark):
    """Returns the processes that have `mark` in their environment."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((int(folder.name), (folder / "cmdline").read_text().replace("\0", " ")))
        except OSError:
            pass  # it has ended meanwhile, or belongs to another user
    return found


def wait_for_none(mark, seconds=5.0):
    """Returns the remains of a job after this time."""
    end = time.monotonic() + seconds
    while (left := marked(mark)) and time.monotonic() < end:
        time.sleep(0.02)
    return left


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return value


def files_in_memory():
    """Returns files that ranks could have left; sockets without a name in a folder end with processes."""
    return {str(path) for path in pathlib.Path("/dev/shm").glob("*unisono*")}


def listening(port):
    lines = "".join(pathlib.Path(name).read_text() for name in ("/proc/net/tcp", "/proc/net/tcp6"))
    return re.search(rf":{port:04X} [0-9A-F:]+ 0A ", lines) is not None


def call(*words, **more):
    more = {"env": environment(), "timeout": 120} | more
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
