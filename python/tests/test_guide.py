"""The programs of docs/guides/pytorch.md run as they stand there, under torchrun."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "pytorch.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


def test_there_are_programs():
    assert len(PROGRAMS) == 4


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_program(number, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAMS[number])
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", program],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
