"""Tests packaging/describe.py: its output for this tree, and the mistakes that it refuses."""
import json
import os
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import describe  # noqa: E402


class Tree(unittest.TestCase):
    """Copies the files that describe.py reads, so that tests can change them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in [*describe.VERSIONS, *describe.MINORS, "scripts/packages/build.txt", "viewer/package-lock.json",
                     "packaging/debian/control"]:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        shutil.copytree(ROOT / "tests/install/symbols", self.root / "tests/install/symbols")
        shutil.copytree(ROOT / "packaging/recipes", self.root / "packaging/recipes")
        self.archive = self.root / "unisono.tar.gz"
        self.archive.write_bytes(b"archive")
        os.environ["SOURCE_DATE_EPOCH"] = "86400"

    def change(self, name, old, new):
        text = (self.root / name).read_text()
        self.assertIn(old, text)
        (self.root / name).write_text(text.replace(old, new, 1))

    def refused(self, call, *words):
        with self.assertRaises(describe.Wrong) as caught:
            call()
        for word in words:
            self.assertIn(word, str(caught.exception))


class Versions(Tree):
    def test_all_files_name_the_same(self):
        self.assertRegex(describe.version(ROOT), r"^\d+\.\d+\.\d+$")

    def test_another_version_in_one_file(self):
        release = describe.version(ROOT)
        for name in {**describe.VERSIONS, **describe.MINORS}:
            if name == "CMakeLists.txt":
                continue
            with self.subTest(name):
                right = (self.root / name).read_text()
                self.change(name, release if name in describe.VERSIONS else "UNISONO_" + release.rpartition(".")[0],
                            "9.9.9" if name in describe.VERSIONS else "UNISONO_9.9")
                self.refused(lambda: describe.version(self.root), f"{name} 9.9", "CMakeLists.txt")
                (self.root / name).write_text(right)

    def test_a_file_without_a_version(self):
        (self.root / "CITATION.cff").write_text("title: unisono\n")
        self.refused(lambda: describe.version(self.root), "CITATION.cff")

    def test_released_when_it_has_a_date(self):
        release = describe.version(self.root)
        (self.root / "CHANGELOG.md").write_text(f"## {release} (unreleased)\n")
        self.assertFalse(describe.is_released(release, self.root))
        (self.root / "CHANGELOG.md").write_text(f"## {release} (2026-12-01)\n")
        self.assertTrue(describe.is_released(release, self.root))


class Notes(Tree):
    def test_only_the_section_of_this_version(self):
        release = describe.version(self.root)
        (self.root / "CHANGELOG.md").write_text(
            f"# Changelog\n\n## {release} (unreleased)\n\nnew\n\n### Run\n\n- more\n\n## 0.0.1 (2020-01-01)\n\nold\n")
        self.assertEqual(describe.notes(self.root), f"# unisono {release}\n\nnew\n\n### Run\n\n- more\n")

    def test_an_empty_section(self):
        release = describe.version(self.root)
        (self.root / "CHANGELOG.md").write_text(f"## {release} (unreleased)\n\n## 0.0.1 (2020-01-01)\n\nold\n")
        self.refused(lambda: describe.notes(self.root), release)


class Debian(Tree):
    def test_changelog(self):
        text = describe.changelog("trixie", self.root)
        self.assertIn(f"unisono ({describe.version(self.root)}-1~deb13) trixie;", text)
        self.assertTrue(text.endswith("Fri, 02 Jan 1970 00:00:00 +0000\n"), text)

    def test_an_unknown_suite(self):
        self.refused(lambda: describe.changelog("sarge", self.root), "sarge", "bookworm")

    def test_no_date(self):
        os.environ["SOURCE_DATE_EPOCH"] = "today"
        self.refused(lambda: describe.changelog("trixie", self.root), "SOURCE_DATE_EPOCH")

    def test_every_library_has_a_package_and_symbols(self):
        packages = set(re.findall(r"^Package: (.*)$", (ROOT / "packaging/debian/control").read_text(), re.MULTILINE))
        libraries = re.findall(r"^(lib\w+):", (ROOT / "src/layers.txt").read_text(), re.MULTILINE)
        self.assertEqual(len(libraries), 4)
        shutil.copy(ROOT / "packaging/debian/control", self.root)
        describe.fill_debian(self.root, "trixie", self.root)
        self.assertIn("\nStandards-Version: 4.7.2\n", (self.root / "control").read_text())
        for library in libraries:
            package = library.replace("_", "-") + "0"
            self.assertIn(package, packages)
            self.assertTrue((ROOT / f"packaging/debian/{package}.install").exists(), package)
            self.assertTrue((self.root / f"{package}.symbols").read_text().startswith(f"{library}.so.0 {package} "))

    def test_every_build_package_is_a_build_dependency(self):
        control = (ROOT / "packaging/debian/control").read_text()
        listed = re.findall(r"^(\S+)", (ROOT / "scripts/packages/build.txt").read_text(), re.MULTILINE)
        essential = {"g++", "libc6-dev"}  # build-essential
        depends = set(re.findall(r"[\w+.-]+", control[:control.index("Standards-Version")]))
        self.assertEqual([name for name in listed if name != "#" and name not in depends | essential], [])
        container = (ROOT / "packaging/Containerfile").read_text()
        self.assertEqual([name for name in listed if name != "#" and name not in container], [])

    def test_the_build_folder_changes_no_library(self):
        # An absolute path in a library changes its build id, even if the installation removes the
        # path.
        self.assertIn(" -DCMAKE_BUILD_RPATH_USE_ORIGIN=ON", (ROOT / "packaging/debian/rules").read_text())

    def test_symbols(self):
        (self.root / "tests/install/symbols/unisono_lab.txt").write_text("unisono::lab::one(int)\nunisono_two\n")
        release = describe.version(self.root)
        for name in {**describe.VERSIONS, **describe.MINORS}:
            text = (self.root / name).read_text()
            (self.root / name).write_text(text.replace(release, "1.4.2").replace(
                "UNISONO_" + release.rpartition(".")[0], "UNISONO_1.4"))
        self.assertEqual(describe.symbols("unisono_lab", self.root).splitlines(), [
            "libunisono_lab.so.1 libunisono-lab1 #MINVER#, libunisono-lab1 (<< 1.5~)",
            "* Build-Depends-Package: libunisono-dev",
            " UNISONO_1.4@UNISONO_1.4 1.4.2",
            ' (c++)"unisono::lab::one(int)@UNISONO_1.4" 1.4.2',
            " unisono_two@UNISONO_1.4 1.4.2"])

    def test_the_version_of_symbols_is_that_of_the_linker(self):
        for path in (ROOT / "cmake/install").glob("*.map"):
            self.assertIn(f"cmake/install/{path.name}", describe.MINORS)
            nodes = re.findall(r"^UNISONO_(\S+) \{", path.read_text(), re.MULTILINE)
            self.assertIn(nodes[1:], [[], [f"PRIVATE_{describe.version(ROOT)}"]], path.name)


class Sbom(Tree):
    def test_document(self):
        document = json.loads(describe.sbom(self.archive, self.root))
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        self.assertEqual(document["creationInfo"]["created"], "1970-01-02T00:00:00Z")
        names = {one["name"] for one in document["packages"]}
        self.assertLessEqual({"unisono", "openssl", "highway", "fmt", "svelte"}, names)
        known = {one["SPDXID"] for one in document["packages"]} | {"SPDXRef-DOCUMENT"}
        for relation in document["relationships"]:
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, known)
        self.assertEqual(document["packages"][0]["checksums"][0]["checksumValue"],
                         describe.digest(self.archive, "sha256"))

    def test_twice_the_same(self):
        self.assertEqual(describe.sbom(self.archive, self.root), describe.sbom(self.archive, self.root))

    def test_a_package_that_nobody_described(self):
        with (self.root / "scripts/packages/build.txt").open("a") as file:
            file.write("libnew-dev\n")
        self.refused(lambda: describe.sbom(self.archive, self.root), "libnew-dev")


class Recipes(Tree):
    def test_filled(self):
        out = self.root / "out"
        describe.recipes(self.archive, out, "https://example.org/unisono.tar.gz", self.root)
        texts = {path.relative_to(out).as_posix(): path.read_text() for path in out.rglob("*") if path.is_file()}
        self.assertEqual(sorted(texts), ["conda-forge/recipe.yaml", "spack/package.py", "vcpkg/portfile.cmake",
                                         "vcpkg/vcpkg.json"])
        for name, text in texts.items():
            self.assertNotRegex(text, "@[A-Z0-9]+@", name)
            self.assertIn(describe.version(self.root), text, name)
        self.assertIn(describe.digest(self.archive, "sha256"), texts["spack/package.py"])
        self.assertIn(describe.digest(self.archive, "sha512"), texts["vcpkg/portfile.cmake"])
        compile(texts["spack/package.py"], "package.py", "exec")
        json.loads(texts["vcpkg/vcpkg.json"])


class BestPractices(unittest.TestCase):
    def test_every_criterion_has_one_answer(self):
        rows = re.findall(r"^\| ([a-z]\w+) \| (.*?) \| ?(.*?) ?\|$", (ROOT / "docs/openssf.md").read_text(), re.MULTILINE)
        answers = {name: (answer, why) for name, answer, why in rows if name != "criterion"}
        self.assertEqual(len(answers), 67)  # the criteria of the passing level
        for name, (answer, why) in answers.items():
            self.assertIn(answer, ("met", "open", "not applicable", "when published"), name)
            self.assertTrue(why or answer == "when published", name)


if __name__ == "__main__":
    unittest.main()
