"""unisono.expert: arrays of numpy and torch, and gradients, compared with one process."""

import gc
import weakref

import jobs
import ml_dtypes
import numpy as np
import pytest
import test_core_processes
import torch
import unisono
from unisono import expert

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
    exchange = expert.ExpertExchange(comm, EXPERTS, K, alignment=4)
    routing = exchange.route(chosen_of(comm.rank, "i8" if form == "blocking" else "i4"))
    tokens = tokens_of(comm.rank).astype(dtype)
    if form == "async":
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
    if form == "async":
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
@pytest.mark.parametrize("form", ["blocking", "async"])
@pytest.mark.parametrize("dtype", ["float32", ml_dtypes.bfloat16])
def test_round_trip(ranks, dtype, form, coding):
    everywhere(ranks, round_trip, np.dtype(dtype), form, coding)


def with_torch(comm):
    exchange = expert.ExpertExchange(comm, EXPERTS, K, layout="flat")
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
    exchange = expert.ExpertExchange(comm, 2, 1, experts_of_rank=[[0, 1], [1, 0]])
    assert exchange.mask([1] if comm.rank == 0 else []) == [1]
    routing = exchange.route(np.array([[0], [1]], "i4"))
    assert routing.rows_of_ranks == [4, 0]
    assert exchange.mask([1], routes=1) == [1] == exchange.masked
    assert exchange.route(np.array([[0], [1]], "i4")).rows_of_ranks == [4, 0]
    assert exchange.masked == []
    assert exchange.route(np.array([[0], [1]], "i4")).rows_of_ranks == [2, 2]
    exchange.mask([1])
    with pytest.raises(unisono.UsageError, match="leaves no rank for experts 0, 1"):
        exchange.mask([0, 1])
    with pytest.raises(unisono.UsageError, match="token 1 chose expert 7"):
        exchange.route(np.array([[0], [7]], "i4"))
    exchange.close()


def test_mask_and_mistakes():
    everywhere(2, drained)
    with pytest.raises(ValueError, match="layout is 'tall'"):
        unisono.run_threads(1, lambda comm: expert.ExpertExchange(comm, 2, 1, layout="tall"))


def taken_care_of(comm):
    """Objects that a caller drops or misuses do no harm."""
    exchange = expert.ExpertExchange(comm, EXPERTS, K)
    chosen, tokens = chosen_of(comm.rank, "i4"), tokens_of(comm.rank)
    routing = exchange.route(chosen)
    pending = exchange.dispatch_async(exchange.route(chosen), tokens)
    gc.collect()
    rows = pending.wait()
    np.testing.assert_array_equal(rows, exchange.dispatch(routing, tokens))
    room = np.empty((len(tokens), HIDDEN), "f8")
    for call, said in [
        (lambda: exchange.dispatch(routing, tokens, out=rows.astype("i4")), "out has elements of i32, and tokens"),
        (lambda: exchange.combine(routing, rows, out=room), "out has elements of f64, and rows of f32"),
        (lambda: exchange.combine(routing, rows, residual=room), "residual has elements of f64, and rows"),
        (lambda: exchange.combine_backward(routing, tokens, rows.astype("f8")), "rows has elements of f64"),
    ]:
        with pytest.raises(TypeError, match=said):
            call()
    with pytest.raises(ValueError, match=r"chosen is \[2, 4\], not \[tokens, 2\]"):
        exchange.route(np.zeros((2, 4), "i4"))
    with pytest.raises(ValueError, match=r"dispatch\(\): tokens is \[., 5\], not \[., 2\]"):
        exchange.dispatch(routing, tokens, one_a_slot=True)
    with pytest.raises(ValueError, match=r"combine\(\): weights is \[2, .\], not \[., 2\]"):
        exchange.combine(routing, rows, weights=np.ascontiguousarray(weights_of(comm.rank).T))
    with pytest.raises(unisono.MismatchError, match="rank 0 gives rows of f32, and rank 1 gives rows of i32"):
        exchange.dispatch(routing, tokens.astype("f4" if comm.rank == 0 else "i4"))
    pending = exchange.combine_async(routing, rows, weights=weights_of(comm.rank) * np.float32("nan"))
    for _ in range(2):  # the error is the same every time
        with pytest.raises(unisono.UsageError, match="is nan"):
            pending.wait()


def test_mistakes_do_no_harm():
    everywhere(2, taken_care_of)


