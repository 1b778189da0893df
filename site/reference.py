#!/usr/bin/env python3
"""The reference to the public names: those of include/ with their comments, those of Python with their docstrings.

    site/reference.py        prints the names that have neither, and fails if there are any

pages() makes the pages that site/build.py shows. A comment documents each declaration down to the
next blank line. Names in `detail`, private members, copies, moves and destructors need none.
"""
import ast
import html
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
PYTHON = ROOT / "python" / "src"

# The pages: file, title, and the headers or modules on it.
HEADER_PAGES = {
    "c": ("C", lambda header: header.suffix == ".h"),
    "cpp": ("C++: collectives", lambda header: header.suffix == ".hpp" and header.parent.name == "unisono"
            and header.stem not in ("device", "lab")),
    "cpp-parallel": ("C++: parallel layer", lambda header: header.parent.name == "parallel"),
    "cpp-device-lab": ("C++: GPU memory and predictions", lambda header: header.name in ("device.hpp", "lab.hpp")),
}
MODULE_PAGES = {
    "python": ("Python", ["unisono", "unisono.device", "unisono.expert", "unisono.model", "unisono.parallel",
                          "unisono.pipeline", "unisono.reshard", "unisono.schedule"]),
    "pytorch": ("PyTorch and engines", ["unisono.torch", "unisono.torch.transformers", "unisono.vllm",
                                        "unisono.sglang"]),
}


@dataclass
class Entry:
    """A name with its declaration. `text` is its own, or that of the entry with which it shares it."""

    name: str
    code: str
    text: str = ""
    kind: str = "function"
    heads_group: bool = True  # False: it shares the text of the entry before
    needs_text: bool = True
    is_special: bool = False  # needs no text, and is not shown
    members: list = field(default_factory=list)


# --- C and C++. The sources have one format, which scripts/check keeps: indentation shows the scope. ---

WORDS = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//.*$|/\*.*?(?:\*/|$)')
TYPE = re.compile(r"(?:typedef )?(struct|class|enum class|enum|union) "
                  r"(?:\[\[\w+\]\] )?(?:UNISONO_EXPORT )?(\w+)[^;()]*\{")
# Declarations that introduce no name of their own.
OTHERS = re.compile(r"(?:friend|static_assert|using namespace)\b|(?:class|struct)\b[^{]*;$")
SPECIAL = re.compile(r"(?:operator(?:=|==|<=>)|~\w+)$")


def bare(line):
    """A line without comments and the contents of strings."""
    return WORDS.sub(lambda match: '""' if match.group()[0] in "\"'" else "", line)


def without_comments(text):
    return re.sub(r'("(?:\\.|[^"\\])*")|\s*(?://.*|/\*.*?\*/)', lambda match: match.group(1) or "", text)


def comment_text(lines):
    text = [re.sub(r"^\s*(?://|/\*|\*/|\*)? ?", "", line) for line in lines]
    return "\n".join(re.sub(r"\s*\*/$", "", line) for line in text).strip("\n")


def name_of(code):
    """The name that a declaration, without its comments, introduces, and its kind."""
    if code.startswith("#define"):
        return code.split()[1].split("(")[0], "macro"
    flat = code.replace("<<", "")
    while (shorter := re.sub(r"<[^<>]*>", "", flat)) != flat:
        flat = shorter
    flat = re.sub(r"\[\[\w+\]\]|\bnoexcept\([^)]*\)", "", flat)
    flat = re.sub(r"^(?:template\s*)+(?:requires\s*\(.*?\)\s*\n)?", "", flat)
    for pattern, kind in ((r"typedef .*\(\*(\w+)\)", "type"), (r"[\w ]+\(\*(\w+)\)\(", "data"),
                          (r"typedef .*\b(\w+);$", "type"), (r"using (\w+) =", "type"),
                          (r"\s*concept (\w+) =", "concept")):
        if match := re.match(pattern, flat, re.DOTALL):
            return match.group(1), kind
    before = flat.split("=")[0] if "operator" not in flat else flat
    if match := re.search(r"(operator\W{1,3}|operator \w+|~?\w+)\s*\(", before):
        return match.group(1), "function"
    match = re.search(r"(\w+)\s*(?:\[\w*\])?\s*(?:=|;|\{)", flat)
    return (match.group(1) if match else flat), "data"


