"""unisono.TreeSum: the same bits for any number of ranks and leaves on each, against one process."""

import random

import ml_dtypes
import numpy as np
import pytest
import torch
import unisono

TYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]


def leaf(number, count, dtype):
    """Numbers whose sum depends on the order."""
    generator = np.random.default_rng(number)
    return (generator.standard_normal(count) * 2.0 ** generator.integers(0, 9, count)).astype(dtype)


def tree(first, end, count, dtype):
    if end - first == 1:
        return leaf(first, count, dtype)
    half = 1
    while 2 * half < end - first:
        half *= 2
    return tree(first, first + half, count, dtype) + tree(first + half, end, count, dtype)


def summed(comm, leaves, count, dtype, as_array=lambda array: array):
    first = sum(leaves[: comm.rank])
    total = unisono.TreeSum(sum(leaves), first)
    for number in range(first, first + leaves[comm.rank]):
        assert total.next == number
        total.add(as_array(leaf(number, count, dtype)))
    return total.all_reduce(comm, leaves, as_array(np.zeros(count, dtype)))


@pytest.mark.parametrize("ranks", range(1, 9))
def test_has_the_bits_of_one_process(ranks):
    draw = random.Random(ranks)
    cases = [([24 * (r + 1) // ranks - 24 * r // ranks for r in range(ranks)], 840)]
    cases += [([2**power] * ranks, 33) for power in range(3)]
    for count in (0, 1, 5, 333):
        leaves = [draw.randrange(5) for _ in range(ranks)]
        leaves[draw.randrange(ranks)] += 1
        cases.append((leaves, count))

    def body(comm):
        wrong = []
        for leaves, count in cases:
            for dtype in TYPES:
                want = tree(0, sum(leaves), count, dtype)
                if summed(comm, leaves, count, dtype).tobytes() != want.tobytes():
                    wrong.append((leaves, count, np.dtype(dtype).name))
        return wrong

    assert unisono.run_threads(ranks, body) == [[]] * ranks


def test_takes_tensors_also_transposed_ones():
    def body(comm):
        found = summed(comm, [1, 2, 3], 12, np.float32, lambda array: torch.from_numpy(array).reshape(4, 3).T)
        return np.array_equal(found.numpy(), tree(0, 6, 12, np.float32).reshape(4, 3).T)

    assert unisono.run_threads(3, body) == [True] * 3


def test_refuses_leaves_that_do_not_fit():
    with pytest.raises(unisono.UsageError, match="leaf 5 is not one of 4 leaves"):
        unisono.TreeSum(4, 5)
    total = unisono.TreeSum(2)
    total.add(np.ones(1))
    with pytest.raises(unisono.UsageError, match="has leaves 0 to 1 of 2"):
        total.sum()
    total.add(np.ones(1))
    assert total.sum() == 2
    with pytest.raises(unisono.UsageError, match="leaf 2 is not one of 2 leaves"):
        total.add(np.ones(1))

    def body(comm):
        with pytest.raises(unisono.UsageError, match=r"has leaves 0 to 2 of 2, and the list of all ranks is \[3\]"):
            total.all_reduce(comm, [3])

    unisono.run_threads(1, body)
