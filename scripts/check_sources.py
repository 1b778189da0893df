#!/usr/bin/env python3
"""Checks source rules that a compiler cannot check.

  layers       a file includes only its own layer and the layers that src/layers.txt allows, which are
               below it
  public       headers in include/unisono include only the standard library and unisono/
  includes     no "../"; project headers in quotes, all others in angle brackets
  environment  only src/base/env.cc reads it
  words        one spelling for one thing (WORDS)
  prose        no comment or sentence begins with "Of"
  circles      files do not include each other in a circle (a .cc and its .h count as one)
  docs         docs/architecture.md has a row for each layer
  types        a type has one definition: two with the same full name would link and corrupt memory
  names        few names denote several types in headers
  size         a class in a header of src/ or tools/ has at most 100 lines, and such a header includes at
               most MOST_INCLUDES other headers of the project
  depth        no chain of includes is longer than MOST_IN_A_CHAIN files

Usage: check_sources.py [ROOT]. Prints "file:line: rule: what to do" for each finding. The exit status is 1 if
there is any.
"""

import re
import subprocess
import sys
from pathlib import Path

# Wrong spellings in code, and the right ones. Benchmarks against other libraries, and code that
# implements their interfaces, must use those libraries' names.
WORDS = {
    r"[Aa]llreduce|ALLREDUCE": "all_reduce",
    r"[Aa]llgather|ALLGATHER": "all_gather",
    r"[Aa]ll[Tt]oall|ALLTOALL|all2all": "all_to_all",
    r"[Rr]educescatter|REDUCESCATTER": "reduce_scatter",
    # Names that have been replaced.
    r"\bBells?\b|\bring_all\b": "EventCount",
    r"\bLifeline\b": "LivenessToken",
    r"\bLenders\b": "TransportRegistry",
    r"\bBoardEntry\b|\bFlightBoard\b": "FlightRecorder",
    r"\bRoads\b": "Fabric",
    r"\b[Uu]ntold\b": "unreported",
    r"\bRollCall\b|\bcall_roll\b": "HostAgreement, agree_over_network()",
    r"\bGreeter\b": "PendingPeer",
    r"\bDoor\b": "Endpoints",
    r"\btcp::Gate\b": "tcp::Acceptor",
    r"\bReception\b": "TextExchange",
    r"\bReunion\b": "ShrinkAttempt",
    r"\bVisitors?\b|\b[Vv]isitors?_|\bkMostVisitors\b|\bGuests?\b": "PendingPeer",
    r"\bgreeter_?\b": "pending peer",
    r"\bKeeper\b": "Coordinator, of agreement; RemoteShell, of unisono run",
    r"\bBoard\b": "FlightRecorder",
    r"\bTape\b": "TraceWriter",
    r"\b[Ll]enders?\b": "transport, TransportRegistry",
    r"\b[Oo]wn_?[Ss]chedule": "user schedule",
    r"\b(?:last|launcher)[ _]words\b|\bLauncherWords\b|\bEndWords\b": "end reason",
    r"\bkCrowded\b|Crowded\b": "kOversubscribed",
    r"\bPeerDoor\b": "DescriptorExchange",
    r"\btroubles\b": "failures, events of links",
    # Texts that users read are idiomatic.
    r"\bis no right\b|\bno right (?:schedule|program|exchange)\b": "is not a valid",
    r"\b(?:is|are|was|were) none of\b": "is not one of",
    r"\.crowded\b|\bis_crowded\b": "oversubscribed",
}
FOREIGN_NAMES = ("bench/", "docs/peers", "python/", "docs/guides/pytorch.md",
                 "scripts/check_sources.py", "tests/check/", "tools/unisono/msccl", "tests/msccl", "src/network_model/logs/",
                 "tests/cli/transcripts/export.txt", "tests/cli/files/plan_", "tests/fuzz/seeds/mscclpp", "tests/fuzz/seeds/benchmark_log",
                 "viewer/src/text/calls.ts", "tools/unisono/imports/", "tests/cli/files/kineto",
                 "tests/cli/files/flight_recorder")
