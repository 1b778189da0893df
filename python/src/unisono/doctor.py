"""python -m unisono doctor: checks that unisono works in this Python and with its PyTorch."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile

import unisono

LIMIT_S = 100
PROBE = """
import sys, time, unisono
with unisono.connect(rank=int(sys.argv[1]), size=2, file=sys.argv[2]) as comm:
    sums = bytearray([comm.rank + 1])
    comm.all_reduce(sums)
    assert sums == bytearray([3]), sums
    begin = time.perf_counter()
    for _ in range(1000):
        comm.barrier()
    if comm.rank == 0:
        print(f"{(time.perf_counter() - begin) * 1e3:.1f}")
"""


def say(what, good, text):
    print(f"{'ok ' if good else 'BAD'} {what}: {text}")
    return good


def reason(text):
    """Returns the error of a traceback: the last line that begins with an error name, and the lines
    after it."""
    lines = text.strip().splitlines()
    begins = [i for i, line in enumerate(lines) if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return "; ".join(lines[begins[-1] :] if begins else lines[-1:])


def contention(runnable, cpus):
    """Returns a remark for the measured time if `runnable` other threads compete for the CPUs,
    otherwise ""."""
    if runnable + 2 <= cpus:
        return ""
    return f", with {runnable} other threads running on {cpus} CPUs: a quiet machine is quicker"


def running_now():
    """Returns the number of runnable threads on this machine, except this thread."""
    try:
        with open("/proc/loadavg") as file:
            return int(file.read().split()[3].split("/")[0]) - 1
    except (OSError, ValueError, IndexError):
        return 0


def check_ranks(probe, works):
    """Runs the program `probe` in two processes. Its arguments are the rank and a rendezvous file.
    On rank 0 it prints a time in microseconds."""
    others = running_now()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", probe, str(rank), os.path.join(folder, "meeting")],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for rank in range(2)
        ]  # fmt: skip
        said = []
        for rank in ranks:
            try:
                said.append(rank.communicate(timeout=LIMIT_S))
            except subprocess.TimeoutExpired:
                rank.kill()
                said.append((rank.communicate()[0], f"one process did not end within {LIMIT_S} s"))
    if any(rank.returncode != 0 for rank in ranks):
        why = next((err for _, err in said if err.strip()), "they ended without output")
        return say("two ranks", False, reason(why))
    cpus = len(os.sched_getaffinity(0))
    return say("two ranks", True, f"{works} takes {said[0][0].strip()} us{contention(others, cpus)}")


def check_core():
    try:
        core = importlib.import_module("unisono._core")
        sums = unisono.run_threads(2, lambda comm: comm.all_reduce(bytearray(b"\x01")))
    except (ImportError, unisono.Error) as error:
        return say("unisono", False, str(error))
    good = [bytes(one) for one in sums] == [b"\x02"] * 2
    return say("unisono", good, f"{unisono.__version__}, {core.__file__}" + ("" if good else f": wrong sums, {sums}"))


def main():
    good = check_core() and check_ranks(PROBE, "a barrier")
    if importlib.util.find_spec("torch") is None:
        print("    torch: not installed")
    elif good:
        from unisono.torch import doctor

        good = doctor.check()
    return 0 if good else 1
