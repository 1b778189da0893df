"""Approval tests of the command line: what each command prints, and its exit code.

    approve.py --program build/dev/tools/unisono/unisono            compares
    approve.py --program ... --update                               writes what is printed now
    approve.py --program ... --suite text --only verify_right

The expected output of a case is expected/<name>.txt: standard output, then standard error and the
exit code where there are any. Names of hosts, process numbers and times are replaced first.
"""
import argparse
import difflib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

import cases
import checks
from check_tools import LIMIT_S

HERE = pathlib.Path(__file__).resolve().parent


def clean_environment():
    """Nothing of the caller's environment may change what is printed."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("UNISONO_", "OMPI_", "PMI_", "SLURM_", "LC_"))
            and name not in ("LANG", "RANK", "WORLD_SIZE", "NO_COLOR", "COLUMNS", "LOCAL_WORLD_SIZE")}
    kept["COLUMNS"] = "100"
    kept["XDG_CONFIG_HOME"] = str(HERE / "absent")  # nothing that was tuned on this machine
    return kept


def normalised(text):
    host = socket.gethostname().split(".")[0]
    text = re.sub(rf"\b{re.escape(host)}(?=(:\d+ | pid ))", "HOST", text)
    text = re.sub(r"\bpid \d+", "pid N", text)
    text = re.sub(r"\d+\.\d s after", "T s after", text)
    text = re.sub(r"启动后 \d+\.\d 秒", "启动后 T 秒", text)
    # The source lines of the catalogue's moves change with its files.
    text = re.sub(r'"line": ?\[[\d, ]*\]', '"line": [...]', text)
    return text


def run_case(program, case, scratch):
    environment = clean_environment()
    environment.update(case.get("environment", {}))
    command = [str(program)] + [word.replace("SCRATCH", scratch).replace("PROGRAM", str(program))
                                for word in case["words"]]
    result = subprocess.run(command, cwd=case.get("folder", HERE / "files"), env=environment,
                            input=case.get("input", ""), capture_output=True, text=True,
                            timeout=LIMIT_S)
    text = normalised(result.stdout).replace(scratch, "SCRATCH")
    if result.stderr:
        text += "--- stderr\n" + normalised(result.stderr)
    if result.returncode != 0:
        text += f"--- exit code {result.returncode}\n"
    return text


def compare(name, text, update):
    path = HERE / "expected" / f"{name}.txt"
    before = path.read_text() if path.exists() else None
    if text == before:
        return True
    if update:
        path.write_text(text)
        print(f"updated  {name}")
        return True
    print(f"FAILED   {name}")
    lines = difflib.unified_diff((before or "").splitlines(), text.splitlines(),
                                 f"expected/{name}.txt", "printed", lineterm="")
    print("\n".join(lines))
    return False


def forget_unused(names):
    for path in (HERE / "expected").glob("*.txt"):
        if path.stem not in names:
            path.unlink()
            print(f"removed  {path.stem}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--suite", choices=["text", "run", "bench", "all"], default="all")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    program = options.program.resolve()

    failed = 0
    ran = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, case in cases.approval_cases().items():
            if options.suite in (case["suite"], "all") and options.only in name:
                ran += 1
                failed += not compare(name, run_case(program, case, scratch), options.update)
        for name, suite, check in checks.all_checks():
            if options.suite in (suite, "all") and options.only in name:
                ran += 1
                problem = check(program, pathlib.Path(scratch), clean_environment())
                if problem:
                    failed += 1
                    print(f"FAILED   {name}\n{problem}")
    if options.update and options.suite == "all" and not options.only:
        forget_unused(cases.approval_cases().keys())
    print(f"{ran} cases, {failed} failed")
    return 1 if failed or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
