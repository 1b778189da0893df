"""unisono.experts: arrays of numpy and torch, and gradients, against one process."""

import jobs
import ml_dtypes
import numpy as np
import pytest
import torch
import unisono
from unisono import experts

EXPERTS, K, HIDDEN = 6, 2, 5
TOLERANCE = {"none": 0, "i8": 4 / 254, "f8e4m3": 4 / 16}  # of magnitudes up to 4


def chosen_of(rank, dtype):
    count = 0 if rank == 2 else 3 + rank  # a rank without tokens
    random = np.random.default_rng(rank)
    return np.array(
        [random.permutation(EXPERTS)[:K] for _ in range(count)], dtype=dtype
    ).reshape(count, K)


def tokens_of(rank):
    count = len(chosen_of(rank, "i8"))
    return np.random.default_rng(100 + rank).integers(-4, 5, (count, HIDDEN)).astype("f4")


def weights_of(rank):
    count = len(chosen_of(rank, "i8"))
    return np.random.default_rng(200 + rank).integers(1, 4, (count, K)).astype("f4")


def compute(routing, rows):
    out = np.zeros(rows.shape, "f4")
    for local, expert in enumerate(routing.experts_here):
        part = routing.rows_of_expert(local)
        out[part] = rows[part].astype("f4") * (expert + 1)
    return out


def expected(rank):
    factors = (weights_of(rank) * (chosen_of(rank, "i8") + 1)).sum(1, keepdims=True)
    return tokens_of(rank) * factors


def everywhere(ranks, check, *args):
    unisono.run_threads(ranks, lambda comm: check(comm, *args), timeout_ms=60_000)


def round_trip(comm, dtype, form, coding):
    exchange = experts.Exchange(comm, EXPERTS, K, alignment=4)
    routing = exchange.route(chosen_of(comm.rank, "i8" if form == "blocking" else "i4"))
    tokens = tokens_of(comm.rank).astype(dtype)
    if form == "halves":
        exchange.start_dispatch(routing, tokens, coding=coding)
        rows = exchange.finish_dispatch()
    elif form == "async":
        rows = exchange.dispatch_async(routing, tokens, coding=coding).wait()
    else:
        rows = exchange.dispatch(routing, tokens, coding=coding)
    assert rows.dtype == tokens.dtype and rows.shape == (routing.rows, HIDDEN)
    source = routing.sources
    assert source.shape == (routing.rows, 3)
    for row, (rank, token, _) in zip(rows.astype("f4"), source):
        want = tokens_of(rank)[token] if rank >= 0 else np.zeros(HIDDEN)
        np.testing.assert_allclose(row, want, atol=TOLERANCE[coding] + 1e-6)
    outputs = compute(routing, rows).astype(dtype)
    weights = weights_of(comm.rank)
    if form == "halves":
        exchange.start_combine(routing, outputs, weights)
        sums = exchange.finish_combine()
    elif form == "async":
        sums = exchange.combine_async(routing, outputs, weights).wait()
    else:
        sums = exchange.combine(routing, outputs, weights)
    exact = dtype == np.dtype("f4") and coding == "none"
    np.testing.assert_allclose(
        sums.astype("f4"),
        expected(comm.rank),
        atol=0 if exact else 2 + 30 * TOLERANCE[coding],
        rtol=0 if exact else 0.02,
    )
    assert sum(routing.chosen) == sum(len(chosen_of(rank, "i8")) * K for rank in range(comm.size))
    exchange.close()


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("coding", ["none", "i8", "f8e4m3"])
@pytest.mark.parametrize("form", ["blocking", "halves", "async"])
@pytest.mark.parametrize("dtype", ["float32", ml_dtypes.bfloat16])
def test_round_trip(ranks, dtype, form, coding):
    everywhere(ranks, round_trip, np.dtype(dtype), form, coding)


def with_torch(comm):
    exchange = experts.Exchange(comm, EXPERTS, K, layout="flat")
    routing = exchange.route(torch.from_numpy(chosen_of(comm.rank, "i8")))
    rows = exchange.dispatch(routing, torch.from_numpy(tokens_of(comm.rank)))
    assert isinstance(rows, torch.Tensor)
    here = np.array(routing.experts_here)
    factors = torch.from_numpy(here[routing.experts[:, 0]] + 1).float() if routing.rows else 1
    outputs = rows * factors[:, None] if routing.rows else rows
    sums = exchange.combine(routing, outputs, torch.from_numpy(weights_of(comm.rank)))
    np.testing.assert_array_equal(sums.numpy(), expected(comm.rank))
    exchange.close()


