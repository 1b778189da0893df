#!/usr/bin/env python3
"""Enumerates every function of the C headers, so that none can be forgotten:

  golden    the declarations are those of functions.txt: a change of the binary interface is seen
  exported  the libraries export these functions, each once, and no other unisono_* name
  noexcept  each is noexcept for C++
  guarded   each bears NULL and 0 for all its arguments: no crash, and the answer that it promises

functions_test.py --update ... writes functions.txt anew.
"""

import argparse
import ctypes
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# The result of functions for NULL and 0 arguments, if it differs from UNISONO_USAGE.
OTHER_ANSWERS = {
    "unisono_last_error": b"",
    "unisono_plan_algorithm": b"",
    "unisono_local_rank": -1,
    "unisono_local_size": 0,
    "unisono_rank": -1,
    "unisono_region_address": None,
    "unisono_region_bytes": 0,
    "unisono_result_name": b"success",
    "unisono_size": 0,
    "unisono_reshard_complete": 0,
    "unisono_pipeline_schedule_stages": 0,
    "unisono_pipeline_schedule_rank_of": -1,
    "unisono_pipeline_most_bytes": 0,
    "unisono_dtype_bytes": 1,  # the size of UNISONO_I8
    "unisono_version": b"0.1.0",
}
USAGE = 1
RESULTS = {"unisono_result_t": ctypes.c_int, "int": ctypes.c_int, "size_t": ctypes.c_size_t,
           "const char*": ctypes.c_char_p, "void*": ctypes.c_void_p}


def declarations(header):
    """Returns (result type, name, parameters) of each function, from the header's text."""
    text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.DOTALL)
    text = re.sub(r"^#.*?(?<!\\)$", "", text, flags=re.DOTALL | re.MULTILINE)
    found = []
    for declaration in re.findall(r"UNISONO_EXPORT\s+([^;]*);", text):
        declaration = " ".join(declaration.split())
        match = re.fullmatch(r"(.*?)\s*\b(unisono_\w+)\((.*)\) UNISONO_NOEXCEPT", declaration)
        if not match:
            sys.exit(f"{header}: not of the form 'type name(...) UNISONO_NOEXCEPT': {declaration}")
        found.append(match.groups())
    return found


def count_of(parameters):
    """Counts the parameters, without commas inside a function pointer."""
    flat = re.sub(r"\(\*(\w+)\)\([^()]*\)", r"\1", parameters)
    return 0 if flat == "void" else flat.count(",") + 1


def check_golden(functions, golden, update):
    lines = sorted(f"{result} {name}({parameters})" for result, name, parameters in functions)
    text = "\n".join(lines) + "\n"
    if update:
        golden.write_text(text)
    old = golden.read_text().splitlines() if golden.exists() else []
    for line in sorted(set(old) ^ set(lines)):
        yield f"{'gone' if line in old else 'new'}: {line}; see --update"


def exported_by(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                            capture_output=True, text=True).stdout
    return re.findall(r" [TWDBR] (unisono_\w+)", listed)


def check_exported(functions, libraries):
    names = [name for library in libraries for name in exported_by(library)]
    exported = set(names)
    yield from (f"{name} is exported by two libraries" for name in exported if names.count(name) > 1)
    declared = {name for _, name, _ in functions}
    yield from (f"{name} is declared, but not exported" for name in declared - exported)
    yield from (f"{name} is exported, but not declared" for name in exported - declared)


def check_noexcept(functions, headers, cxx):
    source = "".join(f'#include "unisono/{header.name}"\n' for header in headers)
    source += "template <typename F> constexpr bool kSafe = false;\n"
    source += "template <typename R, typename... A> constexpr bool kSafe<R (*)(A...) noexcept> = true;\n"
    source += "".join(f'static_assert(kSafe<decltype(&{name})>, "{name}");\n'
                      for _, name, _ in functions)
    with tempfile.NamedTemporaryFile("w", suffix=".cc") as file:
        file.write(source)
        file.flush()
        run = subprocess.run([cxx, "-std=c++17", "-fsyntax-only", f"-I{headers[0].parent.parent}",
                              file.name], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        yield f"not noexcept:\n{run.stderr}"


def check_guarded(functions, libraries):
    loaded = [ctypes.CDLL(str(library)) for library in libraries]
    last_error = loaded[0].unisono_last_error
    last_error.restype = ctypes.c_char_p
    # Queries the text first, before any call can have failed.
    for result, name, parameters in sorted(functions, key=lambda f: f[1] != "unisono_last_error"):
        function = next(getattr(one, name) for one in loaded if hasattr(one, name))
        function.restype = RESULTS[result]
        answer = function(*[ctypes.c_void_p(0)] * count_of(parameters))
        expected = OTHER_ANSWERS.get(name, USAGE)
        if answer != expected:
            yield f"{name} of nothing answers {answer!r}, not {expected!r}"
        if expected == USAGE and result == "unisono_result_t":
            if not last_error().startswith(b"usage: "):
                yield f"{name} of nothing leaves the text {last_error()!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--header", type=Path, nargs="+", required=True)
    parser.add_argument("--library", type=Path, nargs="+", required=True, help="libunisono first")
    parser.add_argument("--golden", type=Path, required=True)
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()

    functions = [each for header in options.header for each in declarations(header)]
    findings = [*check_golden(functions, options.golden, options.update),
                *check_exported(functions, options.library),
                *check_noexcept(functions, options.header, options.cxx),
                *check_guarded(functions, options.library)]
    if len(functions) < 50:
        findings.append(f"only {len(functions)} functions found in {options.header[0]}")
    print("\n".join(findings) or f"{len(functions)} functions: right")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
