"""unisono.parallel: each part compared with numpy on one process."""

import numpy as np
import pytest
import unisono
from test_core_processes import ends, start
from unisono import parallel
from unisono.parallel import Partial, Replicate, Shard

RANDOM = np.random.default_rng(7)


def numbers(*shape):
    return RANDOM.standard_normal(shape).astype("f4")


def part(whole, dim, comm):
    index = [slice(None)] * whole.ndim
    index[dim] = parallel.shard_range(whole.shape[dim], comm.size, comm.rank)
    return whole[tuple(index)]


def test_mesh():
    shape = parallel.MeshShape("pp=2,dp=2,tp=2;ep=2,etp=2", 8)
    assert shape.groups("dp") == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert shape.axes == {"pp": 2, "dp": 2, "tp": 2} and shape.folded == {"ep": 2, "etp": 2}
    with pytest.raises(unisono.ConfigError, match="have 8 ranks, but there are 6"):
        parallel.MeshShape("dp=2,tp=4", 6)

    def body(comm):
        mesh = parallel.Mesh(comm, "dp=2,tp=2")
        tp, everyone = mesh.axis("tp"), mesh.axis("dp,tp")
        assert mesh.axis("tp") is tp and mesh.axis("tp,dp") is everyone and mesh.size("dp") == 2
        first = tp.all_reduce(np.array([comm.rank]), op="min")[0]
        assert (first, tp.rank) == (comm.rank // 2 * 2, mesh.coordinate("tp"))
        mesh.close()
        with pytest.raises(ValueError, match="closed"):
            tp.barrier()
        return str(mesh.world.closed)

    assert unisono.run_threads(4, body) == ["True"] * 4


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i2", "c8", "bf16"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_redistribute(dtype, ranks):
    whole = np.arange(7 * 5 * 2).reshape(7, 5, 2)
    if dtype == "bf16":
        torch = pytest.importorskip("torch")
        whole = torch.from_numpy(whole).to(torch.bfloat16)
        empty, same = torch.empty_like, torch.equal
    else:
        whole = whole.astype(dtype)
        empty, same = np.empty_like, np.array_equal

    def body(comm):
        for a in range(3):
            for b in range(3):
                # Along the first dimension of a transposed tensor: its strides differ from those of
                # a row.
                out = empty(part(whole, b, comm))
                assert parallel.redistribute(comm, part(whole, a, comm), Shard(a), Shard(b), out) is out
                assert same(out, part(whole, b, comm))
            gathered = empty(whole.swapaxes(0, 2)).swapaxes(0, 2)
            parallel.redistribute(comm, part(whole, a, comm), Shard(a), Replicate(), gathered)
            assert same(gathered, whole)
        if dtype != "i2":
            out = empty(part(whole, 1, comm))
            parallel.redistribute(comm, whole, Partial(), Shard(1), out)
            assert same(out, part(whole, 1, comm) * comm.size)
        return True

    assert unisono.run_threads(ranks, body) == [True] * ranks


def test_what_cannot_be_redistributed():
    def body(comm):
        x = np.zeros((4, 4), "i2")
        with pytest.raises(TypeError, match="int16 cannot be reduced with sum"):
            parallel.redistribute(comm, x, Partial(), Replicate(), x)
        with pytest.raises(unisono.UsageError):
            parallel.redistribute(comm, x, Shard(2), Replicate(), x)
        with pytest.raises(ValueError, match="numbered from 0; the last of x is x.ndim - 1"):
            Shard(-1)
        with pytest.raises(ValueError, match="unknown op 'xor'"):
            Partial("xor")

    unisono.run_threads(1, body)
    assert parallel.conjugate(Shard(0), Replicate()) == (Partial(), Shard(0))


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_gradient_buckets(ranks):
    values = numbers(ranks, 3, 50)

    def body(comm):
        buckets = parallel.GradientBuckets(comm, first_bytes=64, bytes=128)
        indexes = [buckets.add(f"g{i}", 50) for i in range(3)]
        for step in range(3):
            buckets.begin()
            for i in reversed(indexes):
                buckets.add_to(i, values[comm.rank, i])
                buckets.add_to(i, np.full(50, step, "f4"))
                buckets.ready(i)
            buckets.finish()
            for i in indexes:
                got = buckets.copy_to(i, np.empty(50, "f4"))
                assert np.allclose(got, values[:, i].mean(0) + step, atol=1e-5)
        assert buckets.buckets == 3 and buckets.exposed_us >= 0
        buckets.begin()
        with pytest.raises(ValueError, match="49 elements; it must have 50"):
            buckets.add_to(0, np.zeros(49, "f4"))
        with pytest.raises(TypeError, match="float64; it must be float32"):
            buckets.add_to(0, np.zeros(50))
        for i in indexes:
            buckets.ready(i)
        buckets.finish()
        buckets.close()
        with pytest.raises(unisono.UsageError, match="closed"):
            buckets.begin()

    unisono.run_threads(ranks, body)


def test_a_gradient_that_never_becomes_ready(tmp_path):
    body = """
import unisono.parallel
buckets = unisono.parallel.GradientBuckets(comm, timeout_ms=500)
for name in ("head", "stem"):
    buckets.add(name, 8)
buckets.begin()
try:
    buckets.ready(0)
    while rank == 1 and comm.failure() is None:
        time.sleep(0.001)
    buckets.ready(1)
    buckets.finish()
except unisono.AbortedError as error:
    print(error)
"""
    for end in ends(start(tmp_path, 2, body)):
        assert end[0] == 0 and "500 ms after the gradient of head, stem had not become ready" in end[1], end


def adam(values, gradients, rate=0.1, beta1=0.9, beta2=0.95):
    m, v = np.zeros_like(values), np.zeros_like(values)
    for t, g in enumerate(gradients, 1):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        values = values - rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + 1e-8)
    return values


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_sharded_state(stage, ranks):
    begin, gradients = numbers(2, 31), numbers(3, ranks, 2, 31)

    def body(comm):
        units = [[parallel.Parameter("w", 20), parallel.Parameter("b", 11)], [parallel.Parameter("v", 31)]]
        state = parallel.ShardedState(comm, units, stage=stage, rate=0.1)
        for unit in range(2):
            state.set(unit, begin[unit])
        for step in range(3):
            for unit in range(2):
                state.prefetch(unit)
                state.parameters(unit, np.empty(31, "f4"))
                state.release(unit)
                mine = gradients[step, comm.rank, unit]
                state.add_to_gradients(unit, mine[:20])
                state.add_to_gradients(unit, mine[20:], first=20)
                state.gradients_ready(unit)
            state.wait_gradients()
            held = state.bytes_held
            assert sum(held.values()) >= 16 * 62 / (comm.size if stage == 3 else 4)
            norm = np.sqrt((gradients[step].mean(0) ** 2).sum())
            assert abs(state.step() - norm) < 1e-4
        for unit in range(2):
            wanted = adam(begin[unit], gradients[:, :, unit].mean(1))
            assert np.allclose(state.whole(unit, np.empty(31, "f4")), wanted, atol=1e-4)
        with pytest.raises(TypeError, match="float64; the state has type f32"):
            state.parameters(0, np.empty(31))
        with pytest.raises(ValueError, match="31 values from element 1 on"):
            state.add_to_gradients(0, begin[0], first=1)

    unisono.run_threads(ranks, body)


