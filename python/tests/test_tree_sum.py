"""unisono.TreeSum: the same bits for any number of ranks and leaves per rank, compared with one process."""

import random

import jobs
import ml_dtypes
import numpy as np
import pytest
import torch
import torch.distributed as dist
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


def test_scatters_the_bits_of_one_process():
    def body(comm):
        total = unisono.TreeSum(7, [0, 2, 3][comm.rank])
        for number in range(*[(0, 2), (2, 3), (3, 7)][comm.rank]):
            total.add(leaf(number, 12, np.float32))
        part = total.reduce_scatter(comm, [2, 1, 4])
        with pytest.raises(unisono.UsageError, match="1 elements cannot be split between 3 ranks"):
            odd = unisono.TreeSum(3, comm.rank)
            odd.add(np.ones(1))
            odd.reduce_scatter(comm, [1, 1, 1])
        return np.array_equal(part, tree(0, 7, 12, np.float32)[4 * comm.rank : 4 * comm.rank + 4])

    assert unisono.run_threads(3, body) == [True] * 3


@pytest.mark.parametrize("leaves", [[2, 1, 4], [2, 2, 2], [0, 5, 1]], ids=str)
def test_reduces_the_bits_of_one_process(leaves):
    def body(comm):
        total = unisono.TreeSum(sum(leaves), sum(leaves[: comm.rank]))
        for number in range(total.next, total.next + leaves[comm.rank]):
            total.add(leaf(number, 10, np.float32).reshape(2, 5))
        with pytest.raises(unisono.UsageError, match="rank 3 is not one of 3 ranks"):
            total.reduce(comm, leaves, 3, np.zeros((2, 5), np.float32))
        return [total.reduce(comm, leaves, root, np.zeros((2, 5), np.float32)) for root in range(3)]

    want = tree(0, sum(leaves), 10, np.float32).reshape(2, 5)
    for rank, results in enumerate(unisono.run_threads(3, body)):
        for root, result in enumerate(results):
            assert (result is None) == (rank != root)
            assert result is None or result.tobytes() == want.tobytes()


def over_a_group():
    rank = dist.get_rank()
    comm = dist.group.WORLD
    leaves = [2, 0, 3]
    total = unisono.TreeSum(5, sum(leaves[:rank]))
    for number in range(total.next, total.next + leaves[rank]):
        total.add(torch.from_numpy(leaf(number, 7, np.float32)))
    return total.all_reduce(comm, leaves, torch.empty(7)).numpy().tobytes()


@pytest.mark.parametrize("backend", ["unisono", "gloo"])
def test_takes_process_groups(backend):
    assert jobs.run(3, over_a_group, backend=backend) == [tree(0, 5, 7, np.float32).tobytes()] * 3


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
