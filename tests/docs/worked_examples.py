#!/usr/bin/env python3
"""Recomputes the numbers of docs/worked-examples.md.

    9.4 ms<!-- = 2*(N-1)/N*Data/BW*1e3 -->   the number before the comment is the value of the
                                             expression, to the digits that it shows
    <!-- let N = 8; BW = 300e9 -->           names for the expressions that follow

`--mistake` also spoils every number in turn and sees that this is noticed.
"""
import math
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "worked-examples.md"
COMMENT = re.compile(r"<!-- (let|=) (.*?) -->")
NUMBER = re.compile(r"(\d+(?:\.(\d+))?)[^\d]*$")


def check(text):
    names = {"sqrt": math.sqrt, "log2": math.log2, "__builtins__": {}}
    findings = []
    count = 0
    for comment in COMMENT.finditer(text):
        if comment[1] == "let":
            for assignment in comment[2].split(";"):
                name, _, value = assignment.partition("=")
                names[name.strip()] = eval(value, names)  # the expressions come from our own page
            continue
        count += 1
        before = text[max(0, comment.start() - 40):comment.start()]
        shown = NUMBER.search(before)
        line = text[:comment.start()].count("\n") + 1
        value = eval(comment[2], names)
        if not shown:
            findings.append(f"line {line}: no number before {comment[0]}")
        elif f"{value:.{len(shown[2] or '')}f}" != shown[1]:
            findings.append(f"line {line}: {shown[1]} is {value:.6g}")
    if count < 15:
        findings.append(f"only {count} numbers are computed")
    return findings


def unnoticed(text):
    """Yields a message for each number that can change without a finding."""
    for comment in COMMENT.finditer(text):
        if comment[1] == "=":
            start = max(0, comment.start() - 40)
            shown = NUMBER.search(text[start:comment.start()])
            place = start + shown.start(1)
            digit = str((int(text[place]) + 1) % 10)
            if not check(text[:place] + digit + text[place + 1:]):
                yield f"line {text[:place].count(chr(10)) + 1}: a wrong number is not noticed"


def main():
    text = PAGE.read_text(encoding="utf-8")
    findings = check(text)
    if "--mistake" in sys.argv and not findings:
        findings = list(unnoticed(text))
    print("\n".join(findings) or "right")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
