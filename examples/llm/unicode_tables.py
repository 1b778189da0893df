#!/usr/bin/env python3
"""Writes unicode_tables.h, of the Unicode that Python knows: unicode_tables.py > unicode_tables.h"""
import unicodedata

CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)  # whose parts are computed
IDEOGRAPHS = (range(0xF900, 0xFB00), range(0x2F800, 0x2FA20))  # for compatibility: a thousand, and rare


def ranges(is_in):
    found = []
    for code in filter(is_in, CODES):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def category(code):
    return unicodedata.category(chr(code))


def bare(code):
    """A letter in lower case without its marks; None: it has none."""
    text = chr(code)
    parts = [c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn"]
    is_other = len(parts) == 1 and parts[0] != text and text.lower() == text
    return ord(parts[0]) if is_other and not any(code in block for block in (HANGUL, *IDEOGRAPHS)) else None


def show(type_name, name, pairs):
    print(f"\ninline constexpr {type_name} {name}[] = {{")
    print(", ".join(f"{{{a:#x}, {b:#x}}}" for a, b in pairs) + "};")


def main():
    print(f"// Made by unicode_tables.py, of Unicode {unicodedata.unidata_version}; sorted.")
    print("#pragma once\n\nnamespace llm {")
    print("\nstruct CodeRange {\n  char32_t first, last;\n};")
    print("struct Bare {\n  char32_t letter, without_marks;\n};")
    show("CodeRange", "kPunctuation", ranges(lambda code: category(code)[0] == "P"))
    print("\n// Marks that take no place of their own.", end="")
    show("CodeRange", "kMarks", ranges(lambda code: category(code) == "Mn"))
    print("\n// Controls, formats and codes for private use.", end="")
    show("CodeRange", "kUnseen", ranges(lambda code: category(code) in ("Cc", "Cf", "Co")))
    print("\n// Letters in lower case that have marks, all but ideographs and Hangul.", end="")
    show("Bare", "kBare", [(code, bare(code)) for code in CODES if bare(code) is not None])
    print("\n}  // namespace llm")


main()
