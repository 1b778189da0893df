"""python -m unisono.torch.doctor: checks the installation, and that ranks can communicate."""

import argparse
import os
import sys

from unisono.doctor import check_ranks, say

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
    known = ".".join(loaded.built_for.split(".")[:2]) in loaded.tested
    tested = "" if known else f"; the tests know {', '.join(loaded.tested)}"
    say("extension", True, f"{loaded.__file__}, built for torch {loaded.built_for}{tested}")
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


def check():
    if not (check_torch() and check_extension() and check_registration()):
        return False
    import torch

    return check_ranks(PROBE, f"works with torch {torch.__version__}: all_reduce of 8 bytes")


def main():
    parser = argparse.ArgumentParser(prog="python -m unisono.torch.doctor", description=__doc__.partition(": ")[2])
    parser.parse_args()
    return 0 if check() else 1


if __name__ == "__main__":
    sys.exit(main())
