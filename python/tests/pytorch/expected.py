"""Tests of PyTorch that gloo passes and unisono does not, with the reason: each is about gloo."""

# Run, and failing.
FAILING = {
    "unisono": {
        "test_ddp_logging_data_cpu": "PyTorch logs the backend of every extension as 'custom'",
    },
    "in gloo's place": {
        "test_ddp_logging_data_cpu": "gloo's two threads are logged, which are not there",
    },
}


def reason(way, test, result, in_place):
    """Why this may be; None: it may not. `in_place`: what came of the test in gloo's place."""
    if test in FAILING[way]:
        return FAILING[way][test]
    if way == "unisono" and result.startswith("skip") and in_place == "pass":
        return "left out by PyTorch for all backends but gloo; in gloo's place it passes"
    return None
