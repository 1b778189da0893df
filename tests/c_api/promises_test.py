#!/usr/bin/env python3
"""Compares the promises of the C headers with those of the C++ headers:

  promises_test.py SOURCE            enumerations, constants, structs, defaults, functions, errors
  promises_test.py SOURCE --mistakes a change of one header alone is found

Whatever is in one language alone stands in a table here, with the reason.
"""
import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path

# Enumerations: the C++ name, and the prefix of the values' names in C.
ENUMS = {
    "unisono_result_t": ("ErrorCode", "UNISONO_"),
    "unisono_dtype_t": ("Dtype", "UNISONO_"),
    "unisono_op_t": ("ReduceOp", "UNISONO_"),
    "unisono_collective_t": ("Collective", "UNISONO_"),
    "unisono_transport_t": ("TransportKind", "UNISONO_TRANSPORT_"),
    "UNISONO_EXPERT_MAJOR": ("ExpertLayout", "UNISONO_"),
    "UNISONO_ROWS_PLAIN": ("RowCoding", "UNISONO_ROWS_"),
    "UNISONO_ANY_SOURCE": (None, ""),  # a constant
}
# Values whose names differ, or which only C needs, because it has no std::optional and no
# exceptions.
VALUES = {"boolean": "BOOL", "automatic": "AUTO", "none": "PLAIN"}
ONLY_C_VALUES = {"UNISONO_SUCCESS", "UNISONO_TRANSPORT_UNSET"}
COUNTS = {"Dtype": "kDtypeCount", "ReduceOp": "kReduceOpCount", "Collective": "kCollectiveCount"}

# Numbers in the C headers: header, text around the number, constant of C++.
NUMBERS = [
    ("types.h", r"UNISONO_ANY_SOURCE = (-?\d+)", "kAnySource"),
    ("unisono.h", r"skew\[(\d+)\];", "kSkewBuckets"),
    ("experts.h", r"at most (\d+) payloads", "kMaxPayloads"),
    ("reshard.h", r"size_t shape\[(\d+)\]", "kMostDims"),
    ("team.h", r"threads, 1 to (\d+),", "kMostTeamThreads"),
    ("team.h", r"no limit, -1: (\d+)\.", "TeamOptions::timeout_ms"),
]
# Facts that only rules.h states.
RULES = [r"KiB within a host", r"in +out +count$", r"`out` is this(\s|\*)+rank's part(\s|\*)+of `in`",
         r"reports the mismatch on stderr", r"the world has ended: every"]

# Structs: C++ struct and, by member, its name there; None: only C has it.
STRUCTS = {
    "unisono_connect_options_t": ("ConnectOptions", {"wait_spin": "wait", "wait_yield_us": "wait"},
                                  {"bootstrap", "interrupted"}),  # functions in C++
    "unisono_call_t": ("Call", {"op": "reduction", "factor": "reduction", "combine": "reduction",
                                "context": "reduction", "reserved": None}, set()),
    "unisono_statistics_t": ("Statistics::Row", {}, {"what", "waiting_for_s"}),  # parameters in C
    "unisono_device_options_t": ("DeviceOptions", {"reserved": None}, set()),
    "unisono_expert_exchange_options_t": ("ExpertExchangeOptions", {"experts_of_ranks": "experts_of_rank",
                                                                    "counts": "experts_of_rank"}, set()),
    "unisono_payload_t": ("Payload", {"reserved": None}, set()),
    "unisono_combine_rows_t": ("CombineRows", {}, set()),
    "unisono_combine_gradient_t": ("CombineGradient", {}, set()),
    "unisono_expert_move_t": ("ExpertMove", {}, set()),
    "unisono_pipeline_options_t": ("PipelineOptions PipelineCallbacks",
                                   {"reduce_gradient": "reduce_grad", "context": None}, {"overlap"}),  # in C one part after the other
    "unisono_pipeline_stage_t": ("PipelineStage", {"dtype": "output", "shape": "output", "dimensions": "output"},
                                 {"input"}),  # in C always the output of the stage before
    "unisono_pipeline_pass_t": ("PipelinePass", {f"{name}_bytes": name for name in (
        "input", "output", "output_gradient", "input_gradient")}, {"input_spec", "output_spec"}),
    "unisono_reshard_tensor_t": ("ReshardTensor", {"dimensions": "shape"}, set()),
    # C++ has functions and classes for these structs.
    "unisono_routing_shape_t": None, "unisono_reshard_part_t": None, "unisono_reshard_memory_t": None,
}
# Structs without struct_size or an _INIT.
NEVER_GROWS = {"unisono_expert_move_t"}  # three numbers; long lists of them are written
MADE_BY_THE_LIBRARY = {"unisono_pipeline_pass_t"}

