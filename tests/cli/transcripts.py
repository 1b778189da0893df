"""Reads files of approval cases: command lines, and the output of each. See transcripts/.

    # a comment
    = name
    $ LANG=zh_CN.UTF-8 unisono show all_reduce/ring --steps 3
    > a further line of the command
    < a line of its standard input
    | a line of its standard output
    ! a line of its standard error
    ? 2

A command is split into words as a shell does it, and no shell runs it. `?` is the exit code where it is
not 0. A line `\\` after output says that the output does not end with a newline. In words and output
SCRATCH stands for an empty folder of the case, and PROGRAM for the program.
"""
import dataclasses
import pathlib
import re
import shlex


@dataclasses.dataclass
class Case:
    name: str
    place: str  # file:line, for messages
    head: list  # the lines from the name to the last line of input, unchanged
    environment: dict
    words: list
    input: str
    printed: list  # the lines of output and the exit code


def text_of(lines, mark):
    """Returns the text of marked lines."""
    text, last = "", None
    for line in lines:
        if line[0] == mark:
            text += line[2:] + "\n"
        elif line == "\\" and last == mark:
            text = text[:-1]
        last = line[0]
    return text


def lines_of(text, mark):
    """The reverse of text_of()."""
    lines = [mark + (" " + line if line else "") for line in text.split("\n")]
    return lines[:-1] if text.endswith("\n") or not text else [*lines, "\\"]


def printed_lines(output, errors, code):
    return lines_of(output, "|") + lines_of(errors, "!") + ([f"? {code}"] if code else [])


def parse_case(place, head, printed):
    name = head[0][2:]
    commands = [line[2:] for line in head if line[0] in "$>"]
    if not re.fullmatch(r"[\w-]+", name) or not commands or not head[1].startswith("$"):
        raise ValueError(f"{place}: a case is '= name' and then '$ unisono ...'")
    try:
        words = shlex.split("\n".join(commands))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    environment = {}
    while words and re.match(r"\w+=", words[0]):
        name_of, _, value = words.pop(0).partition("=")
        environment[name_of] = value
    if not words or words[0] != "unisono":
        raise ValueError(f"{place}: the command must be unisono, after variables if there are any")
    return Case(name, place, head, environment, words[1:], text_of(head, "<"), printed)


def read(path):
    """Returns the cases of a file, and the comments before each; the last comments belong to no case."""
    blocks = [[]]  # comments and empty lines, case, comments and empty lines, case, ...
    places = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1], 1):
        place = f"{path.name}:{number}"
        if line == "" or line[0] == "#":
            if len(blocks) % 2 == 0:
                blocks.append([])
        elif line.startswith("= "):
            if len(blocks) % 2 == 0:
                blocks.append([])
            blocks.append([])
            places.append(place)
        elif not re.match(r"[$><|!?]( |$)|\\$", line) or len(blocks) % 2 == 1:
            raise ValueError(f"{place}: no line of a case: {line}")
        blocks[-1].append(line)
    if len(blocks) % 2 == 0:
        blocks.append([])
    cases = []
    for place, lines in zip(places, blocks[1::2]):
        ends = next((i for i, line in enumerate(lines) if line[0] in "|!?"), len(lines))
        while lines[ends - 1] == "\\" and not lines[ends - 2].startswith("<"):
            ends -= 1
        cases.append(parse_case(place, lines[:ends], lines[ends:]))
    return cases, blocks[0::2]


def write(path, cases, comments):
    lines = list(comments[0])
    for case, behind in zip(cases, comments[1:]):
        lines += [*case.head, *case.printed, *behind]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_all(folder):
    """Returns {path: (cases, comments)}; names are unique."""
    files = {path: read(path) for path in sorted(pathlib.Path(folder).glob("*.txt"))}
    seen = {}
    for cases, _ in files.values():
        for case in cases:
            if case.name in seen:
                raise ValueError(f"{case.place}: {case.name} is also in {seen[case.name]}")
            seen[case.name] = case.place
    return files
