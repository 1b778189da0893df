"""Tests of PyTorch that gloo passes and unisono does not, with PyTorch's file and line (2.13.0)."""

_TEST = "torch/testing/_internal/distributed/distributed_test.py"
# Tests that run and fail.
FAILING = {
    "unisono": {
        "test_ddp_logging_data_cpu": f"{_TEST}:6277 wants the backend's name in DDP's log, where "
        "torch/csrc/distributed/c10d/ProcessGroup.hpp:115 calls every extension 'custom'",
    },
    "in gloo's place": {
        "test_ddp_logging_data_cpu": f"{_TEST}:6318 wants gloo's two threads in DDP's log; unisono has none",
    },
}
# The decorator of a test that PyTorch skips: skip_but_pass_in_sandcastle_if(BACKEND != "gloo",
# ...).
_LEFT_OUT = f"left out by {_TEST} for all backends but gloo (855, 1519, 2979, ...); in gloo's place it passes"


def reason(way, test, result, in_place):
    """Returns the reason for an expected failure; None: it is not expected. `in_place`: the result in gloo's place."""
    if test in FAILING[way]:
        return FAILING[way][test]
    if way == "unisono" and result.startswith("skip") and in_place == "pass":
        return _LEFT_OUT
    return None
