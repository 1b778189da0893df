#!/usr/bin/env python3
"""Compares the types of the public headers with those of abi/MINOR.abi, by libabigail's abidiff:

  abi_test.py SOURCE --cxx COMPILER            the types are those of this minor version
  abi_test.py SOURCE --cxx COMPILER --mistakes a changed struct, enum or function of C is found
  abi_test.py SOURCE --cxx COMPILER --accept   writes abi/MINOR.abi; refused once MINOR is released

symbols_test.sh compares the names. Here one file includes all public headers, and has a variable for
each function of the C interface, so that their types are known too: a library with the types of its
whole debug information takes minutes to compile, this file takes seconds. docs/abi.md has the rules.
"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "packaging"))
import describe  # noqa: E402

# Changes that the test must find: file of include/unisono, old text, new text.
MISTAKES = {
    "a member is added": ("options.hpp", "struct ConnectOptions {", "struct ConnectOptions { int added = 0;"),
    "an enumerator is put before others": ("types.hpp", "enum class ReduceOp : std::uint8_t {",
                                            "enum class ReduceOp : std::uint8_t { added,"),
    "a C function has another parameter": ("unisono.h", "unisono_rank(unisono_comm_t comm",
                                           "unisono_rank(int added, unisono_comm_t comm"),
    "a C struct has another member": ("unisono.h", "typedef struct unisono_call {",
                                      "typedef struct unisono_call { int added;"),
}


def interface(include):
    """Returns a file that includes all public headers and uses the type of each C function."""
    headers = sorted(path.relative_to(include) for path in include.rglob("*") if path.suffix in (".h", ".hpp"))
    lines = [f'#include "{header}"' for header in headers]
    names = {name for path in (HERE / "symbols").glob("*.txt")
             for name in re.findall(r"^unisono_\w+$", path.read_text(), re.MULTILINE)}
    lines += [f"decltype({name})* abi_{name};" for name in sorted(names)]
    types = sorted({name for header in headers for name in types_of((include / header).read_text())})
    lines += [f"{name}* abi_{name.replace('::', '_')};" for name in types]
    return "\n".join(lines) + "\n"


def types_of(text):
    """Yields the classes and enumerations that a header defines in its namespaces, without templates."""
    spaces, within, before = [], False, ""  # within: in a brace in column 0 of no namespace
    for line in text.splitlines():
        if match := re.match(r"namespace (\w[\w:]*) \{$", line):
            spaces.append(match.group(1))
        elif line.startswith("}"):
            if within:
                within = False
            elif spaces:  # else: the end of extern "C"
                spaces.pop()
        elif re.match(r"[^ #/].*\{", line) and not line.startswith('extern "C" {'):
            within = "}" not in line
            match = re.match(r"(?:typedef )?(?:struct|class|enum class|enum|union) (?:UNISONO_EXPORT )?(\w+)\b", line)
            if match and not before.startswith("template"):
                yield "::".join([*spaces, match.group(1)])
        before = line


def dump(include, cxx, target):
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "interface.cc", Path(folder) / "interface.so"
        source.write_text(interface(include))
        subprocess.run([cxx, "-std=c++20", "-O0", "-g", "-gdwarf-5", "-shared",
                        "-fPIC", f"-ffile-prefix-map={include}=include", f"-ffile-prefix-map={folder}=.",
                        f"-I{include}", source, "-o", library], check=True)
        subprocess.run(["abidw", "--headers-dir", include, "--drop-private-types",
                        "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-architecture",
                        "--type-id-style", "hash", "--out-file", target, library], check=True)


def differences(old, new):
    """Returns the report of abidiff; empty if the types are equal."""
    done = subprocess.run(["abidiff", "--no-show-locs", old, new],
                          capture_output=True, text=True, check=False)
    if done.returncode & 3:  # it failed, or got invalid arguments
        raise SystemExit(f"abi_test: abidiff failed: {done.stdout}{done.stderr}")
    return done.stdout if done.returncode else ""


def mistakes(include, cxx, golden, folder):
    missed = []
    for what, (name, old, new) in MISTAKES.items():
        changed = Path(folder) / "include"
        shutil.rmtree(changed, ignore_errors=True)
        shutil.copytree(include, changed)
        path = changed / "unisono" / name
        text = path.read_text()
        if old not in text:
            missed.append(f"{name} no longer has `{old}`; change MISTAKES")
            continue
        path.write_text(text.replace(old, new, 1))
        dump(changed, cxx, Path(folder) / "changed.abi")
        if not differences(golden, Path(folder) / "changed.abi"):
            missed.append(f"not found: {what}")
    return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--mistakes", action="store_true")
    options = parser.parse_args()
    release = describe.version(options.source)
    minor = re.match(r"\d+\.\d+", release).group()
    golden = HERE / "abi" / f"{minor}.abi"
    include = options.source / "include"
    with tempfile.TemporaryDirectory() as folder:
        if options.mistakes:
            missed = mistakes(include, options.cxx, golden, folder)
            print("\n".join(missed) or f"{len(MISTAKES)} mistakes: found")
            return 1 if missed else 0
        new = Path(folder) / "new.abi"
        dump(include, options.cxx, new)
        if options.accept:
            if golden.exists() and describe.is_released(f"{minor}.0", options.source) and differences(golden, new):
                print(f"abi_test: {minor} is released, and programs rely on its types: raise the minor version")
                return 1
            shutil.copy(new, golden)
            return 0
        if not golden.exists():
            print(f"abi_test: there is no {golden}; if {minor} is a new version: "
                  f"{sys.argv[0]} {options.source} --cxx {options.cxx} --accept")
            return 1
        found = differences(golden, new)
        if found:
            print(found)
            print(f"abi_test: public types differ from {golden.name}. Before {minor}.0 is released, if that is meant: "
                  f"{sys.argv[0]} {options.source} --cxx {options.cxx} --accept\n"
                  "After it: raise the minor version, or leave the type as it was (docs/abi.md).")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
