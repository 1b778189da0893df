"""unisono.torch.sum_over_leaves: training with any number of ranks, DDP and FSDP2, gives the same bits."""

import hashlib

import jobs
import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import unisono

LEAVES = 24
STEPS = 3


def make_model():
    torch.manual_seed(5)
    return torch.nn.Sequential(
        torch.nn.Linear(7, 33), torch.nn.LayerNorm(33), torch.nn.GELU(), torch.nn.Linear(33, 19, bias=False),
        torch.nn.Tanh(), torch.nn.Linear(19, 3),
    )  # fmt: skip


def train(model, parameters, leaves, first, backward):
    """Returns the bits of all weights after some steps; backward(loss, leaf) is the backward pass of a leaf."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        for leaf in range(first, first + leaves):
            torch.manual_seed(1000 * step + leaf)
            scale = 2.0 ** (leaf % 5)  # so that the order of the sum matters
            backward(model(torch.randn(4, 7) * scale).square().mean())
        optimizer.step()
        optimizer.zero_grad()
    bits = b"".join(p.detach().numpy().tobytes() for p in parameters(model))
    return hashlib.sha256(bits).hexdigest()


def in_one_process():
    """By definition: the tree over the gradients of the leaves."""
    model = make_model()
    sums = {p: unisono.TreeSum(LEAVES) for p in model.parameters()}

    def backward(loss):
        loss.backward()
        for p, total in sums.items():
            total.add(p.grad)
            p.grad = None
            if total.next == LEAVES:
                p.grad = total.sum() / LEAVES
                sums[p] = unisono.TreeSum(LEAVES)

    return train(model, lambda model: model.parameters(), LEAVES, 0, backward)


def by_ddp(leaves):
    model = DistributedDataParallel(make_model(), bucket_cap_mb=0.001)
    unisono.torch.sum_over_leaves(model, leaves)
    rank = dist.get_rank()
    return train(model, lambda model: model.parameters(), leaves[rank], sum(leaves[:rank]), torch.Tensor.backward)


def by_fsdp(leaves):
    model = make_model()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in (model[0], model[3]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    unisono.torch.sum_over_leaves(model, leaves)
    rank = dist.get_rank()

    def whole(model):
        return [p.full_tensor() for p in model.parameters()]

    return train(model, whole, leaves[rank], sum(leaves[:rank]), torch.Tensor.backward)


@pytest.fixture(scope="module")
def expected():
    return jobs.run(1, in_one_process, backend=None)[0]


EVEN = [[LEAVES // ranks] * ranks for ranks in (1, 2, 3, 4, 8)]


@pytest.mark.parametrize("leaves", [*EVEN, [11, 13], [12, 8, 4], [2, 5, 3, 2, 4, 3, 2, 3]], ids=str)
def test_ddp_has_the_bits_of_one_process(leaves, expected):
    assert jobs.run(len(leaves), by_ddp, leaves) == [expected] * len(leaves)


@pytest.mark.parametrize("leaves", EVEN, ids=str)
def test_fsdp_has_the_bits_of_one_process(leaves, expected):
    assert jobs.run(len(leaves), by_fsdp, leaves) == [expected] * len(leaves)


def test_works_with_gloo(expected):
    assert jobs.run(3, by_ddp, [8, 8, 8], backend="gloo") == [expected] * 3


def refusals():
    def expect(error, sentence, model, leaves):
        with pytest.raises(error, match=sentence):
            unisono.torch.sum_over_leaves(model, leaves)

    plain = torch.nn.BatchNorm1d(3)
    ddp = DistributedDataParallel(plain)
    expect(TypeError, "a BatchNorm1d is neither", plain, [1, 1])
    expect(ValueError, "each rank needs at least one", ddp, [2, 0])
    expect(ValueError, "are those of 3 ranks, not of 2", ddp, [1, 1, 1])
    expect(ValueError, "at least two leaves, or each one", ddp, [1, 2])
    expect(ValueError, "broadcasts the module's buffers", ddp, [2, 3])
    sharded = fully_shard(torch.nn.Linear(2, 2), mesh=init_device_mesh("cpu", (2,)))
    expect(ValueError, "gathers parameters of all ranks", sharded, [2, 3])
    hybrid = fully_shard(torch.nn.Linear(2, 2), mesh=init_device_mesh("cpu", (1, 2), mesh_dim_names=("a", "b")))
    expect(ValueError, "more than one dimension", hybrid, [2, 2])
    unused = DistributedDataParallel(torch.nn.Linear(2, 2), find_unused_parameters=True)
    expect(ValueError, "with find_unused_parameters=True", unused, [2, 2])


def test_refuses_what_cannot_be():
    jobs.run(2, refusals)
