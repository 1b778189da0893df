#!/usr/bin/env python3
"""The Debian symbols files describe the libraries that are built: debian_symbols_test.py LIBRARY...

dpkg-gensymbols compares them; it fails where a name is new or gone. 77: there is no dpkg-gensymbols.
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import describe  # noqa: E402


def compare(library, text):
    """Returns the report of dpkg-gensymbols; empty if the file describes the library."""
    name = re.match(r"lib(\w+)", Path(library).name).group(1)
    package = f"lib{name.replace('_', '-')}{describe.version().split('.')[0]}"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "debian").mkdir()
        shutil.copy(ROOT / "packaging/debian/control", Path(folder) / "debian")
        (Path(folder) / "debian" / f"{package}.symbols").write_text(text)
        done = subprocess.run(["dpkg-gensymbols", "-c4", f"-p{package}", f"-v{describe.version()}-1", f"-e{library}",
                               "-Oout"], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def main():
    if not shutil.which("dpkg-gensymbols"):
        return 77
    findings = []
    for library in sys.argv[1:]:
        name = re.match(r"lib(\w+)", Path(library).name).group(1)
        text = describe.symbols(name)
        findings.append(compare(Path(library).resolve(), text))
        # Shows that a name missing from the library is found.
        if not compare(Path(library).resolve(), text + f" unisono_missing@UNISONO_0.1 {describe.version()}\n"):
            findings.append(f"{name}: a missing name is not found")
    print("\n".join(filter(None, findings)) or f"{len(sys.argv) - 1} libraries: right")
    return 1 if any(findings) else 0


if __name__ == "__main__":
    sys.exit(main())
