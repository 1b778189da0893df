#!/usr/bin/env python3
"""Compares the shared libraries with src/layers.txt: libraries_test.py LAYERS LIBRARY...

  needs    a library is linked to those of its line, and to no other library of unisono
  rooms    it has nothing of layers that its own do not include
  models   no model name is in libunisono
  private  libunisono shows to the others what they use, and nothing else
"""
import re
import subprocess
import sys
from pathlib import Path


def read_layers(text):
    """{library: (needs, {layer: below})}"""
    libraries = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if not colon or line.startswith("#"):
            continue
        if name.startswith("lib"):
            layers = {}
            libraries[name] = (rest.split(), layers)
        else:
            layers[name] = rest.split()
    return libraries


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, errors="replace").stdout


def included(libraries, name):
    """Returns the layers of a library, and all layers below them."""
    below = {layer: rest for _, layers in libraries.values() for layer, rest in layers.items()}
    found, todo = set(), list(libraries[name][1])
    while todo:
        layer = todo.pop()
        if layer not in found:
            found.add(layer)
            todo += below[layer]
    return found


def scopes(path):
    """Yields the scopes of its functions and data: "unisono::comm::Core::" of "unisono::comm::Core::run(int)"."""
    for line in output("nm", "--defined-only", "--demangle", path).splitlines():
        yield re.split(r"[(<]", line.split(" ", 2)[2])[0]


def private_names(dynamic, undefined):
    kind = "U" if undefined else "[TVWDR]"
    return set(re.findall(rf" {kind} (\S+?)@+UNISONO_PRIVATE", dynamic))


def check(libraries, files):
    used, shown = set(), set()
    for name, (needs, _) in libraries.items():
        path = files[name]
        linked = set(re.findall(r"NEEDED.*\[(libunisono\w*)\.so", output("readelf", "-d", path)))
        if linked != set(needs):
            yield f"{name}: needs: it is linked to {sorted(linked)}, not {needs}"
        may_have = included(libraries, name)
        if "mesh" in may_have:  # its functions are in a public namespace
            may_have.add("parallel")
        others = {layer for _, layers in libraries.values() for layer in layers} - may_have
        found = {scope for scope in scopes(path) if set(re.findall(r"\bunisono::(\w+)::", scope)) & others}
        yield from (f"{name}: rooms: it has {scope}" for scope in sorted(found))
        dynamic = output("nm", "-D", path)
        used |= private_names(dynamic, True)
        if name == "libunisono":
            shown = private_names(dynamic, False)
            if b"llama" in Path(path).read_bytes():
                yield f"{name}: models: it names llama"
    # Type information is emitted with the types that are used.
    yield from (f"libunisono: private: nobody uses {one}" for one in sorted(shown - used)
                if not re.match("_ZT|.*C2E", one))


def main():
    libraries = read_layers(Path(sys.argv[1]).read_text())
    files = {re.match(r"libunisono[a-z_]*", Path(path).name).group(): path for path in sys.argv[2:]}
    findings = list(check(libraries, files))
    print("\n".join(findings) or f"{len(files)} libraries: right")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
