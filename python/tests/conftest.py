"""Makes the examples importable, in the test process and in the ranks."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: left out of scripts/test-python --quick")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Tests see the built-in choices, whatever is tuned or set on this machine."""
    for name in ("UNISONO_REPLACE_GLOO", "UNISONO_ALGORITHM", "UNISONO_TIMEOUT_MS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UNISONO_PROFILE", "none")
