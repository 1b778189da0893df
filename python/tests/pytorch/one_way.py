"""Runs PyTorch's distributed_test.py with the settings in the environment (see suite.py):

one_way.py RESULTS.json [PART-OF-A-NAME...]
"""

import json
import os
import sys
import unittest

import torch
from torch.testing._internal import common_distributed

# distributed_test reads these sets when it is imported, and skips tests for backends that they do
# not name.
for feature in ("ddp", "subgroup"):
    common_distributed.DistTestCases.backend_feature[feature].add(os.environ["BACKEND"])

from torch.testing._internal.distributed import distributed_test  # noqa: E402


class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """Ranks are forked, because loading PyTorch in each process takes longer than most tests."""

    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)
        torch.backends.cudnn.flags(enabled=True, allow_tf32=False).__enter__()


class Results(unittest.TextTestResult):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.found = {}

    def addSuccess(self, test):
        super().addSuccess(test)
        self.found[test._testMethodName] = "pass"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.found[test._testMethodName] = f"skip: {reason}"

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note_failure(test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self.note_failure(test, error)

    def note_failure(self, test, error):
        name = getattr(test, "_testMethodName", str(test))
        lines = [line for line in str(error[1]).splitlines() if line.strip()]
        raised = [line for line in lines if "Error" in line]
        self.found[name] = f"fail: {(raised or lines or ['without a word'])[-1].strip()[:300]}"


def main():
    results, *parts = sys.argv[1:]
    names = unittest.TestLoader().getTestCaseNames(Suite)
    chosen = [name for name in names if not parts or any(part in name for part in parts)]
    suite = unittest.TestSuite(Suite(name) for name in chosen)
    done = unittest.TextTestRunner(resultclass=Results, verbosity=2).run(suite)
    with open(results, "w") as file:
        json.dump(done.found, file)


if __name__ == "__main__":
    main()
