"""Shared by the tests of results: the ways to call an operation, and the differences from the expected result."""

import torch.distributed as dist
from reference import ALL, LAYOUTS, same

SHAPE = (3, 5)


class Check:
    """Collects all mistakes, so that one job reports all of them."""

    def __init__(self):
        self.wrong = []

    def equal(self, got, want, what):
        if not same(got, want):
            self.wrong.append(f"{what}: {got.flatten()[:6].tolist()}, not {want.flatten()[:6].tolist()}")

    def done(self):
        return self.wrong[:10]


def variants(dtypes=ALL):
    for dtype in dtypes:
        for layout in LAYOUTS:
            for run_async in (False, True):
                yield dtype, layout, run_async, f"{dtype} {layout} {'async' if run_async else 'sync'}"


def asked(options, run_async, op=None):
    options.asyncOp = run_async
    if op is not None:
        options.reduceOp = op
    return options


def finish(work, run_async):
    assert (work is not None) == run_async, "a Work is what an asynchronous call gives"
    if work is not None:
        work.wait()


def run_case(case):
    return case(dist.get_rank(), dist.get_world_size())