def without_body(code):
    """A function's declaration, without what it does."""
    if not code.endswith("}"):
        return code
    depth = 0
    for at in range(len(code) - 1, -1, -1):
        depth += {"}": 1, "{": -1}.get(code[at], 0)
        if depth == 0:
            break
    head = re.sub(r"\n\s+: .*|\) : \w+_\(.*", lambda match: ")" if match.group().startswith(")") else "", code[:at],
                  flags=re.DOTALL)
    return head.rstrip() + ";"


def is_special(name, code, owner):
    """Members that say all by themselves, and those that only the library calls."""
    arguments = re.sub(r"\s+", " ", code[code.find("(") + 1:code.find(")")])
    own = name == owner and re.fullmatch(rf"|(?:const )?{owner}(?:<\w+>)?&&?(?: \w+)?", arguments)
    return bool(SPECIAL.match(name) or own or (name == owner and "detail::" in arguments) or "= delete" in code)


def entry_of(lines, comment, is_shared, owner):
    """The entry of one declaration, below a comment or, if that `is_shared`, below another declaration."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    source = "\n".join(line[indent:] for line in lines)
    code = "\n".join(bare(line) for line in lines).strip()
    head = next((at for at, line in enumerate(lines) if not line.strip().startswith("template <")), 0)
    # A comment beside it: on the line on which it begins, or, of several lines, on which it ends.
    beside = (re.search(r"(?://|/\*)(?! NOLINT) ?(.*?)(?: ?\*/)?$", lines[head])
              or re.search(r"(?:; |} )\s*// (.*)$", lines[-1]))
    text = "" if is_shared else comment or (beside.group(1) if beside else "")
    is_explained = bool(comment or beside)
    if type_ := TYPE.match(re.sub(r"^template <.*>\n", "", code)):
        kind, name = type_.groups()
        if code.startswith("typedef"):
            name = re.search(r"(\w+);$", code).group(1)
        entry = Entry(name, source, text, kind, not is_shared, not is_explained)
        if kind in ("struct", "class"):
            entry.members = parse(lines[head + 1:-1], name, kind == "class")
        return entry
    name, kind = name_of(code)
    special = is_special(name, code, owner)
    if kind == "function":
        source = without_body(without_comments(source))
    elif not comment:
        text = ""  # it is shown beside the declaration
    return Entry(name, source, text, kind, not is_shared, not (is_explained or special), special)


def parse(lines, owner="", private=False):
    """The entries of a scope, and of the text between them (name "")."""
    entries, spaces, comment, shared, i = [], [], [], False, 0
    while i < len(lines):
        line = lines[i]
        word = line.strip()
        if not word:
            if comment and not shared and not private and "detail" not in spaces:
                entries.append(Entry("", "", comment_text(comment), "text"))
            comment, shared = [], False
            i += 1
            continue
        if word.startswith(("//", "/*")):
            comment, shared = [], False
            is_block = word.startswith("/*")
            while i < len(lines) and (is_block or lines[i].strip().startswith("//")):
                comment.append(lines[i])
                i += 1
                if is_block and "*/" in comment[-1]:
                    break
            continue
        first = i
        if word.startswith("#"):
            while lines[i].endswith("\\"):
                i += 1
            i += 1
            if not re.match(r"#define UNISONO_\w+_INIT\b|#define UNISONO_VERSION", word):
                continue
        elif match := re.match(r"(public|private|protected):", word):
            private, comment, shared = match.group(1) != "public", [], False
            i += 1
            continue
        elif match := re.match(r"namespace ([\w:]+) \{", word):
            spaces.append(match.group(1))
            comment, shared = [], False
            i += 1
            continue
        elif word.startswith(("}", 'extern "C"')):
            if word.startswith("}") and spaces:
                spaces.pop()
            i += 1
            continue
        else:
            depth = 0
            while True:
                code = bare(lines[i]).strip()
                depth += sum(code.count(one) for one in "([{") - sum(code.count(one) for one in ")]}")
                i += 1
                if (depth == 0 and code.endswith((";", "}"))) or i == len(lines):
                    break
        shown = lines[first:i]
        is_shared, shared = shared, bool(comment)
        if not (private or any("detail" in space for space in spaces)
                or OTHERS.match(bare(line).strip())):
            entries.append(entry_of(shown, comment_text(comment), is_shared, owner))
    return entries


def header_intro(text):
    """The comment that opens a header, and the lines after it."""
    lines = text.splitlines()
    end = next(i for i, line in enumerate(lines) if not line.lstrip().startswith(("//", "/*", "*")))
    return comment_text(lines[:end]), lines[end:]


def headers():
    return sorted(path for path in INCLUDE.rglob("*") if path.suffix in (".h", ".hpp"))


# --- Python. Extensions are described by their stubs, x.pyi. ---

def module_trees(module):
    """What a module's source and its stub say, as far as there are such files."""
    place = PYTHON / module.replace(".", "/")
    stems = [place / "__init__"] if place.is_dir() else [place]
    return [ast.parse(path.read_text()) for stem in stems for suffix in (".py", ".pyi")
            if (path := stem.with_suffix(suffix)).exists()]


