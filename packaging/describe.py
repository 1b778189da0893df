#!/usr/bin/env python3
"""Writes the parts of a release that follow from the sources (scripts/release).

  describe.py version                       prints the version; fails where files name different ones
  describe.py notes                         prints the section of CHANGELOG.md for this version
  describe.py debian FOLDER --suite SUITE   fills FOLDER, which has packaging/debian: changelog and symbols
  describe.py sbom ARCHIVE                  prints an SPDX 2.3 document of the source archive
  describe.py recipes ARCHIVE OUT --url URL fills packaging/recipes with the hashes of the archive

Dates are those of SOURCE_DATE_EPOCH, so that the same sources give the same files.
"""
import argparse
import datetime
import email.utils
import hashlib
import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Files that hold the version, and the pattern to find it.
VERSIONS = {
    "CMakeLists.txt": r"^project\(unisono VERSION (\S+)",
    "python/pyproject.toml": r'^version = "([^"]+)"',
    "CITATION.cff": r'^version: "?([0-9.]+)',
    "CHANGELOG.md": r"^## ([0-9.]+) \(",
    "python/src/unisono/__init__.py": r'^__version__ = "([^"]+)"',
    "docs/guides/install.md": r"unisono-([0-9.]+)(?:-cp|\.tar)",
    "docs/guides/install.zh.md": r"unisono-([0-9.]+)(?:-cp|\.tar)",
}
# Files that hold only the first two numbers, the version of the interface.
MINORS = {
    "docs/abi.md": r"`UNISONO_([0-9.]+)`",
    **{f"cmake/install/{library}.map": r"^UNISONO_([0-9.]+) \{"
       for library in ("unisono", "unisono_device", "unisono_lab", "unisono_parallel")},
}

# The Debian releases that packages are built for: the part of the version that orders them, and the
# newest policy that their lintian knows.
SUITES = {"bookworm": ("deb12", "4.6.2"), "trixie": ("deb13", "4.7.2")}

# Software that the build needs from outside (scripts/packages/build.txt): SPDX name, licence, and how unisono uses it.
OUTSIDE = {
    "libcli11-dev": ("CLI11", "BSD-3-Clause", "BUILD_DEPENDENCY_OF", "headers compiled into the program"),
    "libexpat1-dev": ("expat", "MIT", "DEPENDENCY_OF", "linked to by the program"),
    "libfmt-dev": ("fmt", "MIT", "DEPENDENCY_OF", "linked to by the program"),
    "libhwloc-dev": ("hwloc", "BSD-3-Clause", "DEPENDENCY_OF", "linked to by the program"),
    "libhwy-dev": ("highway", "Apache-2.0 OR BSD-3-Clause", "DEPENDENCY_OF", "linked to by the libraries"),
    "libsimdjson-dev": ("simdjson", "Apache-2.0", "DEPENDENCY_OF", "linked to by the program"),
    "libssl-dev": ("openssl", "Apache-2.0", "DEPENDENCY_OF", "linked to; libssl is loaded for TLS"),
    "libucx-dev": ("ucx", "BSD-3-Clause", "OPTIONAL_DEPENDENCY_OF", "loaded for UCX networks"),
    "nlohmann-json3-dev": ("nlohmann-json", "MIT", "BUILD_DEPENDENCY_OF", "headers compiled in"),
    "zlib1g-dev": ("zlib", "Zlib", "DEPENDENCY_OF", "linked to by the program"),
}
# Packages of that list that only build.
BUILDERS = {"cmake", "g++", "libc6-dev", "ninja-build"}


class Wrong(Exception):
    """The sources contradict each other."""


def version(root=ROOT):
    found = {}
    for name, pattern in {**VERSIONS, **MINORS}.items():
        values = re.findall(pattern, (root / name).read_text(), re.MULTILINE)
        if not values:
            raise Wrong(f"{name} names no version")
        # The changelog and the policy mention other versions after their own.
        found[name] = values if name.startswith("docs/guides/") else values[:1]
    release = found["CMakeLists.txt"][0]
    minor = re.match(r"\d+\.\d+", release).group()
    wrong = [f"{name} {value}" for name, values in found.items() for value in values
             if value != (minor if name in MINORS else release)]
    if wrong:
        raise Wrong(f"these files name other versions than CMakeLists.txt, which has {release}: {', '.join(wrong)}")
    return release


def is_released(wanted, root=ROOT):
    """Whether CHANGELOG.md gives the version a date."""
    return re.search(rf"^## {re.escape(wanted)} \(\d{{4}}-\d\d-\d\d\)$", (root / "CHANGELOG.md").read_text(),
                     re.MULTILINE) is not None


def notes(root=ROOT):
    wanted = version(root)
    text = (root / "CHANGELOG.md").read_text()
    match = re.search(rf"^## {re.escape(wanted)} \(.*?\)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if not match or not match.group(1).strip():
        raise Wrong(f"CHANGELOG.md says nothing of {wanted}")
    return f"# unisono {wanted}\n\n{match.group(1).strip()}\n"


def date():
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not epoch.isdigit():
        raise Wrong("set SOURCE_DATE_EPOCH to the date of the release, in seconds since 1970")
    return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc)


def changelog(suite, root=ROOT):
    if suite not in SUITES:
        raise Wrong(f"no packages are made for {suite}; there are: {', '.join(SUITES)}")
    maintainer = re.search(r"^Maintainer: (.*)$", (root / "packaging/debian/control").read_text(), re.MULTILINE)
    return (f"unisono ({version(root)}-1~{SUITES[suite][0]}) {suite}; urgency=medium\n\n"
            f"  * Release {version(root)}: see CHANGELOG.md.\n\n"
            f" -- {maintainer.group(1)}  {email.utils.format_datetime(date())}\n")


