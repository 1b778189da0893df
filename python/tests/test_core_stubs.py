"""The stubs say what the extension has: names, and the arguments of each."""

import ast
import re
from pathlib import Path

import pytest
import unisono
import unisono._core as core

STUB = ast.parse((Path(unisono.__file__).parent / "_core.pyi").read_text())


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
    if name != "simulate":  # its options are those of unisono.model.simulate
        assert arguments_of_stub(functions(STUB)[name]) == arguments_of_extension(getattr(core, name))


def test_everything_has_a_docstring():
    for name in public(core) - {"ANY_SOURCE"}:
        assert getattr(core, name).__doc__, name
    for method in public(core.Communicator):
        text = getattr(core.Communicator, method).__doc__ or ""
        assert method == "closed" or len(text) > 10, method