# Functions: by the beginning of the C name, the class of C++.
CLASSES = [("unisono_team_", "Team"), ("unisono_device_", "DeviceGroup"),
           ("unisono_pipeline_schedule_", "PipelineSchedule"), ("unisono_pipeline_", "Pipeline"),
           ("unisono_reshard_", "Reshard"), ("unisono_plan_", "Plan"), ("unisono_", "Communicator")]
FUNCTIONS = {
    "unisono_wait": "Request::wait", "unisono_test": "Request::test", "unisono_wait_received": "Request::wait",
    "unisono_region_address": "Region::bytes", "unisono_region_bytes": "Region::bytes",
    "unisono_result_name": "to_string", "unisono_dtype_bytes": "size_of", "unisono_reshard_get_part": "Reshard::out_shape",
    "unisono_reshard_bytes": "ReshardPlan::bytes_sent", "unisono_pipeline_most_bytes": "Pipeline::most_bytes_held",
    "unisono_pipeline_times": "Pipeline::times_json",
    "unisono_expert_exchange_create": "ExpertExchange::ExpertExchange",
    "unisono_expert_exchange_limits": "ExpertExchange::max_rows", "unisono_route_i64": "ExpertExchange::route",
    "unisono_get_routing_shape": "Routing::rows", "unisono_routing_expert": "Routing::first_row",
    "unisono_experts_after_shrink": "after_shrink", "unisono_balance_experts": "balance",
    "unisono_find_expert_moves": "find_expert_moves", "unisono_bytes_of_moves": "bytes_of_moves",
    "unisono_move_experts": "move_experts",
}
FUNCTIONS |= {f"unisono_{name}": f"ExpertExchange::{name}" for name in (
    "route", "dispatch", "dispatch_async", "gather_list", "end_gather", "combine", "combine_async",
    "combine_backward", "mask", "mask_for", "masked")}
FUNCTIONS["unisono_mask_for"] = "ExpertExchange::mask"
# C++ has exceptions and version.h instead.
ONLY_C = {"unisono_last_error", "unisono_version"}
# Members of these classes that C does not offer.
ONLY_CPP = {
    "Communicator": {"hosts", "host", "send_recv", "place_of", "peer_memory", "previous_ranks", "previous_size"},
    "Request": {"on_done", "source", "received"}, "Plan": set(), "Team": {"run", "threads"}, "DeviceGroup": {"close", "set_timeout"},
}

CODES = "usage config connection peer_lost timeout mismatch aborted corrupt resource internal evicted".split()
ENDED = {"peer_lost", "timeout", "mismatch", "aborted"}  # the errors that end a world
# Functions whose errors differ.
OTHER_ERRORS = {
    "unisono_plan": "C++ documents it with run(), which sends; preparing is local",
    "unisono_reshard_create": "it also parses the layouts, as MeshLayout::parse() does",
}


