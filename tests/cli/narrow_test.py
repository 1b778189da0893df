#!/usr/bin/env python3
"""Checks that no command writes a line wider than a terminal of 80 columns.

Usage: narrow_test.py PROGRAM. Formats for programs (JSON, CSV, XML) are not lines for people.
"""

import os
import subprocess
import sys
import unicodedata

COLUMNS = 80
COMMANDS = """
help
help run
list
list all_reduce
list --topologies
show all_reduce/ring
show all_reduce/ring -n 8
show all_to_all/pairwise
show broadcast/double_tree
show all_reduce/ring --sends
verify all_reduce/ring
verify all
plan all_reduce -n 4
plan broadcast -n 64 --size 64M
plan all_reduce --on dgx_h100
plan-model llama3-8b --on dgx_h100 --train
plan-model llama3-405b --on dgx_h100:nodes=16 --train
plan-model llama3-70b --on dgx_h100 --serve
plan-model deepseek-v3 --on dgx_h100:nodes=8 --train --batch 512
plan-model deepseek-v3 --on dgx_h100:nodes=2 --serve
plan-model llama3-405b --on dgx_h100 --train
sim all_reduce/ring -n 4
sim all_reduce --on dgx_h100
topo list
topo show dgx_h100
step list
step show llama3-8b --layout tp=2
step show deepseek-v3 --layout ep=8
pipeline list
pipeline show 1f1b --stages 4 --microbatches 8
pipeline verify 1f1b --stages 4 --microbatches 8
learn
env
doctor
top
bench all_reduce -e 64
run -n 2 -- {program} bench all_reduce -e 64
run -n 2 -- {program} bench all -e 64
run -n 2 -- false
nosuch
plan nosuch
run -n 0 -- true
""".strip().splitlines()


def width(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def main():
    program = os.path.abspath(sys.argv[1])
    too_wide = []
    for command in COMMANDS:
        done = subprocess.run([program, *command.format(program=program).split()], text=True, timeout=600,
                              capture_output=True, check=False, stdin=subprocess.DEVNULL,
                              env=os.environ | {"COLUMNS": str(COLUMNS), "UNISONO_LANG": "en"})
        for line in (done.stdout + done.stderr).replace(program, "unisono").splitlines():
            if width(line) > COLUMNS:
                too_wide.append(f"unisono {command}: {width(line)} columns: {line}")
    print("\n".join(too_wide[:200]))
    print(f"{len(COMMANDS)} commands, {len(too_wide)} lines wider than {COLUMNS} columns")
    return 1 if too_wide else 0


if __name__ == "__main__":
    sys.exit(main())