@pytest.mark.parametrize("sequence", [False, True])
def test_tensor_parallel_perceptron(sequence):
    x, w1, w2 = numbers(6, 8), numbers(10, 8), numbers(8, 10)
    y_gradient = numbers(6, 8)
    hidden = np.maximum(x @ w1.T, 0)
    x_gradient = ((y_gradient @ w2) * (hidden > 0)) @ w1

    def body(comm):
        mine = parallel.shard_range(10, comm.size, comm.rank)
        rows = parallel.shard_range(6, comm.size, comm.rank) if sequence else slice(0, 6)
        like, options = np.empty((6, 8), "f4"), {"sequence": sequence}
        inside = parallel.enter_region(comm, 6, 8, x[rows].copy(), like.copy(), **options)
        here = np.maximum(inside @ w1[mine].T, 0)
        y = parallel.leave_region(comm, 6, 8, here @ w2[:, mine].T, like[rows].copy(), **options)
        assert np.allclose(y, (hidden @ w2.T)[rows], atol=1e-4)
        inner = parallel.leave_region_backward(
            comm, 6, 8, y_gradient[rows].copy(), like.copy(), **options)  # fmt: skip
        mine_gradient = ((inner @ w2[:, mine]) * (here > 0)) @ w1[mine]
        outer = parallel.enter_region_backward(comm, 6, 8, mine_gradient, like[rows].copy(), **options)
        assert np.allclose(outer, x_gradient[rows], atol=1e-4)

    unisono.run_threads(3, body)


