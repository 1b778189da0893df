#!/usr/bin/env python3
"""Checks the SPIN models of the protocols: promela_test.py [--cc CC] [MODEL...].

Each model must hold in every configuration of RUNS, and each of its mutants, a line of the protocol
left out or done wrongly, must be rejected for the reason given there: so a model that no longer sees
a mistake fails too. Every mutant that a model names must be in the list.

  stuck   somebody waits for ever (an invalid end state)
  wrong   an assertion is violated
  loop    a claim about what must happen in the end does not hold
"""
import argparse
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src"
MODELS = [SOURCES / "transport" / "shm" / "promela", SOURCES / "diagnose" / "promela"]

REASONS = {"stuck": "invalid end state", "wrong": "assertion violated",
           "loop": r"(acceptance|non-progress) cycle"}

# Options to build and run pan: for deadlocks and assertions; for the LTL claim of the model; for
# progress, where each process that can always continue does so.
SAFETY = (["-DSAFETY"], [])
CLAIM = ([], ["-a"])
PROGRESS = (["-DNP", "-DNFAIR=4"], ["-l", "-f"])

# For each model: the way to check it, its configurations, and its mutants with their configuration.
RUNS = {
    "lane": (SAFETY, ["", "READERS=2"], {
        "HEADER_BEFORE_PAYLOAD": ("wrong", ""),
        "ONE_CELL_TOO_MANY": ("wrong", ""),
        "ONLY_ONE_READER": ("wrong", "READERS=2"),
        "REFERENCES_TOLD_LATE": ("stuck", ""),
        "RELEASE_BEFORE_READING": ("wrong", ""),
        "SEQUENCE_OF_ONE_LAP": ("wrong", ""),
        "TOLD_ONE_TOO_MANY": ("stuck", ""),
        "UNCHECKED_NEXT_CELLS": ("wrong", ""),
        "UNSIGNED_COMPARE": ("wrong", ""),
        "UNTOLD=3": ("stuck", ""),
    }),
    "slots": (SAFETY, ["", "PER_LANE=2", "READERS=2", "WITH_OUTSIDER"], {
        "GIVEN_WITHOUT_EXCHANGE": ("wrong", "WITH_OUTSIDER"),
        "LENT_BEFORE_WRITTEN": ("wrong", "WITH_OUTSIDER"),
        "OLD_POSITIONS_STAY": ("stuck", ""),
        "ONE_TOO_EARLY": ("wrong", "WITH_OUTSIDER"),
        "ONLY_ONE_READER": ("wrong", "READERS=2"),
        "RELEASE_BEFORE_READING": ("wrong", ""),
        "SLOT_READ_LATE": ("wrong", "WITH_OUTSIDER"),
        "WRITTEN_PAST_THE_FENCE": ("wrong", ""),
    }),
    "offers": (SAFETY, ["", "READERS=2", "READERS=2 RELAY", "DEATHS=1", "DEATHS=2 READERS=2",
                        "DEATHS=2 READERS=2 RELAY", "GIVES_UP"], {
        "ABORT_NOT_LOOKED_AT": ("stuck", "DEATHS=1"),
        "DEATHS_NOT_LOOKED_FOR": ("stuck", "DEATHS=1"),
        "LOOKED_BEFORE_FETCHED": ("wrong", ""),
        "NOT_DRAINED": ("wrong", ""),
        "NO_LOOK_AFTER_FETCHING": ("wrong", "READERS=2 RELAY"),
        "OFFERED_BEFORE_WRITTEN": ("wrong", ""),
        "ONLY_ONE_READER": ("wrong", "READERS=2"),
        "PART_TAKEN_FOR_ALL": ("wrong", ""),
        "TOLD_BEFORE_FETCHED": ("wrong", ""),
        "WITHOUT_A_WORD": ("wrong", "GIVES_UP"),
    }),
    "agreement": (SAFETY, ["", "LATE"], {
        "NOT_EXCHANGED": ("wrong", ""),
        "NOT_AWAITED": ("wrong", ""),
        "NO_TAKE_OVER": ("stuck", ""),
        "WHOLE_BEFORE_WRITTEN": ("wrong", ""),
    }),
    "pool": (SAFETY, [""], {
        "CHANGES_NOT_COUNTED": ("wrong", ""),
        "GIVEN_TAKEN_IN_TWO_STEPS": ("wrong", ""),
        "LINKED_AFTER_THE_EXCHANGE": ("wrong", ""),
    }),
    "event_counts": (SAFETY, ["", "CAP=2", "LANES=2"], {
        "BARRIER_BEFORE_ANNOUNCEMENT": ("stuck", ""),
        "BELL_READ_LATE": ("stuck", ""),
        "NO_MEMBARRIER": ("stuck", ""),
        "NO_SECOND_LOOK": ("stuck", ""),
        "RELEASE_DOES_NOT_RING": ("stuck", ""),
        "RING_BEFORE_SEND": ("stuck", ""),
        "SLEEPING_IS_A_FLAG": ("stuck", "LANES=2"),
        "WAKE_ONE": ("stuck", "LANES=2"),
        "WOKEN_WITHOUT_A_RING": ("stuck", ""),
    }),
    "event_counts on weakly ordered cores": (SAFETY, ["WEAK", "WEAK CAP=2"], {
        "BARRIER_BEFORE_ANNOUNCEMENT": ("stuck", "WEAK"),
        "NO_MEMBARRIER": ("stuck", "WEAK"),
        "NO_SECOND_LOOK": ("stuck", "WEAK"),
        "RING_BEFORE_SEND": ("stuck", "WEAK"),
    }),
    "event_counts without membarrier": (PROGRESS, ["NO_MEMBARRIER LIMIT"], {}),
    "requests": (SAFETY, [""], {"DONE_NOT_LOOKED_AT": ("stuck", "")}),
    "abort": (CLAIM, ["DEATHS=0", "DEATHS=1 RANKS=2", "DEATHS=1 OPERATIONS=1",
                      "DEATHS=2 OPERATIONS=1"], {
        "ABORT_NOT_LOOKED_AT": ("loop", "DEATHS=1 RANKS=2"),
        "COMPLETE_BEFORE_WRITTEN": ("wrong", "DEATHS=0"),
        "DEATHS_NOT_LOOKED_FOR": ("loop", "DEATHS=1 RANKS=2"),
        "HALF_WRITTEN_RECORD_READ": ("wrong", "DEATHS=0"),
        "LAST_REASON_WINS": ("wrong", "DEATHS=0"),
        "NO_SECOND_LOOK_AT_ABORT": ("loop", "DEATHS=0"),
        "REPORT_WAITS_FOR_THE_RECORD": ("loop", "DEATHS=1 RANKS=2"),
        "RING_BEFORE_RAISE": ("loop", "DEATHS=0"),
        "SLEEP_WITHOUT_LIMIT": ("loop", "DEATHS=1 RANKS=2"),
        "WOKEN_WITHOUT_A_RING": ("loop", "DEATHS=0"),
    }),
    "leave": (SAFETY, ["", "TRANSFERS", "TRANSFERS THREADS=2"], {
        "BOARD_BEFORE_LEFT": ("wrong", ""),
        "NO_LOOK_AFTER_LEAVING": ("wrong", "TRANSFERS"),
        "SEEN_BY_ANYBODY": ("wrong", "TRANSFERS"),
    }),
    "deadlock": (SAFETY, ["", "ROUNDS=2 ONE_SENDS"], {
        "ONE_LOOK": ("wrong", "RANKS=3 ONE_SENDS"),
        "RECEIVED_LATE": ("wrong", "RANKS=3 ONE_SENDS LONG_ONE"),
        "RECEIVED_NOT_COMPARED": ("wrong", ""),
        "SENT_NOT_COMPARED": ("wrong", "RANKS=3 ONE_SENDS"),
    }),
}