def symbols(library, root=ROOT):
    """The Debian symbols file of "unisono" or "unisono_parallel" from tests/install/symbols."""
    release = version(root)
    minor = re.match(r"\d+\.\d+", release).group()
    major, after = minor.split(".")
    package = "lib" + library.replace("_", "-") + major
    # Before 1.0 the next minor version may break programs, and its symbols have another version.
    upper = f"{package} (<< {int(major)}.{int(after) + 1}~)"
    lines = [f"lib{library}.so.{major} {package} #MINVER#, {upper}",
             "* Build-Depends-Package: libunisono-dev",
             f" UNISONO_{minor}@UNISONO_{minor} {release}"]
    private = f"UNISONO_PRIVATE_{release}"
    if private in (root / f"cmake/install/{library}.map").read_text():
        lines.append(f" (symver){private} {release}")
    for name in (root / f"tests/install/symbols/{library}.txt").read_text().splitlines():
        spelled = f"{name}@UNISONO_{minor}"
        lines.append(f" {spelled} {release}" if re.fullmatch(r"\w+", name) else f' (c++)"{spelled}" {release}')
    return "\n".join(lines) + "\n"


def fill_debian(folder, suite, root=ROOT):
    (folder / "changelog").write_text(changelog(suite, root))
    control = folder / "control"
    control.write_text(control.read_text().replace("@STANDARDS@", SUITES[suite][1]))
    major = version(root).split(".")[0]
    for path in sorted((root / "tests/install/symbols").glob("*.txt")):
        package = "lib" + path.stem.replace("_", "-") + major
        (folder / f"{package}.symbols").write_text(symbols(path.stem, root))


def digest(path, kind):
    return hashlib.new(kind, Path(path).read_bytes()).hexdigest()


def npm_packages(root):
    """What the page of `unisono view` contains of others: the run time of its framework."""
    lock = json.loads((root / "viewer/package-lock.json").read_text())
    entry = lock["packages"]["node_modules/svelte"]
    return [("svelte", entry["version"], entry.get("license", "NOASSERTION"))]


def sbom(archive, root=ROOT):
    release = version(root)
    listed = [line.split()[0] for line in (root / "scripts/packages/build.txt").read_text().splitlines()
              if line.strip() and not line.startswith("#")]
    unknown = sorted(set(listed) - set(OUTSIDE) - BUILDERS)
    if unknown:
        raise Wrong(f"packaging/describe.py does not say how unisono uses {', '.join(unknown)}")
    hashed = digest(archive, "sha256")

    def package(name, licence, comment, **more):
        return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name,
                "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": licence,
                "licenseDeclared": licence, "copyrightText": "NOASSERTION", "comment": comment} | more

    main = package("unisono", "Apache-2.0", "the source archive", versionInfo=release,
                   packageFileName=Path(archive).name,
                   checksums=[{"algorithm": "SHA256", "checksumValue": hashed}])
    packages = [main]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                  "relatedSpdxElement": main["SPDXID"]}]

    def relate(one, how):
        packages.append(one)
        # "x DEPENDENCY_OF unisono", but "unisono CONTAINS x".
        pair = [one["SPDXID"], main["SPDXID"]] if how.endswith("_OF") else [main["SPDXID"], one["SPDXID"]]
        relations.append({"spdxElementId": pair[0], "relationshipType": how, "relatedSpdxElement": pair[1]})

    def reference(purl):
        return [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]

    for debian in sorted(set(listed) & set(OUTSIDE)):
        name, licence, how, comment = OUTSIDE[debian]
        relate(package(name, licence, comment, externalRefs=reference(f"pkg:deb/debian/{debian}")), how)
    for name, number, licence in npm_packages(root):
        relate(package(name, licence, "compiled into the page of `unisono view`", versionInfo=number,
                       externalRefs=reference(f"pkg:npm/{name}@{number}")), "CONTAINS")
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"unisono-{release}", "documentNamespace": f"https://spdx.org/spdxdocs/unisono-{release}-{hashed}",
        "creationInfo": {"created": date().strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: unisono-scripts-release"]},
        "packages": packages, "relationships": relations}, indent=2) + "\n"


def recipes(archive, out, url, root=ROOT):
    values = {"VERSION": version(root), "URL": url, "SHA256": digest(archive, "sha256"),
              "SHA512": digest(archive, "sha512")}
    for source in sorted((root / "packaging/recipes").rglob("*")):
        if not source.is_file():
            continue
        text = re.sub(r"@(\w+)@", lambda match: values.get(match.group(1), match.group(0)), source.read_text())
        target = out / source.relative_to(root / "packaging/recipes")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n", 2)[2])
    parser.add_argument("what", choices=["version", "notes", "debian", "sbom", "recipes"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("--url", default="")
    options = parser.parse_args()
    wanted = {"version": 0, "notes": 0, "debian": 1, "sbom": 1, "recipes": 2}[options.what]
    if len(options.files) != wanted:
        parser.error(f"{options.what} takes {wanted} files")
    try:
        if options.what == "version":
            print(version())
        elif options.what == "notes":
            print(notes(), end="")
        elif options.what == "debian":
            fill_debian(options.files[0], options.suite)
        elif options.what == "sbom":
            print(sbom(options.files[0]), end="")
        else:
            recipes(*options.files, options.url)
    except (Wrong, OSError) as error:
        print(f"describe: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