def test_vocabulary():
    table, tokens = numbers(11, 4), np.array([3, 10, 0, 3], "i4")
    logits, targets = numbers(4, 11), np.array([1, 9, 5, 0], "i4")
    odds = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)

    def body(comm):
        mine = parallel.shard_range(11, comm.size, comm.rank)
        out = parallel.vocabulary_embedding(comm, 11, 4, table[mine].copy(), tokens, np.zeros((4, 4), "f4"))
        assert np.array_equal(comm.all_reduce(out), table[tokens])
        gradient = np.zeros_like(table[mine])
        parallel.vocabulary_embedding_backward(comm, 11, 4, np.ones((4, 4), "f4"), tokens, gradient)
        assert np.array_equal(gradient[:, 0], np.bincount(tokens, minlength=11)[mine])

        parts = logits[:, mine].copy()
        losses = parallel.vocabulary_cross_entropy(comm, 11, parts, targets, 0.25, np.empty(4, "f4"))
        assert np.allclose(losses, -np.log(odds[range(4), targets]), atol=1e-5)
        assert np.allclose(parts, 0.25 * (odds - np.eye(11)[targets])[:, mine], atol=1e-6)

        best = parallel.top_candidates(comm, 11, logits[0, mine].copy(), 3)
        assert [token for _, token in best] == np.argsort(-logits[0])[:3].tolist()
        assert parallel.sample(best, 0, 0.5) == best[0][1]

    unisono.run_threads(3, body)
    assert parallel.head_share(8, 2, 4, 1) == (slice(2, 4, 1), slice(0, 1, 1))
    assert parallel.head_share(8, 4, 3, 2) == (slice(5, 8, 1), slice(2, 4, 1))
    assert parallel.head_map(8, 4, 3, 2) == [0, 1, 1]  # 5, 6 and 7 use 2, 3 and 3


