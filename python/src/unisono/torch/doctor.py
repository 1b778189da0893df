"""python -m unisono.torch.doctor: what is installed, if it fits, and whether ranks can talk."""

import argparse
import os
import re
import subprocess
import sys
import tempfile

LIMIT_S = 100
PROBE = """
import sys, time
import torch, torch.distributed as dist
rank, file = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("unisono", store=dist.FileStore(file, 2), rank=rank, world_size=2)
x = torch.ones(2) * (rank + 1)
dist.all_reduce(x)
assert x.tolist() == [3.0, 3.0], x
begin = time.perf_counter()
for _ in range(1000):
    dist.all_reduce(x)
if rank == 0:
    print(f"{(time.perf_counter() - begin) * 1e3:.1f}")
dist.destroy_process_group()
"""


def say(what, good, text):
    print(f"{'ok ' if good else 'BAD'} {what}: {text}")
    return good


def check_torch():
    try:
        import torch
        import torch.distributed as dist
    except ImportError as error:
        return say("torch", False, f"{error}; install torch, then unisono again")
    if not dist.is_available():
        return say("torch", False, f"{torch.__version__} was built without torch.distributed")
    return say("torch", True, f"{torch.__version__} in {os.path.dirname(torch.__file__)}")


def check_extension():
    from unisono.torch import extension

    try:
        loaded = extension()
    except ImportError as error:
        return say("extension", False, str(error))
    from unisono.torch import _built_for

    known = ".".join(_built_for.TORCH_VERSION.split(".")[:2]) in _built_for.TESTED
    tested = "" if known else f"; the tests know {', '.join(_built_for.TESTED)}"
    say("extension", True, f"{loaded.__file__}, built for torch {_built_for.TORCH_VERSION}{tested}")
    return say("host", True, f"{loaded.host_identity()}: ranks with the same value can share memory")


def check_registration():
    import torch.distributed as dist

    known = "UNISONO" in dist.Backend._plugins
    hint = "" if known else "; unset TORCH_DEVICE_BACKEND_AUTOLOAD, or install the package again"
    state = "registered by `import torch`" if known else "not registered"
    good = say("backend", known, state + hint)
    if os.environ.get("UNISONO_REPLACE_GLOO", "0") not in ("", "0"):
        say("gloo", True, "UNISONO_REPLACE_GLOO is set: \"gloo\" means unisono")
    return good


def reason(text):
    """Returns the error of a traceback: the last error that begins a line, and its advice."""
    lines = text.strip().splitlines()
    begins = [i for i, line in enumerate(lines) if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return "; ".join(lines[begins[-1] :] if begins else lines[-1:])


def contention(runnable, cpus):
    """Returns a remark about the measured time if `runnable` other threads compete for CPUs; empty if none do."""
    if runnable + 2 <= cpus:
        return ""
    return f", with {runnable} other threads running on {cpus} CPUs: a quiet machine is quicker"


def running_now():
    """Threads of this machine that run or want to, but for this one."""
    try:
        with open("/proc/loadavg") as file:
            return int(file.read().split()[3].split("/")[0]) - 1
    except (OSError, ValueError, IndexError):
        return 0


def check_ranks():
    others = running_now()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", PROBE, str(rank), os.path.join(folder, "store")],
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
    import torch

    took = f"works with torch {torch.__version__}: all_reduce of 8 bytes takes {said[0][0].strip()} us"
    return say("two ranks", True, took + contention(others, cpus))


def main():
    parser = argparse.ArgumentParser(prog="python -m unisono.torch.doctor", description=__doc__.partition(": ")[2])
    parser.parse_args()
    good = check_torch() and check_extension()
    good = good and check_registration() and check_ranks()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
