"""scripts/check_sources.py finds every kind of mistake that it checks for, and accepts correct sources."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECKER = ROOT / "scripts" / "check_sources.py"
LAYERS = (ROOT / "src" / "layers.txt").read_text()


def check(files):
    """Findings for a tree of {name: text}, and the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in ({"src/layers.txt": LAYERS} | files if files else {}).items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, str(CHECKER), folder],
                              capture_output=True, text=True, check=False)
        return done.stdout.splitlines(), done.returncode


class Mistakes(unittest.TestCase):
    def expect(self, files, *findings):
        found, status = check(files)
        self.assertEqual(found, list(findings))
        self.assertEqual(status, 1)

    def test_engine_includes_algorithms(self):
        self.expect({"src/engine/run.cc": '#include "base/env.h"\n#include "algorithms/catalog.h"\n'},
                    "src/engine/run.cc:2: layers: engine must not include algorithms "
                    "(it may: trace, transport, kernels, schedule, base)")

    def test_base_includes_a_higher_layer(self):
        self.expect({"src/base/error.h": '#include "schedule/schedule.h"\n'},
                    "src/base/error.h:1: layers: base must not include schedule (it may: none)")

    def test_unknown_layer(self):
        self.expect({"src/extra/a.cc": '#include "base/env.h"\n'},
                    "src/extra/a.cc:1: layers: src/extra is not a layer; add it to "
                    "src/layers.txt")

    def test_public_header_shows_an_internal_one(self):
        self.expect({"include/unisono/a.hpp": '#include "base/env.h"\n'},
                    "include/unisono/a.hpp:1: public: base/env.h is neither of the standard library "
                    "nor of unisono/")

    def test_public_header_shows_a_library(self):
        self.expect({"include/unisono/a.hpp": "#include <span>\n#include <fmt/format.h>\n"},
                    "include/unisono/a.hpp:2: public: fmt/format.h is neither of the standard library "
                    "nor of unisono/")

    def test_relative_include(self):
        self.expect({"src/base/a.cc": '#include "../schedule/schedule.h"\n'},
                    "src/base/a.cc:1: includes: name the file from include/, src/ or the folder of "
                    "this one")

    def test_project_header_in_angle_brackets(self):
        self.expect({"src/comm/a.cc": "#include <unisono/types.hpp>\n"},
                    'src/comm/a.cc:1: includes: write "unisono/types.hpp": it is a file of this '
                    "project")

    def test_environment(self):
        self.expect({"src/comm/a.cc": 'auto v = std::getenv("RANK");  // getenv()\n'},
                    "src/comm/a.cc:1: environment: read it through base/env.h")

    def test_spelling(self):
        self.expect({"tools/a.cc": "void allreduce();\nint kAllgatherSteps;\n"},
                    "tools/a.cc:1: words: 'allreduce' is spelt all_reduce",
                    "tools/a.cc:2: words: 'Allgather' is spelt all_gather")

    def test_unfinished(self):
        self.expect({"docs/a.md": "TODO\n"},
                    "docs/a.md:1: words: finish it, or describe the limit in prose")

    def test_sentences_without_a_subject(self):
        said = "prose: begin the sentence with its subject"
        self.expect({"src/base/a.cc": "// Of two ranks the first.\n// A part\n// Of it all.\n",
                     "viewer/src/a.ts": "let a; // One" ". Of others nothing.\n",
                     "python/a.py": '    """Of a list, its end."""\n'},
                    f"python/a.py:1: {said}", f"src/base/a.cc:1: {said}", f"viewer/src/a.ts:1: {said}")

    def test_a_layer_that_may_include_a_higher_one(self):
        self.expect({"src/layers.txt": "libunisono:\nbase: engine\nengine: base\n"},
                    "src/layers.txt:2: layers: engine is not below base")

    def test_a_layer_of_no_library(self):
        self.expect({"src/layers.txt": "base:\nlibunisono: libother\n"},
                    "src/layers.txt:1: layers: base is in no library",
                    "src/layers.txt:2: layers: libother is not below libunisono")

    def test_a_circle_of_files(self):
        self.expect({"src/base/a.h": '#include "base/b.h"\n', "src/base/b.h": "int b();\n",
                     "src/base/b.cc": '#include "base/b.h"\n#include "base/c.h"\n',
                     "src/base/c.h": '#include "base/a.h"\n'},
                    "src/base/a.h:1: circles: base/a > base/b > base/c > base/a: take one of them "
                    "apart")

    def test_a_layer_that_the_documents_do_not_know(self):
        self.expect({"src/layers.txt": "libunisono:\nbase:\nengine: base\n",
                     "docs/architecture.md": "| `src/base/` | errors |\n"},
                    "docs/architecture.md:1: docs: there is no row for `src/engine/`")

    def test_two_types_of_one_name(self):
        self.expect({"src/base/a.h": "namespace unisono {\nstruct Card {\n};\n}  // namespace unisono\n",
                     "src/base/b.cc": "namespace unisono {\n\nclass alignas(8) Card final : public A {\n"},
                    "src/base/b.cc:3: types: unisono::Card is another one in src/base/a.h:2; rename one")

    def test_a_chain_of_includes_that_is_too_long(self):
        files = {f"src/base/f{i}.h": f'#include "base/f{i + 1}.h"\n' for i in range(9)}
        names = [f"src/base/f{i}.h" for i in range(10)]
        self.expect(files | {"src/base/f9.h": '#include "unisono/a.hpp"\n#include "unisono/b.hpp"\n',
                             "src/base/f1_test.cc": '#include "base/f0.h"\n',
                             "include/unisono/a.hpp": '#include "unisono/b.hpp"\n',
                             "include/unisono/b.hpp": ""},
                    f"src/base/f0.h:1: depth: {' > '.join([*names, 'unisono/a.hpp'])}: 11 files "
                    "include each other; at most 9",
                    f"src/base/f1.h:1: depth: {' > '.join([*names[1:], 'unisono/a.hpp'])}: 10 files "
                    "include each other; at most 9")

    def test_a_class_that_is_too_long(self):
        body = "class Long {\n" + "  int a();\n" * 99 + "};\n"
        long = "namespace unisono {\n" + body + "}  // namespace unisono\n"
        self.expect({"src/base/long.h": long, "include/unisono/other.hpp": long.replace("Long", "Wide")},
                    "src/base/long.h:2: size: unisono::Long has 101 lines; at most 100")

    def test_a_circle_of_files_of_the_tools(self):
        self.expect({"tools/unisono/cli/a.h": '#include "cli/b.h"\n', "tools/unisono/cli/b.h": "",
                     "tools/unisono/cli/b.cc": '#include "cli/b.h"\n#include "cli/a.h"\n'},
                    "tools/unisono/cli/a.h:1: circles: cli/a > cli/b > cli/a: take one of them apart")

    def test_a_header_that_includes_too_many(self):
        files = {f"src/base/f{i}.h": "" for i in range(11)}
        self.expect(files | {"src/base/all.h": "".join(f'#include "base/f{i}.h"\n' for i in range(11))},
                    "src/base/all.h:1: size: it includes 11 headers of the project; at most 10")

    def test_names_that_stand_for_several_types(self):
        types = "".join(f"struct T{i} {{}};\n" for i in range(11))
        files = {f"src/base/{one}.h": f"namespace {one} {{\n{types}}}  // namespace {one}\n"
                 for one in ("a", "b")}
        names = ", ".join(sorted(f"T{i}" for i in range(11)))
        self.expect(files, f"src:1: names: 11 names stand for several types each, at most 10: {names}")

    def test_nothing_to_check(self):
        found, status = check({})
        self.assertEqual(len(found), 1)
        self.assertEqual(status, 1)