def fixed_buffers(comm):
    exchange = expert.ExpertExchange(comm, EXPERTS, K, max_tokens=4, row_bytes=4 * HIDDEN)
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
    places, load = expert.balance(loads, ranks=8, physical_experts=16, groups=4, hosts=2)
    assert places[0] == [5, 6] and len(places) == 8
    assert sum(load) == pytest.approx(sum(loads))


class OnlyDlpack:
    """An object of a tensor library that has neither shape nor dtype."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def only_dlpack(comm, dtype):
    exchange = expert.ExpertExchange(comm, EXPERTS, K)
    routing = exchange.route(OnlyDlpack(chosen_of(comm.rank, "i8")))
    tokens = torch.from_numpy(tokens_of(comm.rank)).to(dtype)
    rows = exchange.dispatch(routing, OnlyDlpack(tokens))
    name = str(dtype).removeprefix("torch.")
    assert isinstance(rows, np.ndarray) and rows.dtype.name == name and rows.shape[1:] == (HIDDEN,)
    outputs = torch.from_numpy(compute(routing, rows)).to(dtype)
    weights = OnlyDlpack(torch.from_numpy(weights_of(comm.rank)))
    sums = exchange.combine(routing, OnlyDlpack(outputs), weights)
    np.testing.assert_array_equal(sums.astype("f4"), torch.from_numpy(expected(comm.rank)).to(dtype).float())
    of_rows, of_weights = exchange.combine_backward(routing, OnlyDlpack(tokens), OnlyDlpack(outputs), weights)
    assert of_rows.shape == rows.shape and of_weights.dtype == np.float32
    exchange.close()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_memory_that_has_only_dlpack(dtype):
    everywhere(3, only_dlpack, dtype)


def several_payloads(comm, form):
    exchange = expert.ExpertExchange(comm, EXPERTS, K)
    routing = exchange.route(chosen_of(comm.rank, "i8"))
    tokens, weights = tokens_of(comm.rank), weights_of(comm.rank)
    numbers = torch.arange(len(tokens), dtype=torch.int64) + 1000 * comm.rank
    given = dict(coding=["i8", "none", "none"], one_a_slot=[False, True, False])
    out = [None, np.empty(routing.rows, "f4"), None]
    if form == "async":
        rows = exchange.dispatch_async(routing, (tokens, weights, numbers), out, **given).wait()
    else:
        rows = exchange.dispatch(routing, [tokens, weights, numbers], out, **given)
    assert len(rows) == 3 and rows[1] is out[1] and isinstance(rows[2], torch.Tensor)
    for row, weight, number, (rank, token, slot) in zip(*rows, routing.sources):
        np.testing.assert_allclose(row, tokens_of(rank)[token], atol=TOLERANCE["i8"])
        assert weight == weights_of(rank)[token, slot] and number == 1000 * rank + token
    (one,) = exchange.dispatch(routing, [tokens])  # a list of one gives a list of one
    np.testing.assert_array_equal(one, [tokens_of(rank)[token] for rank, token, _ in routing.sources])
    with pytest.raises(ValueError, match="coding has 1 entries for 2 payloads"):
        exchange.dispatch(routing, [tokens, tokens], coding=["i8"])
    with pytest.raises(ValueError, match="out must be a list"):
        exchange.dispatch(routing, [tokens, tokens], out=rows[0])
    with pytest.raises(unisono.UsageError, match="it has 0 payloads"):
        exchange.dispatch(routing, [])
    exchange.close()


@pytest.mark.parametrize("form", ["blocking", "async"])
def test_several_payloads(form):
    everywhere(3, several_payloads, form)


def gathered(comm, kind):
    exchange = expert.ExpertExchange(comm, EXPERTS, K, alignment=4)
    routing = exchange.route(chosen_of(comm.rank, "i8"))
    mine = tokens_of(comm.rank)
    region = comm.allocate(max(mine.nbytes, 64))
    tokens = np.frombuffer(region, "f4", mine.size).reshape(mine.shape)
    tokens[:] = mine
    if kind == "torch":
        tokens = torch.from_numpy(tokens)
    rows = exchange.gather_list(routing, tokens)
    assert len(rows) == routing.rows and rows.addresses.dtype == np.uint64
    views = list(rows)
    for view, address, (rank, token, _) in zip(views, rows.addresses, routing.sources):
        assert (view is None) == (rank < 0) == (address == 0)
        if view is not None:
            assert isinstance(view, torch.Tensor if kind == "torch" else np.ndarray)
            np.testing.assert_array_equal(view, tokens_of(rank)[token])
            assert kind == "torch" or not view.flags.writeable
    exchange.end_gather()
    comm.barrier()
    with pytest.raises(unisono.UsageError, match="of rank 0: `in` is not registered memory"):
        exchange.gather_list(routing, tokens_of(comm.rank) if comm.rank == 0 else tokens)
    # A view keeps the memory that it reads alive.
    name = weakref.ref(exchange)
    kept = [view for view in views if view is not None][:1]
    del exchange, rows, views, view
    gc.collect()
    assert (name() is not None) == bool(kept)
    comm.barrier()


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_gather_list(kind):
    everywhere(3, gathered, kind)


def options(comm, form):
    """residual that is `out`, capacity, and rank_major."""
    one = np.zeros((2, 1), "i4")  # all choose expert 0
    exchange = expert.ExpertExchange(comm, 2, 1, capacity=3)
    routing = exchange.route(one)
    assert routing.dropped == 2 * comm.size - 3
    tokens = np.full((2, 3), comm.rank + 1, "f4")
    rows = exchange.dispatch(routing, tokens)
    sums = np.full((2, 3), 10, "f4")
    if form == "async":
        assert exchange.combine_async(routing, rows, residual=sums, out=sums).wait() is sums
    else:
        assert exchange.combine(routing, rows, residual=sums, out=sums) is sums
    taken = [2, 1, 0][comm.rank]  # of this rank's tokens
    np.testing.assert_array_equal(sums[:, 0], [10 + (comm.rank + 1) * (token < taken) for token in range(2)])
    exchange.close()

    exchange = expert.ExpertExchange(comm, EXPERTS, K, layout="rank_major")
    routing = exchange.route(chosen_of(comm.rank, "i8"))
    rows = exchange.dispatch(routing, tokens_of(comm.rank))
    assert routing.experts.shape == (routing.rows, K)
    here = np.array([*routing.experts_here, -1]) + 1
    sums = exchange.combine(routing, rows * here[routing.experts].sum(1, keepdims=True).astype("f4"))
    np.testing.assert_array_equal(
        sums, tokens_of(comm.rank) * (chosen_of(comm.rank, "i8") + 1).sum(1, keepdims=True)
    )
    of_rows, none = exchange.combine_backward(routing, tokens_of(comm.rank))
    np.testing.assert_array_equal(of_rows, rows)
    assert none is None
    exchange.close()


@pytest.mark.parametrize("form", ["blocking", "async"])
def test_options(form):
    everywhere(3, options, form)


def test_moves():
    assert expert.find_expert_moves([[0, 1], [2]], [[0, 1], [2, 0]]) == [(0, 0, 1)]
    assert expert.find_expert_moves([[0]], [[0]]) == []
    with pytest.raises(unisono.UsageError, match="no rank held expert 3"):
        expert.find_expert_moves([[0]], [[3]])


def moved(comm):
    """Each rank passes its expert to the next rank, which stores it in the place of its outgoing expert."""
    rank, ranks = comm.rank, comm.size
    before = (rank - 1) % ranks
    weights = np.full(5, rank, "f4")
    moves = [(expert, expert, (expert + 1) % ranks) for expert in range(ranks)]
    expert.move_experts(comm, moves, 20, {rank: weights}, {before: weights})
    np.testing.assert_array_equal(weights, np.full(5, before, "f4"))
    placed = {} if rank == 1 else {before: weights}
    with pytest.raises(unisono.UsageError, match=r"move_experts\(\) of rank 1: it cannot describe where"):
        expert.move_experts(comm, moves, 20, {rank: weights}, placed)
    with pytest.raises(unisono.UsageError, match="has 20 bytes, not 16"):
        expert.move_experts(comm, moves, 16, {rank: weights}, {before: weights})
    np.testing.assert_array_equal(weights, np.full(5, before, "f4"))


def test_moved_weights():
    everywhere(3, moved)
    assert expert.bytes_of_moves([(0, 0, 1), (4, 2, 1)], 3, 8) == [[0, 8, 0], [0, 0, 0], [0, 8, 0]]


def wrong_layer():
    """MoEDispatcher refuses these arguments before it sends anything, and works afterwards."""
    from unisono.torch import MoEDispatcher

    layer = MoEDispatcher(experts=4, k=2)
    tokens, weights = torch.ones(3, HIDDEN), torch.ones(3, 2)
    chosen = torch.tensor([[0, 3], [1, 2], [2, 0]])

    def said(tokens=tokens, chosen=chosen, weights=weights, compute=lambda local, rows: rows):
        return jobs.caught(layer, tokens, chosen, weights, compute)

    mistakes = [
        said(chosen=chosen.T.contiguous()),
        said(weights=weights.T.contiguous()),
        said(tokens=torch.ones(1, 3, HIDDEN)),
        said(tokens=np.ones((3, HIDDEN), "f4")),
    ]
    # The rows have arrived by then, and no rank combines them.
    mistakes.append(said(compute=lambda local, rows: torch.cat([rows, rows])))
    return mistakes, layer(tokens, chosen, weights, lambda local, rows: rows).tolist()


def test_dispatcher_refuses_other_shapes():
    for mistakes, out in jobs.run(2, wrong_layer):
        for (kind, text), expected in zip(mistakes, [
            ("ValueError", "chosen is [2, 3], not [3, 2]: [tokens, k]"),
            ("ValueError", "weights is [2, 3], not [3, 2]: [tokens, k]"),
            ("ValueError", "tokens is [1, 3, 5] of torch.float32 on cpu, not [tokens, hidden]"),
            ("TypeError", "must be tensors of PyTorch"),
            ("ValueError", "the function of expert 0 of this rank gave ["),
        ], strict=True):  # fmt: skip
            assert kind == expected[0] and expected[1] in text, text
        assert out == [[2.0] * HIDDEN] * 3


def coded_layer():
    """Returns the outputs of a dispatcher that sends 8 bits, and whether gradients equal those of exact rows."""
    import torch.distributed as dist
    from unisono.torch import MoEDispatcher

    rank = dist.get_rank()
    chosen = torch.from_numpy(chosen_of(rank, "i8"))
    results = []
    for coding in ("none", "i8"):
        dispatcher = MoEDispatcher(EXPERTS, K, coding=coding)
        here = dispatcher.exchange.route(chosen).experts_here
        tokens = (torch.from_numpy(tokens_of(rank)) / 3).requires_grad_()
        weights = torch.from_numpy(weights_of(rank))
        out = dispatcher(tokens, chosen, weights, lambda local, rows: rows * (here[local] + 1))
        out.sum().backward()
        results.append((out.detach().numpy(), tokens.grad.numpy()))
    (exact, gradient), (near, same) = results
    np.testing.assert_array_equal(gradient, same)
    np.testing.assert_allclose(exact, near, atol=30 * 4 / 3 / 127)
    return int(len(chosen)), bool((exact != near).any())


def test_dispatcher_with_a_coding():
    said = jobs.run(2, coded_layer)
    assert all(differs for tokens, differs in said if tokens > 0)


AFTER_A_DEATH = """
from unisono import expert
exchange = expert.ExpertExchange(comm, 3, 1, experts_of_rank=[[0, 1], [1, 2], [2, 0]])
alone = expert.ExpertExchange(comm, 3, 1)
try:
    comm.barrier()  # behind what must not fail: the others may still be in it when rank 2 has left
    if rank == 2:
        os._exit(9)
    while True:
        exchange.route(np.array([[2]], "i4"))
except unisono.PeerLostError:
    pass
left = comm.shrink()
other = exchange.after_shrink(left)
routing = other.route(np.array([[2]], "i4"))
sums = other.combine(routing, other.dispatch(routing, np.full((1, 2), rank + 5, "f4")))
try:
    alone.after_shrink(left)
except unisono.UsageError as error:
    print(sums.tolist(), routing.rows_of_ranks, str(error).splitlines()[0])
"""


def test_after_shrink(tmp_path):
    said = test_core_processes.ends(test_core_processes.start(tmp_path, 3, AFTER_A_DEATH))
    for rank in range(2):
        assert said[rank][2] == "" and said[rank][1] == (
            f"[[{rank + 5}.0, {rank + 5}.0]] [0, 2] usage: after_shrink: all ranks of expert 2 are lost\n"
        )


def gradients():
    """Returns the largest difference of a dispatcher's gradients from finite differences, in f64."""
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
