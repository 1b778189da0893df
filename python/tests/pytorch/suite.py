#!/usr/bin/env python3
"""PyTorch's own distributed_test.py over gloo, over unisono, and over unisono in place of gloo:

    build/venv/bin/python python/tests/pytorch/suite.py --ranks 2,3,4

Prints, for each number of ranks, which tests gloo passes and unisono does not, and fails if there
are any that expected.py does not name with a reason. The last line counts them for scripts/test.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # if this is not the main program

import expected  # noqa: E402

# The measured variants: the backend name that tests use, and whether unisono replaces gloo.
WAYS = {"gloo": ("gloo", "0"), "unisono": ("unisono", "0"), "in gloo's place": ("gloo", "1")}


def run_way(way, ranks, options):
    """{test: "pass", "skip: why" or "fail: why"}"""
    name, replace = WAYS[way]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="unisono-pytorch-") as folder:
        results = Path(folder) / "results.json"
        environment = {
            **os.environ, "BACKEND": name, "UNISONO_REPLACE_GLOO": replace, "TEMP_DIR": folder,
            "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1", "INIT_METHOD": f"file://{folder}/init",
            "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": str(options.limit),
        }  # fmt: skip
        program = Path(__file__).with_name("one_way.py")
        command = [sys.executable, str(program), str(results), *options.tests]
        with open(Path(options.log or folder) / f"{way.replace(' ', '-')}-{ranks}.log", "w") as log:
            subprocess.run(command, env=environment, stdout=log, stderr=log, check=False)
        found = json.loads(results.read_text()) if results.exists() else {}
    passed = sum(result == "pass" for result in found.values())
    print(f"{way:16} {ranks} ranks: {passed} of {len(found)} pass, "
          f"{sum(r.startswith('skip') for r in found.values())} are skipped, "
          f"{sum(r.startswith('fail') for r in found.values())} fail; "
          f"{time.monotonic() - begin:.0f} s", flush=True)  # fmt: skip
    return found


def compare(way, ranks, gloo, ours, in_place):
    """Prints the tests that only gloo passes, with their reasons; returns how many have no reason."""
    unexplained = 0
    explained = {}
    for test, result in sorted(gloo.items()):
        if result != "pass" or ours.get(test) == "pass":
            continue
        said = ours.get(test, "fail: it was not run")
        reason = expected.reason(way, test, said, in_place.get(test))
        if reason is None:
            unexplained += 1
            print(f"  {way}, {ranks} ranks: {test}: UNEXPLAINED {said}", flush=True)
        else:
            explained.setdefault(reason, []).append(test)
    for reason, tests in explained.items():
        print(f"  {way}, {ranks} ranks: {len(tests)} tests: {reason}: {', '.join(tests)}", flush=True)
    return unexplained


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="2,3,4", help="how many, as a list")
    parser.add_argument("--limit", type=int, default=120, help="seconds for each test")
    parser.add_argument("--log", help="a folder for the output of the tests")
    parser.add_argument("tests", nargs="*", help="parts of names of tests; none: all")
    options = parser.parse_args()
    unexplained = 0
    compared = 0
    for ranks in (int(text) for text in options.ranks.split(",")):
        found = {way: run_way(way, ranks, options) for way in WAYS}
        if not any(result == "pass" for result in found["gloo"].values()):
            print("gloo passes nothing: see the output with --log", file=sys.stderr)
            return 2
        for way in list(WAYS)[1:]:
            in_place = found["in gloo's place"]
            unexplained += compare(way, ranks, found["gloo"], found[way], in_place)
            compared += sum(result == "pass" for result in found["gloo"].values())
    print(f"{unexplained} tests that gloo passes and unisono does not are not explained")
    print(f"{compared - unexplained} passed, {unexplained} failed")
    return min(unexplained, 1)


if __name__ == "__main__":
    raise SystemExit(main())
