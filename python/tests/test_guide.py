"""The programs of the guides run unchanged; the first PyTorch program also runs under torchrun."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import jobs
import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
GUIDE = GUIDES / "pytorch.md"
PYTHON_GUIDE = GUIDES / "python.md"


def programs(guide):
    return re.findall(r"^```python\n(.*?)^```$", guide.read_text(), re.DOTALL | re.MULTILINE)


PROGRAMS = programs(GUIDE)
PYTHON_PROGRAMS = [*programs(PYTHON_GUIDE), *programs(GUIDES / "adopt.md"), *programs(GUIDES / "reshard.md")]


def test_there_are_programs():
    assert (len(PROGRAMS), len(PYTHON_PROGRAMS)) == (7, 13)


def run_program(text, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    exec(compile(text, str(GUIDE), "exec"), {"__name__": "__main__"})
    return True


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_program(number):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert jobs.run(2, run_program, PROGRAMS[number], port, backend=None) == [True, True]


def test_torchrun(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAMS[0])
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", program],
        capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-8000:]


@pytest.mark.parametrize("number", range(len(PYTHON_PROGRAMS)))
def test_program_without_torch(number, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PYTHON_PROGRAMS[number])
    ranks = []
    for rank in range(2):
        names = {"UNISONO_RANK": str(rank), "UNISONO_SIZE": "2", "UNISONO_JOB": str(tmp_path)}
        ranks.append(subprocess.Popen(
            [sys.executable, program], env={**os.environ, **names}, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True))  # fmt: skip
    for rank in ranks:
        assert (rank.communicate(timeout=300)[1], rank.returncode) == ("", 0)