def exported(tree):
    """The names of __all__, and those that only `import *` leaves out; constants in them are followed."""
    values = {target.id: node.value for node in tree.body if isinstance(node, ast.Assign)
              for target in node.targets if isinstance(target, ast.Name)}

    def follow(node):
        for each in node.elts:
            if isinstance(each, ast.Starred):
                yield from follow(values[each.value.id])
            else:
                yield each.value
    return [name for each in ("__all__", "_BUILTIN_NAMES") if each in values for name in follow(values[each])]


def absolute(module, node):
    """The module that an ImportFrom in `module` names."""
    if not node.level:
        return node.module
    package = module if (PYTHON / module.replace(".", "/")).is_dir() else module.rpartition(".")[0]
    return f"{package}.{node.module}" if node.module else package


def definitions(module, name):
    """Where a name of a module is defined: functions, classes or assignments; own ones first."""
    for tree in module_trees(module):
        for node in ast.walk(tree) if name.startswith("_") else tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                yield module, node
            elif isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == name:
                after = tree.body[tree.body.index(node) + 1:][:1]  # a constant's text is a string below it
                node.text = getattr(getattr(after[0], "value", None), "value", "") if after else ""
                yield module, node
            elif isinstance(node, ast.ImportFrom) and (absolute(module, node) or "").startswith("unisono"):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        yield from definitions(absolute(module, node), alias.name)
            elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
                if isinstance(node.value, ast.Attribute) and isinstance(node.value.value, ast.Name):
                    for _, owner in definitions(module, node.value.value.id):
                        yield from ((module, each) for each in getattr(owner, "body", ())
                                    if getattr(each, "name", "") == node.value.attr)


def lazily_from(module, name):
    """The module from which a package's __getattr__ takes a name: `import_module("x").name`."""
    for tree in module_trees(module):
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and any(getattr(each, "value", None) == name for each in ast.walk(node.test)):
                for each in ast.walk(node):
                    if isinstance(each, ast.Call) and getattr(each.func, "attr", "") == "import_module" and isinstance(
                            each.args[0], ast.Constant):
                        return each.args[0].value
    return None


def text_of(node):
    return getattr(node, "text", "") if isinstance(node, ast.AnnAssign) else ast.get_docstring(node)


LITERALS = re.compile(r',\s*((?:"(?:\\.|[^"\\])*"\s*)+)$')


def extension_texts():
    """The docstrings that the sources of the extension give: "name" or "Class.name" -> text."""
    texts = {}
    for path in sorted((PYTHON.parent / "csrc" / "core").glob("*.cc")):
        text, owner = path.read_text(), ""
        for match in re.finditer(r'\b(class_<.*?>|def\w*)\(\s*(?:\w+, )?"(\w+)"', text, re.DOTALL):
            depth, at = 1, match.end()
            while depth and at < len(text):
                word = re.compile(r'"(?:\\.|[^"\\])*"|[()]').search(text, at)
                depth += {"(": 1, ")": -1}.get(word.group(), 0)
                at = word.end()
            is_class = match.group(1).startswith("class_")
            owner = match.group(2) if is_class else owner
            is_chained = not is_class and re.search(r"[)>]\s*\.$", text[max(0, match.start() - 99):match.start()])
            name = f"{owner}.{match.group(2)}" if is_chained else match.group(2)
            if literals := LITERALS.search(text[match.end():at - 1]):
                texts[name] = ast.literal_eval(f"({literals.group(1)})")
    return texts


