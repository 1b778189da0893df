"""Approval tests of the command line: the output of each command, and its exit code.

    approve.py --program build/dev/tools/unisono/unisono            compares
    approve.py --program ... --accept                               writes what is printed now
    approve.py --program ... --suite text --only verify_right

A case is some lines of a file in transcripts/, which transcripts.py explains; --accept fills in what a
new one prints. Checks that need a program are functions in *_checks.py. As many run at a time as there
are processors. Names of hosts, process numbers and times are replaced before anything is compared.
"""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

import checks
import transcripts
from check_tools import LIMIT_S

HERE = pathlib.Path(__file__).resolve().parent


def clean_environment():
    """Removes the caller's environment variables that could change the output."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("UNISONO_", "OMPI_", "PMI_", "SLURM_", "LC_"))
            and name not in ("LANG", "RANK", "WORLD_SIZE", "NO_COLOR", "COLUMNS", "LOCAL_WORLD_SIZE")}
    kept["COLUMNS"] = "100"
    kept["XDG_CONFIG_HOME"] = str(HERE / "absent")  # no profile of this machine
    return kept


def normalised(text, scratch):
    host = socket.gethostname().split(".")[0]
    # A colour may come before the name and after the number of the rank.
    text = re.sub(rf"(?:\b|(?<=\033\[\d\dm)){re.escape(host)}(?=(:\d+\b| pid ))", "HOST", text)
    text = re.sub(r"\bpid \d+", "pid N", text)
    text = re.sub(r"\d+\.\d s after", "T s after", text)
    text = re.sub(r"after \d+\.\d s \(", "after T s (", text)
    text = re.sub(r"启动后 \d+\.\d 秒", "启动后 T 秒", text)
    # The source lines of the catalogue's moves change with its files.
    text = re.sub(r'"line": ?\[[\d, ]*\]', '"line": [...]', text)
    return text.replace(scratch, "SCRATCH")


def run_case(program, case):
    """Returns the lines of a transcript for the present output."""
    with tempfile.TemporaryDirectory() as scratch:
        words = [word.replace("SCRATCH", scratch).replace("PROGRAM", str(program)) for word in case.words]
        result = subprocess.run([str(program), *words], cwd=HERE / "files", env=clean_environment() | case.environment,
                                input=case.input, capture_output=True, text=True, timeout=LIMIT_S)
        return transcripts.printed_lines(normalised(result.stdout, scratch), normalised(result.stderr, scratch),
                                         result.returncode)


def run_check(program, check):
    """Returns the differences as lines, or an empty list."""
    with tempfile.TemporaryDirectory() as scratch:
        return (check(program, pathlib.Path(scratch), clean_environment()) or "").splitlines()


def difference(case, printed):
    return list(difflib.unified_diff(case.printed, printed, case.place, "printed", lineterm=""))


def compare(futures, accept):
    """Prints failures and accepted cases as they finish. Returns the number of failed cases."""
    failed = 0
    for future in concurrent.futures.as_completed(futures):
        name, case = futures[future]
        try:
            problem = future.result() if case is None else difference(case, future.result())
        except (OSError, ValueError, KeyError, IndexError, AssertionError, subprocess.SubprocessError) as error:
            problem, case = [f"{type(error).__name__}: {error}"], None
        if problem and accept and case is not None:
            case.printed = future.result()
            print(f"accepted {name}", flush=True)
        elif problem:
            failed += 1
            print(f"FAILED   {name}", *problem, sep="\n", flush=True)
    return failed


def suite_of(path):
    """The jobs of `unisono run` take long, and are a separate test."""
    return "run" if path.stem == "run" else "text"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--suite", choices=["text", "run", "bench", "all"], default="all")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--accept", action="store_true", help="write what is printed now into transcripts/")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="cases at a time (processors)")
    options = parser.parse_args()
    program = options.program.resolve()

    def wanted(suite, name):
        return options.suite in (suite, "all") and options.only in name

    try:
        files = transcripts.read_all(HERE / "transcripts")
    except ValueError as error:
        sys.exit(f"approve.py: {error}")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(run_check, program, check): (name, None)  # first: some take long
                   for name, suite, check in checks.all_checks() if wanted(suite, name)}
        futures |= {pool.submit(run_case, program, case): (case.name, case)
                    for path, (cases, _) in files.items() for case in cases if wanted(suite_of(path), case.name)}
        failed = compare(futures, options.accept)
    if options.accept:
        for path, (cases, comments) in files.items():
            transcripts.write(path, cases, comments)
    print(f"{len(futures)} cases, {failed} failed")
    return 1 if failed or not futures else 0


if __name__ == "__main__":
    sys.exit(main())