MARK = r"^\s*(?://|#|<!--|/?\*|\"{3})\s?"
BEGINS_WITH_OF = re.compile(MARK + r"Of ")
SENTENCE_WITH_OF = re.compile(r"\w[.;] Of [a-z]")
COMMENT = re.compile(MARK)
HAS_PROSE = {".h", ".hpp", ".cc", ".cpp", ".c", ".py", ".ts", ".svelte", ".pml"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")

CODE = {".h", ".hpp", ".cc", ".cpp", ".c"}
TEXT = CODE | {".cmake", ".py", ".sh", ".md", ".txt", ".json", ".in", ".pml", ".ts",
               ".svelte", ".css"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
READS_ENVIRONMENT = re.compile(r"\b(secure_)?getenv\s*\(|\benviron\b")
STANDARD_C = {"stddef.h", "stdint.h", "stdbool.h"}
OPENS_NAMESPACE = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?\{")
DEFINES_TYPE = re.compile(r"^(?:template <.*> )?(?:struct|class|enum(?: class)?|union) "
                          r"(?:(?:alignas\(.*\)|\[\[\w+\]\]|[A-Z_]+) )?(\w+)(?!\w|::|<)[^;]*\{")
ROOTS = ("tools/unisono/", "src/", "include/")  # search path of includes
KNOWN_CIRCLES = ()
# Public headers contain documentation and are not counted.
MOST_LINES_OF_A_CLASS = 100
MOST_INCLUDES = 10
MOST_IN_A_CHAIN = 9  # files; public headers in a circle count as one
MOST_SHARED_NAMES = 10
FOR_TESTS = re.compile("testing|test_support|conformance")
COMPILED_OFTEN = "-inl.h"  # compiled once per instruction set, with #if alternatives


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


def read_layers(root):
    """Returns {layer: layers that it may include}, and a finding for each line that allows a higher layer."""
    layers, libraries, findings = {}, set(), []
    path = root / "src/layers.txt"
    for number, line in enumerate(path.read_text().splitlines() if path.is_file() else [], 1):
        if not line or line.startswith("#"):
            continue
        name, _, below = line.partition(":")
        is_library = name.startswith("lib")
        known = libraries if is_library else layers
        findings += [f"src/layers.txt:{number}: layers: {word} is not below {name}"
                     for word in below.split() if word not in known]
        if is_library:
            libraries.add(name)
        else:
            layers[name] = below.split()
            if not libraries:
                findings.append(f"src/layers.txt:{number}: layers: {name} is in no library")
    return layers, findings


def check_include(name, bracket, target, layers):
    """Returns the finding for one #include, or None."""
    first = target.split("/")[0]
    ours = first in layers or first == "unisono"
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
    if layer not in layers:
        return f"layers: src/{layer} is not a layer; add it to src/layers.txt"
    if first in layers and first != layer and first not in layers[layer]:
        return f"layers: {layer} must not include {first} (it may: {', '.join(layers[layer]) or 'none'})"
    return None


def letters_of(pattern):
    """Returns a run of letters per alternative of a pattern: a text without any of them cannot match."""
    plain = re.sub(r"\(\?:[^)]*\)|\[[^]]*\]|\\.|\w\?", " ", pattern)
    return [max(re.findall(r"[A-Za-z]+", alternative), key=len) for alternative in plain.split("|")]


LETTERS = {wrong: letters_of(wrong) for wrong in WORDS}


def words_in(text):
    """Returns the entries of WORDS that may match in a text. Searching for letters is much faster than
    matching patterns."""
    return {wrong: right for wrong, right in WORDS.items()
            if any(letters in text for letters in LETTERS[wrong])}


def check_words(line, words):
    for wrong, right in words.items():
        for word in re.finditer(wrong, line):
            yield f"words: '{word.group()}' is spelt {right}"
    if UNFINISHED.search(line):
        yield "words: finish it, or describe the limit in prose"


def unit_of(name):
    """Maps a .cc and its .h to one unit. Public C and C++ headers of the same name stay two units."""
    return name if name.startswith("include/") else name.rsplit(".", 1)[0]


def check_circles(root, names):
    """Returns a finding for each circle of files that include each other."""
    units = {unit_of(name): name for name in names  # the header, if there is one
             if name.startswith(ROOTS) and Path(name).suffix in CODE and not name.endswith("_test.cc")}
    includes = {}
    for name in names:
        unit = unit_of(name)
        if unit not in units or name.endswith("_test.cc"):
            continue
        for line in (root / name).read_text(encoding="utf-8", errors="replace").splitlines():
            include = INCLUDE.match(line)
            if include and include.group(1) == '"':
                places = [unit_of(folder + include.group(2)) for folder in ROOTS]
                places = [place for place in places if place in units]
                if places and places[0] != unit:
                    includes.setdefault(unit, {})[places[0]] = name
    done, path = set(), []

    def walk(unit):
        if unit in path:
            circle = path[path.index(unit):] + [unit]
            if not any(known <= set(circle) for known in KNOWN_CIRCLES):
                shown = [one.split("/", 1)[1].removeprefix("unisono/") if one.startswith("tools/")
                         else one.split("/", 1)[1] for one in circle]
                yield (f"{units[circle[0]]}:1: circles: {' > '.join(shown)}: take one of them "
                       "apart")
        if unit in done or unit in path:
            return
        path.append(unit)
        for target in includes.get(unit, {}):
            yield from walk(target)
        path.pop()
        done.add(unit)

    for unit in sorted(includes):
        yield from walk(unit)


def check_depth(root, names):
    """Returns a finding for each chain of includes that is too long."""
    includes, chains = {}, {}
    for name in names:
        if name.startswith(("src/", "tools/unisono/")) and Path(name).suffix in CODE:
            folder = "src" if name.startswith("src/") else "tools/unisono"
            targets = [match.group(2) for match in
                       map(INCLUDE.match, (root / name).read_text(errors="replace").splitlines())
                       if match and match.group(1) == '"']
            includes[name] = [next((found for found in (f"{folder}/{target}", f"src/{target}")
                                    if found in names), target) for target in targets]

    def chain(name):
        if name not in chains:
            chains[name] = [name]  # in a circle, which is a separate finding
            longest = max((chain(target) for target in includes.get(name, [])), key=len, default=[])
            chains[name] = [name, *longest]
        return chains[name]

    for name in sorted(includes):
        if len(chain(name)) > MOST_IN_A_CHAIN and not name.endswith("_test.cc"):
            yield (f"{name}:1: depth: {' > '.join(chain(name))}: {len(chain(name))} files include "
                   f"each other; at most {MOST_IN_A_CHAIN}")


def check_picture(root, layers):
    path = root / "docs/architecture.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    for layer in layers if text else []:
        if f"| `src/{layer}/` |" not in text:
            yield f"docs/architecture.md:1: docs: there is no row for `src/{layer}/`"


def types_of(text):
    """Yields (line, full name, length) of the types with external linkage that a file defines."""
    namespaces = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        opened = OPENS_NAMESPACE.match(line)
        if opened:
            namespaces.append(opened.group(1))
        elif line.startswith("}  // namespace"):
            namespaces = namespaces[:-1]
        defined = DEFINES_TYPE.match(line)
        if defined and "" not in namespaces:
            end = number
            while end < len(lines) and not line.endswith("};") and not lines[end - 1].startswith("}"):
                end += 1
            yield number, "::".join([*namespaces, defined.group(1)]), end - number + 1


def check_types(root, names):
    first, shared = {}, {}
    for name in names:
        if not name.endswith((".h", ".hpp", ".cc")) or name.endswith(COMPILED_OFTEN):
            continue
        if not name.startswith(("include/", "src/", "tools/")):
            continue  # separate programs
        for number, full, lines in types_of((root / name).read_text(errors="replace")):
            if full in first:
                yield f"{name}:{number}: types: {full} is another one in {first[full]}; rename one"
            first.setdefault(full, f"{name}:{number}")
            if not name.endswith(".cc") and not FOR_TESTS.search(name):
                shared.setdefault(full.rsplit("::", 1)[-1], set()).add(full)
                if lines > MOST_LINES_OF_A_CLASS and not name.startswith("include/"):
                    yield (f"{name}:{number}: size: {full} has {lines} lines; at most "
                           f"{MOST_LINES_OF_A_CLASS}")
    several = sorted(name for name, types in shared.items() if len(types) > 1)
    if len(several) > MOST_SHARED_NAMES:
        yield (f"src:1: names: {len(several)} names stand for several types each, at most "
               f"{MOST_SHARED_NAMES}: {', '.join(several)}")


def check_file(root, name, layers):
    path = root / name
    if path.suffix not in TEXT and path.name != "CMakeLists.txt":
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    ours = [match for match in map(INCLUDE.match, text.splitlines()) if match and match.group(1) == '"']
    if path.suffix in (".h", ".hpp") and len(ours) > MOST_INCLUDES and not name.startswith("include/"):
        yield (f"{name}:1: size: it includes {len(ours)} headers of the project; at most "
               f"{MOST_INCLUDES}")
    foreign = name.startswith(FOREIGN_NAMES)
    words = {} if foreign else words_in(text)
    has_code, has_prose = path.suffix in CODE, path.suffix in HAS_PROSE
    must_not_read = (has_code and name.startswith("src/") and name != "src/base/env.cc"
                     and not name.endswith("_test.cc"))
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        goes_on = has_prose and COMMENT.match(before) and not before.rstrip().endswith(".")
        begins = has_prose and BEGINS_WITH_OF.match(line) and not goes_on
        if begins or (has_prose and SENTENCE_WITH_OF.search(line)):
            yield f"{name}:{number}: prose: begin the sentence with its subject"
        before = line
        include = INCLUDE.match(line) if has_code else None
        finding = check_include(name, *include.groups(), layers) if include else None
        if finding:
            yield f"{name}:{number}: {finding}"
        if not foreign:
            for finding in check_words(line, words):
                yield f"{name}:{number}: {finding}"
        if must_not_read and READS_ENVIRONMENT.search(line.split("//")[0]):
            yield f"{name}:{number}: environment: read it through base/env.h"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    names = files_of(root)
    layers, findings = read_layers(root)
    findings += [finding for name in names for finding in check_file(root, name, layers)]
    findings += check_types(root, names)
    findings += check_circles(root, names)
    findings += check_depth(root, names)
    findings += check_picture(root, layers)
    print("\n".join(findings), end="\n" if findings else "")
    if not names:
        print(f"{root}: no files to check")
    return 1 if findings or not names else 0


if __name__ == "__main__":
    sys.exit(main())
