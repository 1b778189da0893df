"""Tests of PyTorch that gloo passes and unisono does not, with the reason: each is about gloo."""

# Left out by PyTorch for every backend but gloo; in its place they are run.
GATED = {}
# Run, and failing.
OWN_NAME = {}
IN_GLOOS_PLACE = {}


def reason(way, test):
    """Why this may fail; None: it may not."""
    if way == "unisono":
        return GATED.get(test) or OWN_NAME.get(test)
    return IN_GLOOS_PLACE.get(test)
