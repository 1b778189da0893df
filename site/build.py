"""Builds the documents' site into build/site: docs/, the READMEs, the reference, and the page of `unisono view`.

    site/build.py --program build/release/tools/unisono/unisono [--serve]

The documents are those of the repository. A line `<!-- figure: #parallel?story=tensor -->` in one becomes
the page itself, open there, in a frame; readers of the plain file see nothing of it. `x.zh.md` is the
Chinese form of `x.md`; where there is none, the English one is shown. A link that leads nowhere ends
the build with an error.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import reference
from links import broken_links

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "bench" / "report"))
import history

FIGURE = re.compile(r"^<!-- figure: (#\S+) -->$", re.MULTILINE)
HEADING = re.compile(r"^##+ .+$", re.MULTILINE)
CODE = re.compile(r"(```.*?```)", re.DOTALL)
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)#\s]+)(#[^)\s]*)?\)")
TOP = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")  # beside README.md
STAGED = ROOT / "build" / "site-docs"


def staged_place(path):
    """Where a file of the repository lies in the site; None: it is not in it."""
    name = path.relative_to(ROOT).as_posix()
    if name in ("README.md", "README.zh.md"):
        return name.replace("README", "index")
    if name in TOP:
        return name
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return None


def in_english(name):
    return name.replace(".zh.md", ".md")


def with_links(text, source):
    """Links follow their files; what is not in the site is told by its name."""
    place = pathlib.PurePosixPath(staged_place(source))

    def follow(match):
        label, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        if re.match(r"[a-z]+:", target):
            return match.group()
        found = (source.parent / target).resolve()
        if not found.exists():
            raise SystemExit(f"site: {source.relative_to(ROOT)}: {target} does not exist")
        if found != source and in_english(str(found)) == in_english(str(source)):
            return ""  # the same in the other language: the site has a switch
        staged = staged_place(found)
        if staged is None or found.is_dir():
            return label[1:-1].strip("`") if label.startswith("!") else label[1:-1]
        # The site finds a page in the reader's language by its English name.
        return f"{label}({in_english(os.path.relpath(staged, place.parent))}{anchor})"

    # Code is no text: an index and a call look like a link there.
    parts = CODE.split(text)
    return "".join(part if i % 2 else LINK.sub(follow, part) for i, part in enumerate(parts))


def headings(text):
    """Where headings begin, and what they are: '## Rules'."""
    parts = CODE.split(text)
    places = []
    at = 0
    for i, part in enumerate(parts):
        if i % 2 == 0:
            places += [(at + each.start(), each.group()) for each in HEADING.finditer(part)]
        at += len(part)
    return places


def with_english_anchors(text, english):
    """Pages that have no Chinese form link to headings by their English names."""
    own, others = headings(text), headings(pathlib.Path(english).read_text())
    if [len(each.split()[0]) for _, each in own] != [len(each.split()[0]) for _, each in others]:
        return text
    slugs = [re.sub(r"[^\w\- ]", "", each.lstrip("# ").lower()).strip().replace(" ", "-") for _, each in others]
    for i, (place, _) in reversed(list(enumerate(own))):
        if slugs.index(slugs[i]) == i:
            text = f'{text[:place]}<span id="{slugs[i]}"></span>\n\n{text[place:]}'
    return text


def with_figures(text, place):
    depth = len(pathlib.PurePosixPath(place).parts) - 1
    language = "zh" if place.endswith(".zh.md") else "en"
    # A page of another language lies in the language's folder.
    page = "../" * (depth + (1 if language == "zh" else 0)) + "unisono.html"

    def frame(match):
        hash_ = match.group(1)
        joint = "&" if "?" in hash_ else "?"
        return (f'<iframe class="figure" loading="lazy" title="unisono view {hash_}" '
                f'src="{page}{hash_}{joint}bare=1&lang={language}"></iframe>\n')

    return FIGURE.sub(frame, text)


def with_tabs(text):
    """Each `###` section of the guide to installing becomes a tab."""
    lines, inside, in_code = [], False, False
    for line in text.splitlines():
        in_code ^= line.startswith("```")
        if not in_code and line.startswith("### "):
            inside = True
            lines.append(f'=== "{line[4:]}"')
            continue
        inside = inside and (in_code or not line.startswith("## "))
        lines.append(f"    {line}" if inside and line else line)
    return "\n".join(lines) + "\n"


def stage(program):
    shutil.rmtree(STAGED, ignore_errors=True)
    documents = [ROOT / "README.md", ROOT / "README.zh.md", *(ROOT / name for name in TOP),
                 *sorted((ROOT / "docs").rglob("*.md"))]
    for source in documents:
        place = staged_place(source)
        target = STAGED / place
        target.parent.mkdir(parents=True, exist_ok=True)
        text = with_links(source.read_text(), source)
        if place.startswith("guides/install."):
            text = with_tabs(text)
        chinese = source.with_suffix(".zh.md")
        if place.endswith(".zh.md"):
            text = with_english_anchors(text, in_english(str(source)))
        elif FIGURE.search(text) and not chinese.exists():
            # Shown in the Chinese folder too, from where the page lies one folder further up.
            target.with_suffix(".zh.md").write_text(with_figures(text, staged_place(source)[:-3] + ".zh.md"))
        target.write_text(with_figures(text, place))
    for image in (path for path in (ROOT / "docs").rglob("*") if path.suffix in (".png", ".svg")):
        target = STAGED / image.relative_to(ROOT / "docs")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(image, target)
    kept = ROOT / "docs" / "benchmarks"
    (STAGED / "benchmarks.md").write_text(history.page(kept))
    for record in kept.glob("*.json"):
        (STAGED / "benchmarks").mkdir(exist_ok=True)
        shutil.copyfile(record, STAGED / "benchmarks" / record.name)
    (STAGED / "reference").mkdir()
    for place, text in reference.pages().items():
        (STAGED / place).write_text(text)
    shutil.copyfile(ROOT / "site" / "extra.css", STAGED / "extra.css")
    subprocess.run([program, "view", "--no-open", "--quiet", "-o", STAGED / "unisono.html"],
                   check=True)


def version():
    """The line below each page: the release, or the commit after it."""
    number = subprocess.run([ROOT / "packaging/describe.py", "version"], check=True, capture_output=True, text=True).stdout.strip()
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--tags", "--match", "v*"],
                          check=False, capture_output=True, text=True)
    commit = done.stdout.strip()
    return f"unisono {number}" + (f", not released, commit {commit}" if commit and commit != f"v{number}" else "")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--program", required=True, help="the built unisono")
    options.add_argument("--serve", action="store_true", help="show it at http://127.0.0.1:8000")
    given = options.parse_args()
    stage(given.program)
    words = ["serve"] if given.serve else ["build", "--strict", "--quiet"]
    mkdocs = [sys.executable, "-m", "mkdocs", *words, "-f", ROOT / "site" / "mkdocs.yml"]
    # The theme's note about its own future is no news to our readers.
    environment = {**os.environ, "SITE_VERSION": version(), "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    if subprocess.run(mkdocs, env=environment).returncode != 0:
        raise SystemExit(1)
    if not given.serve:
        broken = broken_links(ROOT / "build" / "site")
        if broken:
            raise SystemExit("site: these links lead nowhere:\n  " + "\n  ".join(broken))
        print("build/site: put it on any static host, or open index.html; its search needs a host, or --serve")


if __name__ == "__main__":
    main()
