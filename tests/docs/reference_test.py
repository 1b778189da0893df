#!/usr/bin/env python3
"""The reference (site/reference.py) has every public name, and finds names without a comment or docstring."""
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "site"))
import reference  # noqa: E402

HEADER = """namespace unisono {

// About f and g.
int f(int a);
int g(int a);

int h(std::function<void(int)> a);
struct S {  // About S.
  int member = 0;
};

template <typename T>
class C {
 public:
  C(const C&) = delete;
  // About i.
  int i() const { return i_; }

  int j(int a = 1) const { return a; }
  int k() const;  // about k

 private:
  int i_ = 0;
};

namespace detail {
int hidden();
}
}  // namespace unisono
"""


def names(entries):
    for entry in entries:
        yield entry.name
        yield from names(entry.members)


class Reference(unittest.TestCase):
    def test_every_name_has_a_text(self):
        missing, count = reference.undocumented()
        self.assertEqual(missing, [])
        self.assertGreater(count, 900)

    def test_every_exported_name_is_there(self):
        known = {name for _, _, entries in reference.header_entries() for name in names(entries)}
        exported = [line for path in (ROOT / "tests/install/symbols").glob("*.txt") for line in path.read_text().splitlines()]
        wanted = {line for line in exported if re.fullmatch(r"unisono_\w+", line)}
        for line in exported:
            if match := re.match(r"unisono::(?:parallel::|lab::)?(\w+)(?:\(|\[|::)", line):
                wanted.add(match.group(1))
        self.assertGreater(len(wanted), 200)
        self.assertEqual(wanted - known - {"detail"}, set())

    def test_every_python_module_is_there(self):
        listed = {module for _, modules in reference.MODULE_PAGES.values() for module in modules}
        for module in listed:
            self.assertTrue(reference.module_entries(module)[1], module)
        for path in (ROOT / "python/src/unisono").glob("*.py"):
            if not path.name.startswith("_") and "\n__all__ = " in path.read_text():
                self.assertIn(f"unisono.{path.stem}", listed)

    def test_names_without_a_text(self):
        entries = reference.parse(HEADER.splitlines())
        self.assertEqual([entry.name for entry in entries], ["f", "g", "h", "S", "C"])
        self.assertEqual([entry.name for entry in entries if entry.needs_text], ["h", "C"])
        members = entries[-1].members
        self.assertEqual([entry.name for entry in members if entry.needs_text], ["j"])
        self.assertEqual(next(entry.code for entry in members if entry.name == "j"), "int j(int a = 1) const;")
        self.assertEqual(next(entry.text for entry in members if entry.name == "k"), "about k")

    def test_prose(self):
        made = reference.prose("Copies a * b.\nShapes: n*count elements,\nas `in`.\nErrors: usage.\n\n  code(1);")
        self.assertEqual(made, "Copies a \\* b.\n\n**Shapes:** n\\*count elements, as `in`.\n\n**Errors:** usage.\n\n"
                               "```text\ncode(1);\n```")


if __name__ == "__main__":
    unittest.main()