TRAIL_LINES = 40


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200,
                          check=False)
    return done.returncode, done.stdout + done.stderr


def path_of(options, name):
    """Returns the file of a model; None: there is none."""
    paths = [folder / name for folder in options.models]
    return next((path for path in paths if path.exists()), None)


class Check:
    """One configuration of a model: verify() returns the mistake in it."""

    def __init__(self, options, model, how, defines):
        self.options = options
        self.model = model
        self.how = how
        self.defines = [f"-D{define}" for define in defines.split()]
        self.report = ""

    def search(self, folder, optimise):
        """Returns the end of pan's output, or why there is none."""
        name = f"{self.model.split()[0]}.pml"
        shutil.copy(path_of(self.options, name), folder)
        built, ran = self.how
        status, text = run(["spin", "-a", *self.defines, name], folder)
        if status == 0:
            status, text = run([self.options.cc, optimise, "-w", *built, "-DMEMLIM=2000",
                                "-o", "pan", "pan.c"], folder)
        if status == 0:
            _, text = run(["./pan", "-m500000", "-w24", *ran], folder)
        self.report = text.split("Stats on memory")[0]
        if (pathlib.Path(folder) / f"{name}.trail").exists():
            _, trail = run(["spin", "-t", "-p", "-g", "-l", *self.defines, name], folder)
            self.report += "the end of the trail:\n" + "\n".join(
                "  " + line for line in trail.splitlines()[-TRAIL_LINES:])
        return text

    def verify(self, reason=None):
        with tempfile.TemporaryDirectory() as folder:
            text = self.search(folder, "-O0" if reason else "-O1")
        errors = re.search(r"errors: (\d+)", text)
        complete = errors and not re.search("max search depth|memory limit|out of memory", text)
        states = re.search(r"(\d\S*) states, stored", text)
        if reason is None:
            if complete and errors.group(1) == "0":
                return None, f"holds, {int(float(states.group(1))):,} states"
            return "does not hold", self.report
        if errors and errors.group(1) != "0" and re.search(REASONS[reason], text):
            return None, f"is rejected: {reason}"
        return f"is not rejected as '{reason}'", self.report


def seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def check_model(options, name):
    how, configurations, mutants = RUNS[name]
    jobs = [(None, defines) for defines in configurations]
    jobs += [(mutant, defines) for mutant, (_, defines) in mutants.items()]
    failures = 0
    for mutant, defines in jobs:
        begin = seconds()
        check = Check(options, name, how, " ".join(filter(None, [mutant, defines])))
        wrong, text = check.verify(mutants[mutant][0] if mutant else None)
        title = f"{name} {defines}".strip() + (f", mutant {mutant}" if mutant else "")
        if wrong:
            failures += 1
            print(f"FAILED  {title} {wrong}\n{text}")
        else:
            print(f"{seconds() - begin:5.1f} s  {title}: {text}", flush=True)
    return failures


def unlisted(options):
    """Yields switches that a model tests for and RUNS does not use, and missing models."""
    listed = {}
    for name, (_, configurations, mutants) in RUNS.items():
        words = " ".join([*configurations, *mutants, *(d for _, d in mutants.values())]).split()
        listed.setdefault(name.split()[0], set()).update(word.split("=")[0] for word in words)
    for path in sorted(path for folder in options.models for path in folder.glob("*.pml")):
        text = path.read_text()
        tested = set(re.findall(r"#ifn?def (\w+)", text)) | set(re.findall(r"defined\((\w+)\)", text))
        for switch in sorted(tested - listed.get(path.stem, set())):
            yield f"{path.name}: {switch} is in no run of {pathlib.Path(__file__).name}"
    for name in sorted(listed):
        if path_of(options, f"{name}.pml") is None:
            yield f"{name}.pml is not there"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="*", help="all, unless some are named")
    parser.add_argument("--models", type=pathlib.Path, nargs="+", default=MODELS,
                        help="the folders of the models")
    parser.add_argument("--cc", default="cc", help="the C compiler")
    options = parser.parse_args()
    if shutil.which("spin") is None:
        print("spin is not installed; run scripts/setup test")
        return 1
    findings = list(unlisted(options))
    print("\n".join(findings), end="\n" if findings else "")
    failures = len(findings)
    for name in RUNS:
        if not options.model or name.split()[0] in options.model:
            failures += check_model(options, name)
    print(f"{seconds():.1f} s of CPU time, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