class Interface:
    """The declarations in the headers of one folder, by language."""

    def __init__(self, include, reference):
        self.texts = {path.name: path.read_text() for path in sorted(include.rglob("*.h*"))}
        self.c, self.cpp, self.errors = {}, {}, {}
        for path in sorted(include.rglob("*.h*")):
            intro, lines = reference.header_intro(path.read_text())
            entries = reference.parse(lines)
            self.add(self.c if path.suffix == ".h" else self.cpp, entries, "", self.label(intro))

    @staticmethod
    def label(text):
        match = re.search(r"^Errors[^:\n]*: (.*?)(?=^[A-Z][a-z ]+: |\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
        return " ".join(match.group(1).split()) if match else None

    def add(self, names, entries, owner, general):
        label = None
        for entry in entries:
            if entry.kind == "text":
                general = self.label(entry.text) or general
                continue
            if entry.heads_group:
                label = self.label(entry.text)
            names.setdefault(owner + entry.name, entry)
            if entry.kind == "function" and self.errors.get(owner + entry.name, (None, None))[0] is None:
                self.errors[owner + entry.name] = (label, general)
            self.add(names, entry.members, f"{owner}{entry.name}::", general)

    def constant(self, name):
        name, member = name.split("::") if "::" in name else ("", name)
        text = next((text for text in self.texts.values() if f"struct {name} {{" in text), "") if name else "\n".join(
            self.texts.values())
        match = re.search(rf"\b{member} = (-?[\d']+);", text)
        return int(match.group(1).replace("'", "")) if match else None


def enum_values(entry):
    body = re.sub(r"/\*.*?\*/|//[^\n]*", "", entry.code[entry.code.index("{") + 1:entry.code.rindex("}")], flags=re.DOTALL)
    values, number = {}, -1
    for item in filter(None, (item.strip() for item in body.split(","))):
        name, _, given = (part.strip() for part in item.partition("="))
        number = int(given) if given else number + 1
        values[name] = number
    return values


def check_enums(both):
    for name, entry in both.c.items():
        if entry.kind != "enum":
            continue
        values = enum_values(entry)
        key = name if name in ENUMS else next(iter(values))
        if key not in ENUMS:
            yield f"the enumeration {key} of C is not in ENUMS"
            continue
        other, prefix = ENUMS[key]
        if other is None:
            continue
        there = enum_values(both.cpp[other])
        offset = 1 if key == "unisono_result_t" else 0
        expected = {(prefix + VALUES.get(name, name.upper())): number + offset for name, number in there.items()}
        for name in sorted((set(values) ^ set(expected)) - ONLY_C_VALUES):
            yield f"{key} and {other}: {name} is in one of them"
        yield from (f"{name} is {values[name]}, and {other} has {expected[name]}"
                    for name in values if expected.get(name, values[name]) != values[name])
        if other in COUNTS and both.constant(COUNTS[other]) != len(there):
            yield f"{COUNTS[other]} is not {len(there)}"


def check_numbers(both):
    for header, pattern, name in NUMBERS:
        match = re.search(pattern, both.texts[header])
        if not match or int(match.group(1)) != both.constant(name):
            yield f"{header}: {match.group() if match else pattern}, but {name} is {both.constant(name)}"
    for pattern in RULES:
        found = [name for name, text in both.texts.items() if re.search(pattern, text, re.MULTILINE)]
        if found != ["rules.h"]:
            yield f"{pattern!r} stands in {found}, not in rules.h alone"


def c_defaults(both, name):
    """Returns the members of a C struct and the values that its _INIT sets."""
    members = [member.name for member in both.c[name].members]
    init = re.search(rf"#define {name[:-2].upper()}_INIT\b(.*?[^\\])\n", "\n".join(both.texts.values()), re.DOTALL)
    if not init:
        return members, None
    values = init.group(1).replace("\\\n", " ").strip()[1:-1]
    return members, [value.strip() for value in re.split(r",(?![^(]*\))", values)]


def plain(value):
    """Returns a default in a neutral spelling; None: unset."""
    value = value.strip().rstrip(";").replace("'", "")
    value = re.sub(r"std::size_t\{(\d+)\}|\(size_t\)(\d+)", lambda match: match.group(1) or match.group(2), value)
    if value in ("", "{}", "nullptr", "NULL", "std::nullopt", "{0}"):
        return None
    value = {"kInheritedMaxError": "-1", "true": "1", "false": "0"}.get(value, value)
    if re.fullmatch(r"[\d.\s<-]+", value):
        return float(eval(value))  # noqa: S307: digits and shifts
    name = re.sub(r".*::|UNISONO_(TRANSPORT_|ROWS_)?", "", value)
    return VALUES.get(name, name).upper()


def check_structs(both):
    for name, entry in both.c.items():
        if entry.kind != "struct":
            continue
        if name not in STRUCTS:
            yield f"the struct {name} of C is not in STRUCTS"
            continue
        members, values = c_defaults(both, name)
        if name not in NEVER_GROWS and members[0] != "struct_size":
            yield f"{name} does not begin with struct_size"
        if name in NEVER_GROWS | MADE_BY_THE_LIBRARY:
            values = None
        elif values is None:
            yield f"{name} has no {name[:-2].upper()}_INIT"
        elif values[0] != f"sizeof({name})" or len(values) != len(members):
            yield f"{name[:-2].upper()}_INIT does not give {', '.join(members)}"
            continue
        if STRUCTS[name] is None:
            continue
        others, names, only = STRUCTS[name]
        there = {member.name: member for other in others.split() for member in both.cpp[other].members
                 if member.kind != "function"}
        here = {names.get(member, member) for member in members} - {None, "struct_size"}
        yield from (f"{name} has no member for {others}::{member}" for member in set(there) - here - only)
        yield from (f"{others} has no member for {name}::{member}" for member in here - set(there))
        for member, value in zip(members, values or []):
            if member in there:
                default = re.search(r"(?:= ?(.*?)|(\{.*\}));", there[member].code.split("//")[0])
                default = plain((default.group(1) or default.group(2)) if default else "")
                unset = default is None and plain(value) in (-1, 0, "UNSET")
                if plain(value) != default and not unset:
                    yield f"{name}::{member} is {value} at first, and {others}::{member} {default}"


def cpp_name(name, both):
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    start, owner = next((start, owner) for start, owner in CLASSES if name.startswith(start) and name != start[:-1])
    member = name[len(start):]
    if member == "create":
        return f"{owner}::{owner}" if owner != "Reshard" else "Reshard::create"
    if f"{owner}::{member}" not in both.cpp and f"Communicator::{name[8:]}" in both.cpp:
        return f"Communicator::{name[8:]}"
    return f"{owner}::{member}"


def codes_of(label, both, seen=()):
    """Returns the error codes that a label names, directly or by reference."""
    codes = {code for code in CODES if re.search(rf"\b{code}\b", label, re.IGNORECASE)}
    if re.search(r"the error that has ended", label):
        codes |= ENDED
    if re.search(r"(those|the errors|errors) of (a collective|the collectives|the operation)", label):
        codes |= codes_of(both.errors["Communicator::run"][0], both)
    for name in re.findall(r"(?:those of|and|,) ([\w:]+)\(\)", label):
        full = next((full for full in (name, f"Communicator::{name}") if full in both.errors), None)
        target = both.errors[full][0] if full else None
        if target and full not in seen:
            codes |= codes_of(target, both, (*seen, full))
    return codes


def check_functions(both):
    c = {name for name, entry in both.c.items() if entry.kind == "function" and "::" not in name}
    used = set()
    for name in sorted(c - ONLY_C):
        if re.search(r"_free$", name):
            continue  # a destructor
        other = cpp_name(name, both)
        used.add(other)
        if other not in both.cpp:
            yield f"{name}: C++ has no {other}; see FUNCTIONS"
            continue
        yield from check_errors(name, other, both)
    for owner, only in ONLY_CPP.items():
        members = {entry.name for entry in both.cpp[owner].members if entry.kind == "function" and not entry.is_special}
        yield from (f"C has no function for {owner}::{member}; see ONLY_CPP"
                    for member in members - only if f"{owner}::{member}" not in used)
    collectives = set(enum_values(both.cpp["Collective"]))
    for collective in collectives:
        for form in (collective, f"{collective}_async"):
            yield from (f"there is no {name}" for name, names in (
                (f"unisono_{form}", both.c), (f"Communicator::{form}", both.cpp)) if name not in names)


def check_errors(name, other, both):
    (label, general), (label_cpp, general_cpp) = both.errors[name], both.errors[other]
    if name in OTHER_ERRORS:
        return
    ours = codes_of(label or general or "", both) | {"usage"}  # of a NULL handle
    theirs = codes_of(label_cpp or general_cpp or "", both) | {"usage"}
    if label and label_cpp and ours != theirs:
        yield f"{name} and {other} name different errors: {sorted(ours ^ theirs)}"
    elif label and not label_cpp and not ours <= theirs:
        yield f"{other} names no {sorted(ours - theirs)}, as {name} does"
    elif label_cpp and not label and not theirs <= ours:
        yield f"{name} names no {sorted(theirs - ours)}, as {other} does"


CHECKS = (check_enums, check_numbers, check_structs, check_functions)

# Changes of one header that the test must find: header, old text, new text.
MISTAKES = [
    ("types.h", "UNISONO_F16 = 6", "UNISONO_F16 = 7"),
    ("types.hpp", "  exclusive_scan\n", "  exclusive_scan,\n  added\n"),
    ("error.hpp", "  corrupt, ", "  damaged, "),
    ("types.h", "UNISONO_ANY_SOURCE = -1", "UNISONO_ANY_SOURCE = -2"),
    ("statistics.hpp", "kSkewBuckets = 24", "kSkewBuckets = 25"),
    ("team.hpp", "timeout_ms = 300'000", "timeout_ms = 30'000"),
    ("communicator.hpp", "// length of the message.", "// length, or\n  // 16 KiB within a host."),
    ("options.hpp", "int timeout_ms = 300'000;", "int timeout_ms = 30'000;"),
    ("options.hpp", "  std::string job;", "  std::string job;\n  int added = 0;"),
    ("options.hpp", "  std::string ports;", "  std::string doors;"),
    ("call.hpp", "int timeout_ms = -1;", "int timeout_ms = 0;"),
    ("unisono.h", "  size_t struct_size;\n  int rank;", "  int rank;\n  size_t struct_size;"),
    ("experts.h", "#define UNISONO_PAYLOAD_INIT", "#define UNISONO_PAYLOADS_INIT"),
    ("experts.h", "int alignment;", "int aligned;"),
    ("communicator.hpp", "  Communicator split(int color, int key);", "  Communicator parted(int color, int key);"),
    ("collectives.h", "unisono_gather_v_async(", "unisono_gathered_v_async("),
    ("communicator.hpp", "  // Errors: those of a collective, resource.", "  // Errors: those of a collective."),
    ("unisono.h", "PEER_LOST, TIMEOUT, RESOURCE, ABORTED. */", "PEER_LOST, TIMEOUT, RESOURCE. */"),
    ("communicator.hpp", "timeout, peer_lost and\n  // aborted, on all ranks.", "timeout and\n  // aborted, on all ranks."),
]


def findings(include, reference):
    both = Interface(include, reference)
    return [finding for check in CHECKS for finding in check(both)]


def missed(include, reference):
    if findings(include, reference):
        yield "the headers disagree before any change"
        return
    with tempfile.TemporaryDirectory() as folder:
        for header, old, new in MISTAKES:
            changed = Path(folder) / "include"
            shutil.rmtree(changed, ignore_errors=True)
            shutil.copytree(include, changed)
            path = changed / "unisono" / header
            text = path.read_text()
            if old not in text:
                yield f"{header} no longer has {old!r}; change MISTAKES"
                continue
            path.write_text(text.replace(old, new, 1))
            if not findings(changed, reference):
                yield f"not found: {header}: {new!r} instead of {old!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--mistakes", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(options.source / "site"))
    import reference

    found = list((missed if options.mistakes else findings)(options.source / "include", reference))
    print("\n".join(found) or (f"{len(MISTAKES)} mistakes: found" if options.mistakes else "the promises agree"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
