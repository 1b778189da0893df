"""The stubs match the extension: names, and the arguments of each function."""

import ast
import builtins
import re
from pathlib import Path

import pytest
import unisono
import unisono._core as core

FOLDER = Path(unisono.__file__).parent
STUB = ast.parse((FOLDER / "_core.pyi").read_text())
PARALLEL = ast.parse((FOLDER / "parallel.pyi").read_text())


def functions(node):
    return {f.name: f for f in node.body if isinstance(f, ast.FunctionDef)}


CLASSES = {c.name: c for c in STUB.body if isinstance(c, ast.ClassDef)}


def arguments_of_stub(function):
    names = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    return [a.arg for a in names if a.arg != "self"]


def arguments_of_extension(function):
    head = function.__doc__.splitlines()[0]
    return [name for name in re.findall(r"[(,] ?\*?,? ?(\w+): ", head) if name != "self"]


def public(thing):
    return {name for name in vars(thing) if not name.startswith("_")}


def test_star_import_keeps_the_builtins():
    names = {}
    exec("from unisono import *", names)
    shadowed = {name for name in vars(builtins) if names.get(name, vars(builtins)[name]) is not vars(builtins)[name]}
    assert shadowed == set()
    assert {"connect", "Error", "PeerLostError"} <= set(names)
    for name in ("ConnectionError", "TimeoutError"):
        assert getattr(unisono, name).__module__.startswith("unisono")
        assert name in dir(unisono)


def test_parallel_names():
    classes = {c.name for c in PARALLEL.body if isinstance(c, ast.ClassDef)}
    assert classes | set(functions(PARALLEL)) == set(unisono.parallel.__all__)


# Checkpoint functions are written in Python, everything else is in the extension.
PARALLEL_FUNCTIONS = sorted(set(functions(PARALLEL)) - {"load_checkpoint", "save_checkpoint"})


@pytest.mark.parametrize("name", PARALLEL_FUNCTIONS)
def test_parallel_function(name):
    real = getattr(core._parallel, name)
    assert arguments_of_stub(functions(PARALLEL)[name]) == arguments_of_extension(real)


@pytest.mark.parametrize("node", [c for c in PARALLEL.body if isinstance(c, ast.ClassDef)], ids=lambda c: c.name)
def test_parallel_class(node):
    real = getattr(core._parallel, node.name)
    assert {n for n in functions(node) if not n.startswith("_")} == public(real)
    for method, function in functions(node).items():
        if method in ("__eq__", "__hash__") or isinstance(vars(real).get(method), property):
            continue
        assert arguments_of_stub(function) == arguments_of_extension(getattr(real, method)), method


def test_names():
    stubbed = set(CLASSES) | set(functions(STUB)) | {"ANY_SOURCE"}
    assert {name for name in stubbed if not name.startswith("_")} == public(core)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_class(name):
    node, real = CLASSES[name], getattr(core, name)
    fields = {a.target.id for a in node.body if isinstance(a, ast.AnnAssign)}
    stubbed = {n for n in functions(node) if not n.startswith("_")} | fields
    assert stubbed == public(real)
    for method, function in functions(node).items():
        if method.startswith("_") or isinstance(vars(real).get(method), property):
            continue
        assert arguments_of_stub(function) == arguments_of_extension(getattr(real, method)), method


@pytest.mark.parametrize("name", sorted(functions(STUB)))
def test_function(name):
    if name not in {"simulate", *CONNECTING}:  # simulate's options are those of unisono.model.simulate
        assert arguments_of_stub(functions(STUB)[name]) == arguments_of_extension(getattr(core, name))


CONNECTING = {"connect": (), "run_threads": (1, lambda comm: comm.size)}


@pytest.mark.parametrize("call", CONNECTING)
def test_options_of_connecting(call):
    """Each option of the stubs is accepted with a value that one rank can use; no other option is accepted."""
    values = {
        "rank": 0, "size": 1, "file": None, "connect_timeout_ms": 1000, "timeout_ms": 1000, "profile": Path("none"),
        "job": "options", "token": "a token of the test", "algorithm": "all_reduce=ring", "wait_spin": 1, "wait_yield_us": 1,
        "address": "127.0.0.1:29999", "interface": "lo", "ports": "20000-20999", "transport": "auto",
        "host": "here", "checksum": False, "threads": 2, "max_error": 1e-2, "bootstrap": lambda mine: [mine],
    }
    stub, positional, call = functions(STUB)[call], CONNECTING[call], getattr(core, call)
    for option in stub.args.kwonlyargs:
        both = ("rank", "size") if option.arg in ("rank", "size") else (option.arg,)
        made = call(*positional, **{name: values[name] for name in both})
        assert made == [1] or made.size == 1, option.arg
    with pytest.raises(TypeError, match="has no option 'colour'"):
        call(*positional, colour="red")
    for name, value in {"job": 7, "checksum": 1, "transport": "udp"}.items():
        with pytest.raises(TypeError, match=f"does not accept {value!r} as {name}"):
            call(*positional, **{name: value})


def test_everything_has_a_docstring():
    for name in public(core) - {"ANY_SOURCE"}:
        assert getattr(core, name).__doc__, name
    for method in public(core.Communicator):
        text = getattr(core.Communicator, method).__doc__ or ""
        assert method == "closed" or len(text) > 10, method
