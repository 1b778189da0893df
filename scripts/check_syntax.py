#!/usr/bin/env python3
"""Compiles changed C and C++ files with clang, each on its own, only for warnings and errors.

    check_syntax.py           files that differ from the branch's base (or, on main, from the last commit)
    check_syntax.py --all     every file; finds files that depend on their neighbours in a unity build

Uses the flags of the preset `clang` in build/syntax, which is configured but never built. Without --all, no
compilation starts after LIMIT_S seconds, so that the pre-push hook stays fast; the last line reports the
number of files left. The exit status is 1 if a file does not compile.
"""

import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "syntax"
LIMIT_S = 20
SOURCES = (".cc", ".c", ".cpp")
HEADERS = (".h", ".hpp")


def git(*words):
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:  # git is not installed
        return None
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else None


def base():
    """Returns the commit at which this branch began."""
    for name in ("origin/main", "main"):
        found = git("merge-base", "HEAD", name)
        if found and found != git("rev-parse", "HEAD"):
            return found[0]
    return "HEAD"


def changed():
    found = (git("diff", "--name-only", "--diff-filter=d", base()) or []) + (
        git("ls-files", "-o", "--exclude-standard") or [])
    return sorted({ROOT / name for name in found if name.endswith(SOURCES + HEADERS)})


def database():
    """Returns {source: (folder, compiler arguments without the output)}."""
    # Disables the precompiled header: it is not built here, and each file must include what it
    # uses.
    configure = ["cmake", "--preset", "clang", "-B", str(BUILD), "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
                 "-DCMAKE_CXX_COMPILER_LAUNCHER=", "-DCMAKE_C_COMPILER_LAUNCHER=", "--log-level=WARNING"]
    done = subprocess.run(configure, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"check: syntax: cannot configure (scripts/setup build test installs what it needs):\n{done.stdout}")
    commands = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        words = words[:words.index("-o")] + words[words.index("-o") + 2:]
        source = Path(entry["file"])
        commands.setdefault(source, (entry["directory"], [word for word in words if word not in ("-c", str(source))]))
    return commands


def jobs_for(paths, commands):
    """Returns (path, folder, command) for each file that the build knows. A header gets the flags of a source
    in its folder."""
    beside = {source.parent: (folder, words) for source, (folder, words) in sorted(commands.items())
              if source.suffix != ".c"}
    for path in paths:
        if path in commands:
            folder, words = commands[path]
        elif path.suffix in HEADERS and not path.name.endswith("-inl.h"):  # Highway includes these many times
            near = next((parent for parent in path.parents if parent in beside), None)
            if near is None and ROOT / "include" in path.parents:
                near = ROOT / "src" / "base"
            if near not in beside:
                continue
            folder, words = beside[near]
            words = [*words, "-Wno-pragma-once-outside-header", "-Wno-unused", "-x", "c++"]
        else:
            continue
        yield path, folder, [*words, "-fsyntax-only", str(path)]


def main():
    everything = sys.argv[1:] == ["--all"]
    if sys.argv[1:] and not everything:
        print(__doc__, end="")
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    paths = [] if everything else changed()
    if not paths and not everything:
        print("check: syntax: no C or C++ file has changed")
        return 0
    end = time.monotonic() + LIMIT_S
    commands = database()
    jobs = list(jobs_for(sorted(commands) if everything else paths, commands))
    # Compile the newest files first, because they are the most likely to be wrong.
    jobs.sort(key=lambda job: -job[0].stat().st_mtime)

    def compile_one(job):
        path, folder, command = job
        if not everything and time.monotonic() > end:
            return path, None
        return path, subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    check=False)

    left, wrong = 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, done in pool.map(compile_one, jobs):
            left += done is None
            if done is not None and done.returncode != 0:
                wrong += 1
                print(f"check: syntax: {path.relative_to(ROOT)} does not compile alone:\n{done.stdout}", flush=True)
    if wrong:
        print(f"check: syntax: {wrong} of {len(jobs) - left} files are wrong", file=sys.stderr)
        return 1
    print(f"check: syntax: {len(jobs) - left} files are right" +
          (f"; {left} more were not compiled within {LIMIT_S} s: scripts/check --syntax=all" if left else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
