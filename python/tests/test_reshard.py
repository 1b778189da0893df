"""unisono.reshard compared with numpy, and unisono.torch.reshard with full_tensor() + distribute_tensor()."""

import json
from pathlib import Path

import numpy as np
import pytest
import unisono
from unisono.reshard import NameMap, Reshard

NAMES = {
    "format": "unisono.names/1",
    "rules": [{"from": ["q", "k"], "to": "qk", "join": 0}, {"from": ["e{e}"], "to": "stack", "stack": "e"}],
    "others": "keep",
}


@pytest.mark.parametrize("dtype", ["f4", "i8", "i2", "c8"])
def test_rows_to_columns(dtype):
    dtype = np.dtype(dtype)
    whole = np.arange(7 * 6).reshape(7, 6).astype(dtype)

    def body(comm):
        moves = Reshard(comm, {
            "w": (dtype, (7, 6), "a=3: a=shard(0)", "a=2 on 1-2: a=shard(1)"),
            "x": (dtype, (), "a=1", "a=3")})  # fmt: skip
        assert moves.in_shape("w") == (7 * (comm.rank + 1) // 3 - 7 * comm.rank // 3, 6)
        assert moves.out_shape("w") == (None if comm.rank == 0 else (7, 3))
        rows = whole[7 * comm.rank // 3 : 7 * (comm.rank + 1) // 3]
        out = {"x": np.zeros((), dtype)}
        if comm.rank > 0:
            out["w"] = np.zeros((3, 7), dtype).T  # with the strides of a transposed array
        inputs = {"w": rows} if comm.rank > 0 else {"w": rows, "x": np.array(9, dtype)}
        for _ in range(2):
            assert moves.run(inputs, out) is out
        if comm.rank > 0:
            np.testing.assert_array_equal(out["w"], whole[:, 3 * (comm.rank - 1) :][:, :3])
        assert out["x"] == 9 and moves.complete("w") and moves.complete("x")
        assert moves.bytes_sent > 0 and moves.bytes_between_hosts == 0
        moves.close()
        return "right"

    assert unisono.run_threads(3, body) == ["right"] * 3


def test_partial():
    def body(comm):
        moves = Reshard(comm, {"w": ("float32", (5,), "a=2: a=partial", "a=2")})
        out = np.zeros(5, "f4")
        moves.run({"w": np.full(5, comm.rank + 1, "f4")}, {"w": out})
        moves.close()
        return out.tolist()

    assert unisono.run_threads(2, body) == [[3] * 5] * 2


def test_names():
    parts = {
        "q": np.arange(8 * 2).reshape(8, 2), "k": -np.arange(4 * 2).reshape(4, 2), "norm": np.arange(3),
        "e0": np.full((2,), 10), "e1": np.full((2,), 11),
    }  # fmt: skip
    parts = {name: part.astype("i4") for name, part in parts.items()}
    names = NameMap(json.dumps(NAMES))
    made = names.apply({name: ("int32", part.shape) for name, part in parts.items()})
    assert made["qk"] == ((12, 2), [("q", None, 0, 0, 0, 8), ("k", None, 0, 8, 0, 4)])
    assert made["stack"] == ((2, 2), [("e0", 0, 0, 0, 0, 2), ("e1", 1, 0, 0, 0, 2)])

    def body(comm):
        moves = Reshard(
            comm,
            {name: ("int32", part.shape, "a=1 on 0") for name, part in parts.items()},
            names=names,
            targets={"qk": "tp=2 on 1-2: tp=shard(0,sections=8+4)", "norm": "a=1 on 2",
                     "stack": "ep=2 on 1-2: ep=shard(0)"},
        )  # fmt: skip
        qk, norm, stack = np.zeros((6, 2), "i4"), np.zeros(3, "i4"), np.zeros((1, 2), "i4")
        out = {} if comm.rank == 0 else {"qk": qk, "stack": stack}
        if comm.rank == 2:
            out["norm"] = norm
        moves.run(parts if comm.rank == 0 else {}, out)
        moves.close()
        if comm.rank > 0:
            at = comm.rank - 1
            np.testing.assert_array_equal(qk[:4], parts["q"][4 * at :][:4])
            np.testing.assert_array_equal(qk[4:], parts["k"][2 * at :][:2])
            assert stack.tolist() == [[10 + at] * 2]
        if comm.rank == 2:
            np.testing.assert_array_equal(norm, parts["norm"])
        return "right"

    assert unisono.run_threads(3, body) == ["right"] * 3


def megatron_qkv(q, k, v, groups):
    """Reshapes as Megatron-Core does: [groups, (heads per group + 2) * head, hidden]."""
    hidden = q.shape[1]
    parts = [part.reshape(groups, -1, hidden) for part in (q, k, v)]
    return np.concatenate(parts, axis=1).reshape(-1, hidden)


@pytest.mark.parametrize("engine", [1, 2, 4])
def test_megatron_to_vllm(engine):
    """Two trainer ranks with the names and the order of Megatron-Core; `engine` ranks with the names of vLLM."""
    heads, groups, head, hidden, inner = 32, 8, 2, 4, 8
    random = np.random.default_rng(0)
    q, k, v, gate, up = (
        random.standard_normal((rows, hidden)).astype("f4")
        for rows in (heads * head, groups * head, groups * head, inner, inner)
    )
    names = NameMap.load(Path(__file__).parents[2] / "examples" / "reshard" / "megatron_llama3_8b.json")
    prefix = "stage1.chunk0.decoder.layers.3."
    qkv_name, fc1_name = f"{prefix}self_attention.linear_qkv.weight", f"{prefix}mlp.linear_fc1.weight"
    to = f"tp={engine} on 2-{1 + engine}: tp=shard(0,sections="

    def body(comm):
        # Each rank has its groups, and in linear_fc1 its rows of gate before its rows of up.
        moves = Reshard(
            comm,
            {
                qkv_name: ("float32", ((heads + 2 * groups) * head, hidden), "tp=2 on 0-1: tp=shard(0)"),
                fc1_name: ("float32", (2 * inner, hidden), f"tp=2 on 0-1: tp=shard(0,sections=2*{inner})"),
            },
            names=names,
            targets={
                "model.layers.11.self_attn.qkv_proj.weight": f"{to}{heads * head}+2*{groups * head})",
                "model.layers.11.mlp.gate_up_proj.weight": f"{to}2*{inner})",
            },
        )
        rank = comm.rank
        if rank < 2:
            qkv = np.split(megatron_qkv(q, k, v, groups), 2)[rank]
            fc1 = np.concatenate([np.split(gate, 2)[rank], np.split(up, 2)[rank]])
            moves.run({qkv_name: qkv, fc1_name: fc1}, {})
            moves.close()
            return "right"
        at = rank - 2
        out = {
            "model.layers.11.self_attn.qkv_proj.weight": np.concatenate([np.split(x, engine)[at] for x in (q, k, v)]),
            "model.layers.11.mlp.gate_up_proj.weight": np.concatenate([np.split(x, engine)[at] for x in (gate, up)]),
        }
        got = moves.run({}, {name: np.zeros_like(array) for name, array in out.items()})
        moves.close()
        for name, array in out.items():
            np.testing.assert_array_equal(got[name], array)
        return "right"

    assert unisono.run_threads(2 + engine, body) == ["right"] * (2 + engine)


def test_checkpoint_to_megatron():
    groups, hidden = 4, 3
    q, k, v = (np.arange(rows * hidden, dtype="i4").reshape(rows, hidden) + 1000 * i
               for i, rows in enumerate((16, 8, 8)))  # fmt: skip
    names = NameMap(json.dumps({"format": "unisono.names/1", "rules": [
        {"from": ["q", "k", "v"], "to": "linear_qkv", "join": 0, "groups": groups}]}))  # fmt: skip

    def body(comm):
        whole = {"q": q, "k": k, "v": v}
        moves = Reshard(
            comm,
            {name: ("int32", part.shape, "a=2: a=shard(0)") for name, part in whole.items()},
            names=names,
            targets={"linear_qkv": "tp=2: tp=shard(0)"},
        )
        part = np.zeros((16, hidden), "i4")
        moves.run({name: np.split(array, 2)[comm.rank] for name, array in whole.items()}, {"linear_qkv": part})
        moves.close()
        np.testing.assert_array_equal(part, np.split(megatron_qkv(q, k, v, groups), 2)[comm.rank])
        return "right"

    assert unisono.run_threads(2, body) == ["right"] * 2


def test_mistakes():
    names = NameMap(json.dumps(NAMES))
    with pytest.raises(unisono.UsageError, match='(?s)"q" has no partner "k".*the stack "stack" has no 0'):
        names.apply({"q": ("float32", (2,)), "e1": ("float32", (2,))})
    with pytest.raises(unisono.ConfigError, match="several names need"):
        NameMap('{"format": "unisono.names/1", "rules": [{"from": ["a", "b"], "to": "c"}]}')

    def body(comm):
        row = ("float32", (4,), "a=1")
        with pytest.raises(unisono.UsageError, match='it needs dtype, shape, the layout before and the layout'):
            Reshard(comm, {"w": row})
        with pytest.raises(unisono.UsageError, match='(?s)no source makes "v".*"w" has no layout in targets'):
            Reshard(comm, {"w": row}, names=names, targets={"v": "a=1"})
        with pytest.raises(unisono.UsageError, match="names and targets go together"):
            Reshard(comm, {"w": row}, names=names)
        moves = Reshard(comm, {"w": (*row, "a=1")})
        with pytest.raises(unisono.UsageError, match="unknown names: 'v'"):
            moves.run({"v": np.zeros(4, "f4")}, {})
        with pytest.raises(unisono.UsageError, match="`in` of \"w\" on rank 0 is null"):
            moves.run({}, {"w": np.zeros(4, "f4")})
        with pytest.raises(unisono.UsageError, match="`out` of \"w\" on rank 0 is f64 .4., and its part is f32 .4."):
            moves.run({"w": np.zeros(4, "f4")}, {"w": np.zeros(4, "f8")})
        for row in (("float32", 4, "a=1", "a=1"), ("float32", (-4,), "a=1", "a=1")):
            with pytest.raises(unisono.UsageError, match='"w" has the shape .*; it needs a list of lengths'):
                Reshard(comm, {"w": row})
        with pytest.raises(TypeError, match="\"w\": unknown dtype 'float33'"):
            Reshard(comm, {"w": ("float33", (4,), "a=1", "a=1")})
        with pytest.raises(unisono.ConfigError, match='tensor "w": layout "a=0": .*the size "0" of axis "a"'):
            Reshard(comm, {"w": ("float32", (4,), "a=1", "a=0")})
        memory = np.zeros(7, "f4")
        with pytest.raises(unisono.UsageError, match='`in` of "w" and `out` of "w" share memory on rank 0'):
            moves.run({"w": memory[:4]}, {"w": memory[3:]})
        memory = np.arange(8, dtype="f4")
        moves.run({"w": memory[::2]}, {"w": memory[1::2]})
        assert memory.tolist() == [0, 0, 2, 2, 4, 4, 6, 6]
        moves.close()
        return "right"

    assert unisono.run_threads(1, body) == ["right"]


def test_maps_of_known_models():
    folder = Path(__file__).parents[2] / "examples" / "reshard"
    for path in folder.glob("*.json"):
        NameMap.load(path)
    made = NameMap.load(folder / "llama.json").apply(
        {f"model.layers.0.self_attn.{x}_proj.weight": ("bf16", (rows, 8)) for x, rows in (("v", 2), ("q", 8), ("k", 2))}
    )
    assert list(made) == ["model.layers.0.self_attn.qkv_proj.weight"]
    assert [part[0][25] for part in next(iter(made.values()))[1]] == ["q", "k", "v"]


def move_dtensors():
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.placement_types import _StridedShard

    rank = dist.get_rank()
    square = DeviceMesh("cpu", torch.arange(4).view(2, 2))
    line = DeviceMesh("cpu", [0, 1, 3])
    pair = DeviceMesh("cpu", [2, 3])
    cube = DeviceMesh("cpu", torch.arange(4).view(2, 1, 2))
    torch.manual_seed(0)
    whole = torch.randn(9, 8)
    before = {
        "rows": (square, [Shard(0), Replicate()]),
        "grid": (square, [Shard(1), Shard(0)]),
        "twice": (square, [Shard(1), Shard(1)]),
        "strided": (square, [_StridedShard(1, split_factor=2), Shard(1)]),
        "line": (line, [Shard(-2)]),
        "uneven": (square, [Shard(0), Shard(0)]),
        "cube": (cube, [Shard(0), Replicate(), Shard(0)]),
    }
    after = [
        (line, [Shard(1)]),
        (line, [Replicate()]),
        (pair, [Shard(0)]),
        (square, [Shard(0), Shard(1)]),
        (square, [Shard(0), Shard(0)]),
        (cube, [Shard(1), Shard(0), Shard(1)]),
    ]
    sources = {
        name: distribute_tensor(whole, mesh, [Shard(1), Replicate()] if name == "strided" else placements)
        for name, (mesh, placements) in before.items()
    }
    # FSDP over tensor parallelism: rank 2 * i + j has part i of part j.
    local = whole[:, 4 * (rank % 2) + 2 * (rank // 2) :][:, :2].contiguous()
    mesh, placements = before["strided"]
    sources["strided"] = DTensor.from_local(local, mesh, placements, run_check=False, shape=whole.shape, stride=(8, 1))
    import unisono.torch

    for mesh, placements in after:
        plan = unisono.torch.Reshard(sources, (mesh, placements))
        moved = plan.run(sources)
        want = distribute_tensor(sources["rows"].full_tensor(), mesh, placements)
        for name, tensor in moved.items():
            assert tensor.placements == tuple(placements) and tensor.shape == whole.shape
            if mesh.get_coordinate() is not None:
                assert torch.equal(tensor.to_local(), want.to_local()), name
        assert plan.run(sources, out=moved) is moved and plan.complete("rows")
        plan.close()
    # Summands, and a DTensor instead of a dict.
    summand = DTensor.from_local(whole * (rank % 2 + 1), square, [Replicate(), Partial()], run_check=False)
    moved = unisono.torch.reshard(summand, (pair, [Shard(1)]))
    if rank >= 2:
        assert torch.equal(moved.to_local(), whole[:, 4 * (rank - 2) :][:, :4] * 3)
    # Summands with cut parts, on three dimensions of a mesh.
    local = whole[:, 4 * (rank % 2) :][:, :4].contiguous() * (rank // 2 + 1)
    summand = DTensor.from_local(
        local, cube, [Partial(), Replicate(), Shard(1)], run_check=False, shape=whole.shape, stride=(8, 1)
    )
    moved = unisono.torch.reshard(summand, (line, [Shard(0)]))
    want = distribute_tensor(summand.full_tensor(), line, [Shard(0)])
    if rank != 2:
        assert torch.equal(moved.to_local(), want.to_local())
    for wrong, text in (
        ((line, [Partial()]), "target's axis"),
        ((square, [_StridedShard(0, split_factor=3), Shard(0)]), "an order of cuts that is not known"),
        ((square, [Shard(0), _StridedShard(0, split_factor=1)]), "an order of cuts that is not known"),
        ((square, [Shard(2), Replicate()]), "with 2 dimensions"),
        ((square, [Replicate()]), "1 placements for a mesh of 2"),
    ):
        try:
            unisono.torch.reshard(sources["rows"], wrong)
        except ValueError as error:
            assert text in str(error), error
        else:
            raise AssertionError(wrong)
    try:
        unisono.torch.reshard({"a": whole, "b": whole}, (line, [Replicate()]))
    except TypeError as error:
        assert "'a', 'b'" in str(error)
    return "right"


def test_dtensors():
    jobs = pytest.importorskip("jobs")
    pytest.importorskip("torch")
    assert jobs.run(4, move_dtensors) == ["right"] * 4


def move_between_groups():
    """Ranks 0 and 1 train, ranks 1 and 2 answer, rank 3 does neither. No rank knows both meshes but rank 1."""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor, Replicate, Shard

    import unisono.torch

    rank = dist.get_rank()
    trainer, engine = (dist.new_group(ranks, backend="gloo") for ranks in ([0, 1], [1, 2]))
    torch.manual_seed(0)
    whole = {"a": torch.randn(6, 4), "b": torch.randn(5), "c": torch.randn(3, 2)}
    sources, to, wanted = {}, None, {}
    if rank < 2:
        mesh = DeviceMesh.from_group(trainer, "cpu")
        sources["a"] = DTensor.from_local(whole["a"].chunk(2)[rank].clone(), mesh, [Shard(0)], run_check=False)
        sources["b"] = DTensor.from_local(whole["b"].clone(), mesh, [Replicate()], run_check=False)
    if rank == 1:  # as a stage that only this rank has
        stage = DeviceMesh("cpu", [1], _init_backend=False)
        sources["c"] = DTensor.from_local(whole["c"].clone(), stage, [Replicate()], run_check=False)
    if rank in (1, 2):
        engine_mesh = DeviceMesh.from_group(engine, "cpu")
        wanted = {"a": whole["a"].chunk(2, 1)[rank - 1], "b": whole["b"], "c": whole["c"]}

        def to(name, tensor):
            assert tuple(tensor.shape) == tuple(whole[name].shape)
            return engine_mesh, [Shard(1) if name == "a" else Replicate()]

    plan = unisono.torch.Reshard(sources or None, to)
    moved = None
    for factor in (1, 2):
        for source in sources.values():
            source.to_local().mul_(factor)
        work = plan.run(sources, out=moved, async_op=True)
        assert isinstance(work, dist.Work) and work.wait() and work.is_success() and work.exception() is None
        moved = work.result()
        assert work.get_future().value() is moved and moved.keys() == wanted.keys()
        for name, tensor in moved.items():
            assert tensor.device_mesh is engine_mesh and torch.equal(tensor.to_local(), factor * wanted[name]), name
    # Runs execute in order, also those that nobody waits for; other calls go on meanwhile.
    for source in sources.values():
        source.to_local().mul_(2)
    plan.run(sources, out=moved, async_op=True)
    dist.barrier()
    plan.run(sources, out=moved)
    plan.close()
    for name, tensor in moved.items():
        assert torch.equal(tensor.to_local(), 4 * wanted[name]), name
    # Once, in the background, with a communicator of the caller, which stays usable.
    comm = unisono.torch.experts._connect(None)
    work = unisono.torch.reshard(sources.get("b"), to and (engine_mesh, [Shard(0)]), comm=comm, async_op=True)
    values = np.ones(1, "f4")
    comm.all_reduce(values, values)
    assert values.tolist() == [4]
    got = work.result()
    assert (got is None) == (rank in (0, 3))
    if got is not None:
        assert torch.equal(got.to_local(), 4 * whole["b"].chunk(2)[rank - 1])
    # Mistakes of one rank are raised on all ranks.
    for bad, target, text in (
        ({"a": whole["a"]} if rank == 3 else sources, to, "these are no DTensors: 'a'"),
        (sources, None, "'a', 'b', 'c' has no mesh and placements in `to`"),
        (sources, {"a": (engine_mesh, [Shard(0)])} if to else None, "'b', 'c' has no mesh and placements"),
        (sources, to and (engine_mesh, [Shard(0) if rank == 1 else Replicate()]), "`to` has 'a' as .* on rank 1, and as .* on rank 2"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            unisono.torch.reshard(bad, target)
    # An error in the thread is raised by wait().
    shared = dict(sources)
    if rank == 1:
        shared = {"b": DTensor.from_local(torch.zeros(5), sources["b"].device_mesh, [Replicate()], run_check=False)}
    elif rank == 0:
        shared = {"b": sources["b"]}
    plan = unisono.torch.Reshard(shared or None, to and (engine_mesh, [Replicate()]), comm=comm)
    work = plan.run(shared, out=shared if rank == 1 else None, async_op=True)
    with pytest.raises(unisono.UsageError if rank == 1 else unisono.MismatchError):
        work.wait()
    assert work.is_completed() and not work.is_success() and isinstance(work.exception(), unisono.Error)
    plan.close()
    comm.close()
    return "right"


def test_dtensors_of_two_groups():
    jobs = pytest.importorskip("jobs")
    pytest.importorskip("torch")
    assert jobs.run(4, move_between_groups) == ["right"] * 4


def move_uneven_strided():
    """FSDP over tensor parallelism, with rows that neither axis divides; with 7 rows one rank has none."""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor, Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    from torch.distributed.tensor.placement_types import _StridedShard

    import unisono.torch

    mesh = init_device_mesh("cpu", (3, 2), mesh_dim_names=("dp", "tp"))
    line = init_device_mesh("cpu", (6,))
    dp, tp = mesh.get_coordinate()
    strided = [_StridedShard(0, split_factor=2), Shard(0)]

    def part_of(part, ranks, rank):
        size = -(-len(part) // ranks)
        return part[rank * size : (rank + 1) * size]

    def same(got, want):
        assert got.shape == want.shape and torch.equal(got, want), (got, want)

    for rows in (1, 2, 3, 5, 7, 9, 10, 11, 12, 13):
        torch.manual_seed(rows)
        whole = torch.randn(rows, 4)
        mine = part_of(part_of(whole, 2, tp), 3, dp)
        source = DTensor.from_local(
            mine.clone(), mesh, strided, run_check=False, shape=whole.shape, stride=whole.stride()
        )
        same(unisono.torch.reshard(source, (line, [Replicate()])).to_local(), whole)
        cut = unisono.torch.reshard(source, (line, [Shard(0)]))
        same(cut.to_local(), part_of(whole, 6, dist.get_rank()))
        same(unisono.torch.reshard(cut, (mesh, strided)).to_local(), mine)

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 7)
    wanted = {name: value.detach().clone() for name, value in model.named_parameters()}
    parallelize_module(model, mesh["tp"], ColwiseParallel())
    fully_shard(model, mesh=mesh["dp"])
    assert all(parameter.placements == tuple(strided) for parameter in model.parameters())
    for name, tensor in unisono.torch.reshard(model.state_dict(), (line, [Replicate()])).items():
        same(tensor.to_local(), wanted[name])
    return "right"


def test_uneven_strided_dtensors():
    jobs = pytest.importorskip("jobs")
    pytest.importorskip("torch")
    assert jobs.run(6, move_uneven_strided) == ["right"] * 6