def grouped(x, heads):
    return np.repeat(np.asarray(x), heads // x.shape[2], axis=2)


def weights_of(query, key, positions, key_positions):
    scores = np.einsum("bqhd,bkhd->bhqk", query, key)
    visible = np.asarray(positions)[:, None] >= np.asarray(key_positions)[None, :]
    return np.where(visible, scores, -np.inf)


def forward(query, key, value, positions, key_positions, out, log_sum):
    query = np.asarray(query)
    scores = weights_of(query, grouped(key, query.shape[2]), positions, key_positions)
    most = scores.max(-1, keepdims=True, initial=-1e30)
    odds = np.exp(scores - most)
    sums = odds.sum(-1, keepdims=True)
    nothing = sums == 0
    odds /= np.where(nothing, 1, sums)
    np.asarray(out)[...] = np.einsum("bhqk,bkhd->bqhd", odds, grouped(value, query.shape[2]))
    with np.errstate(divide="ignore"):
        total = np.where(nothing, -np.inf, most + np.log(sums))
    np.asarray(log_sum)[...] = total[..., 0].transpose(0, 2, 1)


def backward(query, key, value, positions, key_positions, gradient, log_sum, delta, *gradients):
    query, gradient = np.asarray(query), np.asarray(gradient)
    heads = query.shape[2]
    keys, values = grouped(key, heads), grouped(value, heads)
    scores = weights_of(query, keys, positions, key_positions)
    odds = np.exp(scores - np.asarray(log_sum).transpose(0, 2, 1)[..., None])
    slope = odds * (np.einsum("bqhd,bkhd->bhqk", gradient, values) - np.asarray(delta).transpose(0, 2, 1)[..., None])
    to_query, to_key, to_value = (np.asarray(g) for g in gradients)
    to_query += np.einsum("bhqk,bkhd->bqhd", slope, keys)
    shape = (*to_key.shape[:3], heads // to_key.shape[2], to_key.shape[3])
    to_key += np.einsum("bhqk,bqhd->bkhd", slope, query).reshape(shape).sum(3)
    to_value += np.einsum("bhqk,bqhd->bkhd", odds, gradient).reshape(shape).sum(3)


@pytest.mark.parametrize("layout", ["ring", "all_gather", "ulysses", "2d"])
@pytest.mark.parametrize("order", ["contiguous", "zigzag", "striped"])
def test_context_attention(layout, order):
    length = 13 if layout == "ring" else 24  # others need even parts
    shape = (2, 4, 2, 3)
    q, k, v, g = (numbers(2, length, heads, 3) for heads in (4, 2, 2, 4))
    places = np.arange(length)
    out, log_sum = np.empty_like(q), np.empty((2, length, 4), "f4")
    forward(q, k, v, places, places, out, log_sum)
    wanted = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    backward(q, k, v, places, places, g, log_sum, (out * g).sum(-1), *wanted)

    def body(comm):
        mesh = parallel.Mesh(comm, {"2d": "cp=2,u=2", "ulysses": "u=2"}.get(layout, f"cp={comm.size}"))
        axes = parallel.ContextAxes(
            None if layout == "ulysses" else mesh.axis("cp"),
            mesh.axis("u") if layout in ("2d", "ulysses") else None,
            method="all_gather" if layout == "all_gather" else "ring", order=order)  # fmt: skip
        mine = axes.positions(length)
        here = [x[:, mine].copy() for x in (q, k, v)]
        got, sums = np.empty_like(here[0]), np.empty((2, len(mine), 4), "f4")
        parallel.context_attention(axes, shape, True, length, forward, *here, got, sums)
        assert np.allclose(got, out[:, mine], atol=1e-4) and np.allclose(sums, log_sum[:, mine], atol=1e-4)
        gradients = [np.empty_like(x) for x in here]
        parallel.context_attention_backward(
            axes, shape, True, length, backward, *here, got, sums, g[:, mine].copy(), *gradients)  # fmt: skip
        for is_, should in zip(gradients, wanted):
            assert np.allclose(is_, should[:, mine], atol=1e-3)

    unisono.run_threads({"2d": 4, "ulysses": 2}.get(layout, 3), body)


def test_a_kernel_that_raises_ends_the_others(tmp_path):
    body = """
from unisono import parallel
x = np.zeros((1, 4, 1, 2), "f4")
def forward(*tensors):
    if rank == 1:
        raise KeyError("no kernel")
    tensors[-1][0, 0, 0] = 0
try:
    parallel.context_attention(
        parallel.ContextAxes(comm), (1, 1, 1, 2), True, 8, forward, x, x, x, x.copy(), np.zeros((1, 4, 1), "f4"))
    comm.barrier()  # rank 0 may have had all that it needs before rank 1 gave up
except (KeyError, unisono.AbortedError) as error:
    print(type(error).__name__, error)
"""
    first, second = ends(start(tmp_path, 2, body))
    assert first[0] == 0 and first[1].startswith("AbortedError") and "KeyError: 'no kernel'" in first[1], first
    assert second[:2] == (0, "KeyError 'no kernel'\n"), second


def test_decoding():
    shape, q, k, v = (2, 3, 3, 4), numbers(2, 1, 3, 4), numbers(2, 9, 3, 4), numbers(2, 9, 3, 4)
    place = np.array([8])
    out, log_sum = np.empty_like(q), np.empty((2, 1, 3), "f4")
    forward(q, k, v, place, np.arange(9), out, log_sum)

    def body(comm):
        mine = parallel.shard_range(9, comm.size, comm.rank)
        got, sums = np.empty_like(q), np.empty((2, 1, 3), "f4")
        forward(q, k[:, mine], v[:, mine], place, np.arange(9)[mine], got, sums)
        parallel.merge_decoded(comm, shape, got, sums)
        assert np.allclose(got, out, atol=1e-5) and np.allclose(sums, log_sum, atol=1e-5)

    unisono.run_threads(4, body)


def test_checkpoints(tmp_path):
    w, b = numbers(8, 6), np.arange(5)
    folder = tmp_path / "step-1"

    def save(comm):
        rows = parallel.shard_range(8, comm.size, comm.rank)
        last = comm.rank == comm.size - 1
        parallel.save_checkpoint(comm, folder, {
            "w": ((8, 6), w[rows], (rows.start, 0)),
            "b": ((5,), b) if last else ((5,), None, None, "int64")})  # fmt: skip

    unisono.run_threads(3, save)
    assert parallel.list_checkpoint(folder) == {"b": ("int64", (5,)), "w": ("float32", (8, 6))}
    columns, whole = np.empty((6, 8), "f4").T[:, 2:5], np.empty(5, "i8")
    parallel.load_checkpoint(folder, {"w": ((8, 6), columns, (0, 2)), "b": ((5,), whole)})
    assert np.array_equal(columns, w[:, 2:5]) and np.array_equal(whole, b)

    def load(comm):
        rows = None if comm.rank == 4 else np.zeros((4, 6), "f4")
        b_part = np.zeros(5, "i8")
        parallel.load_checkpoint(folder, {"w": ("dp=2,tp=2: tp=shard(0)", rows), "b": ("a=5", b_part)}, comm)
        assert comm.rank == 4 or np.array_equal(rows, w[4 * (comm.rank % 2) :][:4])
        assert np.array_equal(b_part, b)
        with pytest.raises(unisono.UsageError, match='"v" is not in'):
            parallel.load_checkpoint(folder, {"v": ("a=5", b_part)}, comm)

    unisono.run_threads(5, load)
    with pytest.raises(unisono.UsageError, match="is f32"):
        parallel.load_checkpoint(folder, {"w": ((8, 7), np.empty((8, 7), "f4"))})
    with pytest.raises(TypeError, match="has no part"):
        parallel.load_checkpoint(folder, {"w": ((8, 6), None)})


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    whole = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)

    def body(comm):
        mine = whole[comm.rank * 2 :][:2]
        out = torch.empty(4, 3, dtype=torch.bfloat16)
        parallel.redistribute(comm, mine, Shard(0), Shard(1), out)
        assert torch.equal(out, whole[:, comm.rank * 3 :][:, :3])
        buckets = parallel.GradientBuckets(comm)
        buckets.add("w", 6)
        buckets.begin()
        buckets.add_to(0, mine[0])
        buckets.ready(0)
        buckets.finish()
        assert torch.equal(buckets.copy_to(0, torch.empty(6)), (whole[0] + whole[2]).float() / 2)

    unisono.run_threads(2, body)


def test_every_name_is_documented_and_there():
    for name in parallel.__all__:
        assert getattr(parallel, name).__doc__, name