class Right(unittest.TestCase):
    def test_a_clean_tree(self):
        found, status = check({
            "include/unisono/a.hpp": '#include <vector>\n#include "unisono/b.hpp"\n',
            "include/unisono/unisono.h": "#include <stdint.h>\n",
            "src/base/env.cc": '#include "base/env.h"\nauto v = std::getenv("RANK");\n',
            "src/comm/a.cc": '#include "algorithms/catalog.h"\n#include "engine/run.h"\n',
            # A test may use any layer.
            "src/engine/a_test.cc": '#include "algorithms/catalog.h"\n',
            "src/schedule/a.cc": "void all_reduce();  // class AllReduce\n",
            # Types with the same name that never meet, and a type that is defined apart from its
            # declaration.
            "tools/a.cc": "namespace unisono {\nnamespace {\nstruct A {\n};\n}  // namespace\n"
                          "struct B::A {\n};\nstruct C;\n}  // namespace unisono\n",
            "tools/b.h": "namespace unisono {\nstruct A {\n};\nstruct C {\n};\n}  // namespace unisono\n"
                         "namespace other {\nstruct C {\n};\n}  // namespace other\n",
            # The other libraries are spelt differently.
            "bench/peers/mpi.cc": "MPI_Allreduce();\n",
        })
        self.assertEqual(found, [])
        self.assertEqual(status, 0)


if __name__ == "__main__":
    unittest.main()