def test_torch_tensors():
    everywhere(3, with_torch)


def drained(comm):
    exchange = experts.Exchange(comm, 2, 1, experts_of_rank=[[0, 1], [1, 0]])
    assert exchange.mask([1] if comm.rank == 0 else []) == [1]
    routing = exchange.route(np.array([[0], [1]], "i4"))
    assert routing.rows_of_ranks == [4, 0]
    assert exchange.mask([1], routes=1) == [1] == exchange.masked
    assert exchange.route(np.array([[0], [1]], "i4")).rows_of_ranks == [4, 0]
    assert exchange.masked == []
    assert exchange.route(np.array([[0], [1]], "i4")).rows_of_ranks == [2, 2]
    exchange.mask([1])
    with pytest.raises(unisono.UsageError, match="leaves nobody for experts 0, 1"):
        exchange.mask([0, 1])
    with pytest.raises(unisono.UsageError, match="token 1 chose expert 7"):
        exchange.route(np.array([[0], [7]], "i4"))
    exchange.close()


def test_mask_and_mistakes():
    everywhere(2, drained)
    with pytest.raises(ValueError, match="layout is 'tall'"):
        unisono.run_threads(1, lambda comm: experts.Exchange(comm, 2, 1, layout="tall"))


def fixed_buffers(comm):
    exchange = experts.Exchange(comm, EXPERTS, K, max_tokens=4, row_bytes=4 * HIDDEN)
    assert exchange.max_tokens == 4 and exchange.max_rows == 4 * K * comm.size
    rows = np.full((exchange.max_rows, HIDDEN), 9, "f4")
    for count in (1, 4):
        chosen = np.tile(np.arange(K, dtype="i4"), (count, 1))
        tokens = np.full((count, HIDDEN), count, "f4")
        routing = exchange.route(chosen)
        pending = exchange.dispatch_async(routing, tokens, out=rows)
        assert pending.wait() is rows and pending.test()
        assert pending.wait() is rows
        assert (rows[: routing.rows] == count).all() and (rows[routing.rows :] != 0).all()
        assert (exchange.combine(routing, rows) == K * count).all()
    with pytest.raises(unisono.UsageError, match="`out` has"):
        exchange.dispatch_async(routing, tokens, out=rows[:-1]).wait()
    exchange.close()


def test_fixed_buffers():
    everywhere(2, fixed_buffers)


def test_balance():
    loads = [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86]
    places, load = experts.balance(loads, ranks=8, seats=16, groups=4, hosts=2)
    assert places[0] == [5, 6] and len(places) == 8
    assert sum(load) == pytest.approx(sum(loads))


def gradients():
    """The gradients of a dispatcher, and those by finite differences, in f64."""
    import torch.distributed as dist
    from unisono.torch import MoEDispatcher

    rank = dist.get_rank()
    dispatcher = MoEDispatcher(EXPERTS, K)
    chosen = torch.from_numpy(chosen_of(rank, "i8"))
    torch.manual_seed(rank)
    tokens = torch.randn(len(chosen), HIDDEN, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(len(chosen), K, requires_grad=True)

    def loss():
        def compute(local, rows):
            return torch.tanh(rows * (dispatcher.exchange_here[local] + 1))

        return dispatcher(tokens, chosen, weights, compute).square().sum()

    dispatcher.exchange_here = dispatcher.exchange.route(chosen).experts_here
    loss().backward()
    worst = 0.0
    steps = max(len(chosen_of(r, "i8")) for r in range(dist.get_world_size()))
    for step in range(steps):  # each rank moves a number of its own at the same time
        for values, gradient, h in ((tokens, tokens.grad, 1e-5), (weights, weights.grad, 1e-2)):
            both = []
            for sign in (1, -1):
                with torch.no_grad():
                    if step < len(chosen):
                        values[step, step % values.shape[1]] += sign * h
                    both.append(float(loss()))
                    if step < len(chosen):
                        values[step, step % values.shape[1]] -= sign * h
            if step < len(chosen):
                want = (both[0] - both[1]) / (2 * h)
                got = float(gradient[step, step % values.shape[1]])
                worst = max(worst, abs(got - want) / max(1.0, abs(want)))
    return worst


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_gradients(ranks):
    assert max(jobs.run(ranks, gradients)) < 1e-3