EXTENSION = extension_texts()


def signature(node, owner=""):
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(node)
    name = node.name if not owner else f"{owner}.{node.name}"
    if any(getattr(each, "id", "") == "property" for each in node.decorator_list):
        return f"{name}: {ast.unparse(node.returns)}" if node.returns else name
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^(?:self|cls)(?:, |$)", "", arguments)
    arguments = re.sub(r"^/, ", "", arguments)
    return f"{name}({arguments})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def python_entry(module, name):
    found = list(definitions(module, name))
    if not found and (other := lazily_from(module, name)):
        found = list(definitions(other, name))
    nodes = [node for _, node in found]
    text = next((doc for node in nodes if (doc := text_of(node))), EXTENSION.get(name, ""))
    if not nodes:
        return Entry(name, name, "", "data")
    if not isinstance(nodes[0], ast.ClassDef):
        typed = nodes[-1]  # the stub
        return Entry(name, signature(typed), text, "function", True, not text)
    methods = {}
    for source, node in list(found):
        for base in map(ast.unparse, node.bases):  # one of the extension, which is no public name by itself
            place, _, last = base.rpartition(".")
            found += [each for each in definitions("unisono._core" if place == "_core" else source, last)
                      if each[0] == "unisono._core"]
    for _, node in found:
        for each in node.body:
            if isinstance(each, ast.FunctionDef) and (not each.name.startswith("_") or each.name == "__init__"):
                methods.setdefault(each.name, []).append(each)
    start = methods.pop("__init__", None)
    entry = Entry(name, (signature(start[-1]).replace("__init__", name).removesuffix(" -> None") if start else name),
                  text, "class", True, not text)
    for method, forms in methods.items():
        doc = next((doc for each in forms if (doc := text_of(each))), None) or next(
            (EXTENSION[key] for _, node in found if (key := f"{node.name}.{method}") in EXTENSION), "")
        base = re.sub(r"_(?:async|plan)$", "", method)
        shares = not doc and base != method and base in methods
        needs = not doc and not shares
        entry.members.append(Entry(method, signature(forms[-1], name), doc, "function", not shares, needs))
    return entry


# --- Both: pages of Markdown, and the names without text. ---

LABEL = re.compile(r"^(Threads|Shapes|Units|In place|Errors(?:, on all ranks)?|Source|REQUIRES): ?")


def prose(text):
    """A comment as Markdown: labels begin paragraphs, indented lines are code."""
    paragraphs, code = [], []
    lines = []

    def flush():
        if lines:
            one = " ".join(lines)
            label = LABEL.match(one)
            head = f"**{label.group(1)}:** " if label else ""
            parts = re.split(r"(`[^`]+`)", one[label.end():] if label else one)
            paragraphs.append(head + "".join(
                part if i % 2 else re.sub(r"([*_\[\]#])", r"\\\1", html.escape(part, quote=False))
                for i, part in enumerate(parts)))
            lines.clear()
        if code:
            paragraphs.append("```text\n" + textwrap.dedent("\n".join(code)).rstrip() + "\n```")
            code.clear()

    for line in text.splitlines():
        if line.startswith("  ") and (code or not lines or lines[-1].endswith((":", "."))):
            if lines:
                flush()
            code.append(line)
        elif not line.strip():
            if code:
                code.append("")
            else:
                flush()
        else:
            if code or LABEL.match(line) or line.startswith("- "):
                flush()
            lines.append(line.strip())
    flush()
    return "\n\n".join(paragraphs)


def groups(entries):
    """Entries, those that share a text together."""
    made = []
    for entry in entries:
        if entry.is_special:
            continue
        if entry.heads_group or not made:
            made.append([entry])
        else:
            made[-1].append(entry)
    return made


def shown_code(entry):
    code = re.sub(r"\s*\{.*", ";", entry.code, count=1, flags=re.DOTALL) if entry.kind == "class" else entry.code
    for macro in ("UNISONO_EXPORT ", "[[nodiscard]] "):
        if code.startswith(macro):  # the other lines are aligned with this one
            code = re.sub(rf"\n {{{len(macro)}}}", "\n", code[len(macro):])
    return code.replace("UNISONO_EXPORT ", "").replace(" UNISONO_NOEXCEPT", "").rstrip()


