#!/usr/bin/env python3
"""Reports the times of the last run of scripts/test, from its files in build/.

  steps     building and testing each suite: elapsed and processor seconds
  build     seconds of compilations and links per kind of target, as of their latest run; other work ran at
            the same time, and ccache hits are short
  slowest   sources and links, and tests of all suites

Usage: test_times.py [--top N]. Prints the table, and writes it to build/times.txt.
"""

import argparse
import collections
import re
import sys
import xml.etree.ElementTree
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"


def steps_of(folder):
    """Yields (suite, step, elapsed, processor) of each step, in seconds."""
    path = folder / "times" / "steps.txt"
    for line in path.read_text().splitlines() if path.exists() else []:
        words = line.split()
        if len(words) == 5 and words[1] in ("build", "test"):
            yield words[0], words[1], float(words[2]), float(words[3]) + float(words[4])


def jobs_of(log):
    """Returns (seconds, output) of ninja's commands, once per command."""
    last = {}
    for line in log.read_text().splitlines():
        words = line.split("\t")
        if len(words) == 5:
            last[words[3]] = (int(words[0]), int(words[1]), words[4])
    commands = {job: output for output, job in last.items()}
    return [((end - start) / 1000, output) for (start, end, _), output in commands.items()]


def kind_of(output):
    """Returns the target of an object; all links count as one kind."""
    found = re.search(r"CMakeFiles/([^/]+)\.dir/", output)
    if not output.endswith(".o") or not found:
        return "links and others"
    name = found.group(1)
    return "tests" if name.endswith("_test") or "/tests/" in f"/{output}" else name


def tests_of(report):
    """Yields (seconds, name) of the tests in a JUnit file."""
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        name = case.get("name", "")
        classname = case.get("classname", name)
        yield float(case.get("time") or 0), name if classname == name else f"{classname}: {name}"


def rows(pairs, count):
    return [f"{seconds:9.1f} s  {name}" for seconds, name in sorted(pairs, reverse=True)[:count]]


def table(folder, top):
    lines = ["steps                        clock  processor"]
    for suite, step, clock, processor in steps_of(folder):
        lines.append(f"{suite + ': ' + step:24} {clock:7.0f} s  {processor:7.0f} s")
    sources, tests = [], []
    for log in sorted(folder.glob("*/.ninja_log")):
        suite = log.parent.name
        if suite != "python" and not (folder / "times" / f"{suite}.xml").exists():
            continue
        jobs = jobs_of(log)
        kinds = collections.defaultdict(lambda: [0, 0.0])
        for seconds, output in jobs:
            kind = kinds[kind_of(output)]
            kind[0] += 1
            kind[1] += seconds
        lines += ["", f"{suite}: {len(jobs)} jobs of the build, {sum(job[0] for job in jobs):.0f} s"]
        lines += rows(((spent, f"{name} ({count})") for name, (count, spent) in kinds.items()), 12)
        sources += [(seconds, f"{suite}: {output}") for seconds, output in jobs]
    for report in sorted((folder / "times").glob("*.xml")):
        found = list(tests_of(report))
        lines += ["", f"{report.stem}: {len(found)} tests, {sum(test[0] for test in found):.0f} s"]
        tests += [(seconds, f"{report.stem}: {name}") for seconds, name in found]
    lines += ["", f"the {top} slowest jobs of the builds", *rows(sources, top)]
    lines += ["", f"the {top} slowest tests", *rows(tests, top)]
    return "\n".join(lines) + "\n"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--top", type=int, default=20, help="how many of the slowest (20)")
    top = options.parse_args().top
    if not (BUILD / "times" / "steps.txt").exists():
        sys.exit("test_times.py: scripts/test has not run here yet")
    text = table(BUILD, top)
    (BUILD / "times.txt").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
