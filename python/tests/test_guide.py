"""The programs of docs/guides/pytorch.md run as they stand there; the first also under torchrun."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import jobs
import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "pytorch.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


def test_there_are_programs():
    assert len(PROGRAMS) == 4


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
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