def rendered(entries, language, level, owner="", joint="::"):
    out = []
    for group in groups(entries):
        first = group[0]
        if first.kind == "text":
            out.append(prose(first.text))
            continue
        names = list(dict.fromkeys(f"{owner}{joint}{each.name}" if owner else each.name for each in group))
        title = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        out.append(f"{'#' * level} `{title}`")
        out.append(f"```{language}\n" + "\n".join(shown_code(each) for each in group) + "\n```")
        out.append(prose(next((each.text for each in group if each.text), "")))
        for each in group:
            if each.kind == "class":  # a structure is shown whole
                out += rendered(each.members, language, level + 1, each.name, joint)
    return out


def summary(text):
    return re.split(r"(?<=\.)\s", " ".join(text.split("\n\n")[0].split()))[0].rstrip(":")


def header_entries():
    """Each header with its introduction and entries; headers that only include others have none."""
    for header in headers():
        intro, lines = header_intro(header.read_text())
        entries = parse(lines)
        for entry in entries:  # "// Team: several threads ..." is about the class Team
            entry.needs_text &= not intro.startswith(f"{entry.name}: ")
        if any(entry.name for entry in entries):
            yield header, intro, entries


def module_entries(module):
    trees = module_trees(module)
    names = [name for name in exported(trees[0]) if not module_trees(f"{module}.{name}")]
    return ast.get_docstring(trees[0]) or "", [python_entry(module, name) for name in names]


def pages():
    """The pages of the reference: path in the site -> Markdown."""
    made = {}
    index = ["# API reference",
             "The declarations and comments of the public headers, and the docstrings of the Python package. "
             "The guides say how to use them."]
    parts = list(header_entries())
    for page, (title, belongs) in HEADER_PAGES.items():
        out = [f"# {title}"]
        rows = ["| header | for |", "| --- | --- |"]
        for header, intro, entries in parts:
            if belongs(header):
                name = header.relative_to(INCLUDE).as_posix()
                anchor = re.sub(r"\W", "-", name)
                out += [f'## {name} {{ #{anchor} }}', prose(intro)]
                out += rendered(entries, "c" if header.suffix == ".h" else "cpp", 3)
                rows.append(f"| [{name}]({page}.md#{anchor}) | {prose(summary(intro))} |")
        made[f"reference/{page}.md"] = "\n\n".join(out) + "\n"
        index += [f"## {title}", "\n".join(rows)]
    for page, (title, modules) in MODULE_PAGES.items():
        out = [f"# {title}"]
        rows = ["| module | for |", "| --- | --- |"]
        for module in modules:
            intro, entries = module_entries(module)
            anchor = module.replace(".", "-")
            out += [f"## {module} {{ #{anchor} }}", prose(intro)]
            out += rendered(entries, "python", 3, joint=".")
            rows.append(f"| [{module}]({page}.md#{anchor}) | {prose(summary(intro))} |")
        made[f"reference/{page}.md"] = "\n\n".join(out) + "\n"
        index += [f"## {title}", "\n".join(rows)]
    made["reference/index.md"] = "\n\n".join(index) + "\n"
    return made


def undocumented():
    """(where, name) for each public name without a text, and the number of all names."""
    missing, count = [], 0

    def look(where, entries, owner=""):
        nonlocal count
        for entry in entries:
            if not entry.name:
                continue
            name = f"{owner}.{entry.name}" if owner else entry.name
            if entry.kind != "data" or not owner:
                count += 1
                if entry.needs_text:
                    missing.append(f"{where}: {name}")
            look(where, entry.members, name)

    for header, _, entries in header_entries():
        look(header.relative_to(ROOT).as_posix(), entries)
    for _, modules in MODULE_PAGES.values():
        for module in modules:
            look(module, module_entries(module)[1])
    return missing, count


def main():
    missing, count = undocumented()
    for one in missing:
        print(f"reference: no comment or docstring: {one}")
    print(f"reference: {count} public names, {len(missing)} without a text")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
