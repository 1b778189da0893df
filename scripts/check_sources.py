#!/usr/bin/env python3
"""Holds the rules of the sources that a compiler does not see.

  layers       a file includes only its own layer and those below (LAYERS)
  public       headers in include/unisono use the standard library and unisono/ alone
  includes     no "../"; project headers in quotes, all others in angle brackets
  environment  only src/base/env.cc reads it
  words        one spelling for one thing (WORDS)
  cmake        a layer's DEPENDS name only layers that it may include
  types        a type has one definition: two of one name in one namespace link, and corrupt memory

Usage: check_sources.py [ROOT]. Prints "file:line: rule: what to do", and exits with 1 if there is any.
"""

import re
import subprocess
import sys
from pathlib import Path

# What each layer may include besides itself and the public headers.
LAYERS = {
    "base": [],
    "topology": ["base"],
    "schedule": ["base"],
    "algorithms": ["schedule", "base"],
    "model": ["algorithms", "schedule", "topology", "base"],
    "kernels": ["base"],
    "transport": ["kernels", "schedule", "base"],
    "engine": ["transport", "kernels", "schedule", "base"],
    "comm": ["model", "engine", "transport", "kernels", "algorithms", "schedule", "topology", "base"],
}

# Spellings that are wrong in code, and the right ones. Benchmarks against other libraries, and
# what implements their interfaces, have to use their names.
WORDS = {
    r"[Aa]llreduce|ALLREDUCE": "all_reduce",
    r"[Aa]llgather|ALLGATHER": "all_gather",
    r"[Aa]ll[Tt]oall|ALLTOALL|all2all": "all_to_all",
    r"[Rr]educescatter|REDUCESCATTER": "reduce_scatter",
}
FOREIGN_NAMES = ("bench/", "docs/peers", "python/", "docs/guides/pytorch.md",
                 "scripts/check_sources.py", "tests/check/", "viewer/src/text/calls.ts")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")

CODE = {".h", ".hpp", ".cc", ".cpp", ".c"}
TEXT = CODE | {".cmake", ".py", ".sh", ".md", ".txt", ".json", ".in", ".pml", ".ts",
               ".svelte", ".css"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
READS_ENVIRONMENT = re.compile(r"\b(secure_)?getenv\s*\(|\benviron\b")
STANDARD_C = {"stddef.h", "stdint.h", "stdbool.h"}
OPENS_NAMESPACE = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?\{")
DEFINES_TYPE = re.compile(r"^(?:template <.*> )?(?:struct|class|enum(?: class)?|union) "
                          r"(?:(?:alignas\(.*\)|\[\[\w+\]\]|[A-Z_]+) )?(\w+)(?!\w|::)[^;]*\{")
COMPILED_OFTEN = "-inl.h"  # once for each instruction set, with alternatives by #if


def files_of(root):
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"],
        capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = listed.stdout.splitlines()
    else:  # an unpacked archive
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
        names = [n for n in names if not n.startswith(("build", "."))]
    return sorted(n for n in names if (root / n).is_file())


def layer_of(name):
    parts = name.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def check_include(name, bracket, target):
    """The finding for one #include, or None."""
    first = target.split("/")[0]
    ours = first in LAYERS or first == "unisono"
    if ".." in target.split("/"):
        return "includes: name the file from include/, src/ or the folder of this one"
    if ours and bracket == "<" and not name.startswith(("tests/install/", "examples/")):
        return f'includes: write "{target}": it is a file of this project'
    if name.startswith("include/"):
        standard = bracket == "<" and ("." not in target and "/" not in target or target in STANDARD_C)
        if not standard and first != "unisono":
            return f"public: {target} is neither of the standard library nor of unisono/"
    layer = layer_of(name)
    if layer is None or name.endswith("_test.cc") or bracket == "<":
        return None
    if layer not in LAYERS:
        return f"layers: src/{layer} is no layer; add it to LAYERS in scripts/check_sources.py"
    if first in LAYERS and first != layer and first not in LAYERS[layer]:
        return f"layers: {layer} must not include {first} (it may: {', '.join(LAYERS[layer]) or 'none'})"
    return None


def check_words(line):
    for wrong, right in WORDS.items():
        for word in re.finditer(wrong, line):
            yield f"words: '{word.group()}' is spelt {right}"
    if UNFINISHED.search(line):
        yield "words: finish it, or describe the limit in prose"


def check_cmake(name, text):
    called = re.search(r"unisono_layer\(\s*(\w+)(.*?)\)", text, re.DOTALL)
    if not called or called.group(1) not in LAYERS:
        return
    words = called.group(2).split()
    if "DEPENDS" not in words:
        return
    for word in words[words.index("DEPENDS") + 1:]:
        if word.isupper():
            break
        if word not in LAYERS[called.group(1)]:
            yield f"{name}:1: cmake: {called.group(1)} must not depend on {word}"


def types_of(text):
    """(line, full name) of the types that a file defines for others to link with."""
    namespaces = []
    for number, line in enumerate(text.splitlines(), 1):
        opened = OPENS_NAMESPACE.match(line)
        if opened:
            namespaces.append(opened.group(1))
        elif line.startswith("}  // namespace"):
            namespaces = namespaces[:-1]
        defined = DEFINES_TYPE.match(line)
        if defined and "" not in namespaces:
            yield number, "::".join([*namespaces, defined.group(1)])


def check_types(root, names):
    first = {}
    for name in names:
        if not name.endswith((".h", ".hpp", ".cc")) or name.endswith(COMPILED_OFTEN):
            continue
        if not name.startswith(("include/", "src/", "tools/")):
            continue  # programs of their own
        for number, full in types_of((root / name).read_text(encoding="utf-8", errors="replace")):
            if full in first:
                yield f"{name}:{number}: types: {full} is another one in {first[full]}; rename one"
            first.setdefault(full, f"{name}:{number}")


def check_file(root, name):
    path = root / name
    if path.suffix not in TEXT and path.name != "CMakeLists.txt":
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.name == "CMakeLists.txt":
        yield from check_cmake(name, text)
    for number, line in enumerate(text.splitlines(), 1):
        include = INCLUDE.match(line) if path.suffix in CODE else None
        finding = check_include(name, *include.groups()) if include else None
        if finding:
            yield f"{name}:{number}: {finding}"
        if not name.startswith(FOREIGN_NAMES):
            for finding in check_words(line):
                yield f"{name}:{number}: {finding}"
        if (name.startswith("src/") and name != "src/base/env.cc" and not name.endswith("_test.cc")
                and path.suffix in CODE and READS_ENVIRONMENT.search(line.split("//")[0])):
            yield f"{name}:{number}: environment: read it through base/env.h"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    names = files_of(root)
    findings = [finding for name in names for finding in check_file(root, name)]
    findings += check_types(root, names)
    print("\n".join(findings), end="\n" if findings else "")
    if not names:
        print(f"{root}: no files to check")
    return 1 if findings or not names else 0


if __name__ == "__main__":
    sys.exit(main())
