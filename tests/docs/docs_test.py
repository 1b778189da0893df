#!/usr/bin/env python3
"""Compares the documents with the program: docs_test.py CHECK --source ... prints the differences.

  programs   every C and C++ block with a main() builds, and runs right on two ranks
  output     a block that begins with "$ unisono ..." shows what that command prints (--update writes it)
  excerpts   C++ blocks of the guide to algorithms stand in src/algorithms as they are
  links      relative links lead to a file, and to a heading where they name one
  commands   every `unisono VERB --option` in a shell block exists
  recipes    the commands of the guides run as they are written, on stand-ins for programs and hosts; needs root
  tests      every test that docs/reliability.md names exists
  openings   no sentence begins with "Of", or with a "who" or "what" that is not a question: such sentences are hard to read
  pictures   docs/images shows what the program's schedules do (--update draws it)
  twins      x.zh.md has the blocks, the words of code and the links of x.md, and leads to Chinese where there is some
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile


def documents(source):
    return sorted(list(source.glob("*.md")) + list((source / "docs").rglob("*.md")))


def blocks(path):
    """Yields (language, text, line) of each fenced block."""
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.DOTALL | re.MULTILINE)
    for match in found:
        yield match.group(1), match.group(2), path.read_text()[:match.start()].count("\n") + 1


def all_blocks(source):
    for path in documents(source):
        for language, text, line in blocks(path):
            yield f"{path.relative_to(source)}:{line}", language, text


def clean_environment(library):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    kept["LD_LIBRARY_PATH"] = str(library.parent)
    kept["XDG_CONFIG_HOME"] = str(library.parent / "absent")  # no profile of this machine
    return kept


def libraries(first):
    """Returns libunisono and the libraries that link to it."""
    return [str(first), *(str(first.with_name(first.name.replace("libunisono", f"libunisono_{name}")))
                          for name in ("parallel", "device", "lab"))]


def programs(options):
    count = 0
    with tempfile.TemporaryDirectory() as scratch:
        for place, language, text in all_blocks(options.source):
            if language not in ("c", "cpp") or "#include <" not in text:
                continue
            count += 1
            runs = "int main(" in text
            file = pathlib.Path(scratch) / f"example{count}.{'c' if language == 'c' else 'cc'}"
            file.write_text(text)
            compiler = ([options.cc, "-std=c99"] if language == "c" else [options.cxx, "-std=c++20"])
            build = subprocess.run(
                compiler + ["-Wall", "-Wextra", "-Werror", "-fopenmp", "-I", str(options.source / "include"), str(file)]
                + (["-Wl,--as-needed", *libraries(options.library), "-o", str(file.with_suffix(""))] if runs
                   else ["-fsyntax-only"]),
                capture_output=True, text=True)
            if build.returncode != 0:
                yield f"{place}: does not build\n{build.stderr}"
            if build.returncode != 0 or not runs:
                continue
            job = [str(options.program), "run", "-n", "2", "--timeout", "50s", "--",
                   str(file.with_suffix(""))]
            result = subprocess.run(job, capture_output=True, text=True, timeout=600,
                                    env=clean_environment(options.library))
            if result.returncode != 0 or result.stderr:
                yield f"{place}: code {result.returncode}\n{result.stdout}{result.stderr}"
    if count < 4:
        yield f"only {count} programs were found"


def output(options):
    count = 0
    for place, _, text in all_blocks(options.source):
        command, _, shown = text.partition("\n")
        if not command.startswith("$ unisono "):
            continue
        count += 1
        result = subprocess.run([str(options.program)] + shlex.split(command)[2:],
                                capture_output=True, text=True, timeout=600, cwd=options.source,
                                env=clean_environment(options.library) | {"COLUMNS": "100"})
        printed = result.stdout + result.stderr
        if printed != shown and options.update:
            path = options.source / place.partition(":")[0]
            path.write_text(path.read_text().replace(text, f"{command}\n{printed}", 1))
        elif printed != shown:
            yield f"{place}: {command} prints\n{printed}"
    if count < 1:
        yield "no output was found"


def pictures(options):
    committed = options.source / "docs/images/ring.svg"
    with tempfile.TemporaryDirectory() as scratch:
        drawn = committed if options.update else pathlib.Path(scratch) / committed.name
        subprocess.run([sys.executable, str(options.source / "scripts/animate-schedule"), "all_reduce/ring", "-n", "4",
                        "--program", str(options.program), "-o", str(drawn)], check=True)
        if drawn.read_text() != committed.read_text():
            yield f"{committed.relative_to(options.source)}: scripts/animate-schedule draws another picture"


def excerpts(options):
    guide = options.source / "docs/guides/write-an-algorithm.md"
    files = [path.read_text() for path in (options.source / "src/algorithms").glob("*.cc")]
    found = [text for language, text, _ in blocks(guide) if language == "cpp"]
    for text in found:
        if not any(text in file for file in files):
            yield f"{guide.name}: no file of src/algorithms has\n{text}"
    if not found:
        yield f"{guide.name}: no excerpt was found"


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def links(options):
    for path in documents(options.source):
        text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, heading = target.partition("#")
            other = (path.parent / name).resolve() if name else path
            where = f"{path.relative_to(options.source)}: {target}"
            if not other.exists():
                yield f"{where}: no such file"
            elif heading and heading not in map(
                    anchor, re.findall(r"^#+ (.*)$", other.read_text(), re.MULTILINE)):
                yield f"{where}: no such heading"


def commands(options):
    table = json.loads(subprocess.run([str(options.program), "help", "--json"], check=True,
                                      capture_output=True, text=True).stdout)
    known = {command["name"]: {f"--{option['name']}" for option in command["options"]}
             for command in table["commands"]}
    count = 0
    for place, language, text in all_blocks(options.source):
        if language not in ("sh", ""):
            continue
        for verb, words in re.findall(r"(?:^|[ $/])unisono ([\w-]+)([^|#\n]*)", text):
            count += 1
            own = words.partition(" -- ")[0]
            if verb not in known:
                yield f"{place}: there is no unisono {verb}"
                continue
            for option in re.findall(r"(?<=\s)--[a-z][a-z-]*", own):
                if option not in known[verb]:
                    yield f"{place}: unisono {verb} has no {option}"
    if count < 5:
        yield f"only {count} commands were found"


# Blocks of the guides that are not run here, by a word in them, with their requirements.
NOT_RUN = {
    "cmake ": "a build", "make ": "a build", "scripts/": "a build", "pip ": "a build", "apt-get ": "packages", "podman ": "a container", "build/venv": "PyTorch", "bench/": "a build",
    "pkg-config": "an installation", "unisono tune": "minutes", "UNISONO_NETWORK=ucx": "UCX",
    "nccl_trace_rank_": "dumps of a job", "vllm serve": "vLLM", "unisono.vllm serve": "vLLM",
}
# Replacements in a guide's commands: fewer ranks and fewer attempts; a rank that --chaos kills may
# end the job.
STAND_INS = [(r"(node\d):\d+", r"\1:1"), (r"seq 20", "seq 1"), (r"^(.*--chaos.*?[^|])( *#.*)?$", r"\1 || true\2"),
             (r"unisono (view|learn)\b", r"unisono \1 --no-open"), (r" --serve \S+", ""), (r"\$TOKEN", "0123456789abcdef"),
             (r"-e 64M\b", "-e 1K"), (r"--metrics \d+", "--metrics -"),
             (r"^(.*llm --model \S+)(?=.* --prompt)", r"\1 --tokens 4"),
             (r"( \./app) +# on 10\.0\.0\.1$", r"\1 &"), (r"( \./app) +# on any other$", r"\1; wait $!")]
# Both hosts of the guides and this host are the loopback device of a separate network namespace, in
# which other jobs of this machine are invisible.
HOSTS = """
mount --bind {hosts} /etc/hosts
mount -t tmpfs none /dev/shm
mkdir -p /run/netns
mount -t tmpfs none /run/netns
ip link set lo up
ip addr add 10.0.0.1/8 dev lo
cd {folder}
. {script}
"""
APP = """#!/bin/sh
exec unisono bench all_reduce -b 8 -e 8 --time-per-row 1ms
"""
# Files of the reader, and the files of the repository or of its tests that replace them.
FILES = {
    "all_reduce_perf.log": "tests/fuzz/seeds/benchmark_log/good_nccl_tests.log", "osu.txt": "tests/fuzz/seeds/benchmark_log/good_osu.txt",
    "measured.csv": "tests/data/nccl/measured.csv", "nccl.log": "tests/fuzz/seeds/imports/good_nccl.log",
    "step.json": "tests/fuzz/seeds/step/good_tensor_parallel.json", "theirs.csv": "tests/fuzz/seeds/pipeline/good_two_ranks.csv",
}
# Starts two ranks with the variables of a launcher, whose options precede the program.
LAUNCHER = """#!{python}
import os, sys
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
shared = {{
    "torchrun": {{"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}},
    "mpirun": {{"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "7",
               "OMPI_MCA_orte_precondition_transports": "82df4613ae7d60bd-82df4613ae7d60be"}},
    "mpiexec.hydra": {{"PMI_SIZE": "2", "MPI_LOCALNRANKS": "2", "PMI_PORT": "node1:1"}},
    "srun": {{"SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "1",
             "SLURM_STEP_NODELIST": "node1"}}}}[name]
rank = {{"torchrun": "RANK", "mpirun": "OMPI_COMM_WORLD_RANK", "mpiexec.hydra": "PMI_RANK", "srun": "SLURM_PROCID"}}[name]
is_python = name == "torchrun"
while words[0].startswith("-"):
    option = words.pop(0)
    is_python &= option != "--no-python"
    value = "" if option == "--no-python" else words.pop(0)
    if option == "--master-addr":
        shared["MASTER_ADDR"] = value
    elif option == "-x":
        shared.update([value.split("=")])
words = [sys.executable] * is_python + words
started = [os.spawnvpe(os.P_NOWAIT, words[0], words, os.environ | shared | {{rank: str(one)}}) for one in range(2)]
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in started))
"""
# The words after the host are the command to run.
SSH = """#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
shift
exec "$@"
"""


def place_stand_ins(folder, options):
    launcher = LAUNCHER.format(python=sys.executable)
    launchers = [(f"bin/{name}", launcher) for name in ("torchrun", "mpirun", "mpiexec.hydra", "srun")]
    schedule = next(text for language, text, _ in blocks(options.source / "docs/guides/bring-a-schedule.md") if language == "json")
    traces = [(f"trace.{rank}.json", json.dumps(trace_of(rank))) for rank in range(2)]
    for name, text in (("app", APP), ("train", APP), ("bin/ssh", SSH), ("bin/kubectl", "#!/bin/sh\ncat >/dev/null\n"),
                       ("program.py", ""), ("train.py", 'import os\nos.execv("./app", ["./app"])\n'),
                       ("job-token", "0123456789abcdef\n"), ("hosts", "127.0.0.1 localhost node1 node2\n"),
                       ("line.json", schedule), ("mine.json", schedule), *launchers, *traces):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    for name, source in FILES.items():
        (folder / name).write_bytes((options.source / source).read_bytes())
    (folder / "bin/unisono").symlink_to(options.program)
    for name in ("examples", "tests"):
        (folder / name).symlink_to(options.source / name)
    return place_model(folder, options)


def place_model(folder, options):
    """Places a small model with random weights, and the program that runs it; False if it was not built."""
    program = options.program.parents[2] / "examples/llm/llm"
    if not program.exists():
        return False
    sys.path.insert(0, str(options.source / "tests/llm"))
    import made_up
    import made_up_encoder
    made_up.write_gguf(folder / "my.gguf", made_up.tensors(7))
    built = folder / "build/release/examples/llm"
    built.mkdir(parents=True)
    (folder / "build/models").mkdir()
    made_up_encoder.write_folder(folder / "build/models/minilm", made_up_encoder.tensors(7))
    for place in (built, folder / "bin"):
        (place / "llm").symlink_to(program)
    return True


def trace_of(rank):
    """Returns the trace of PyTorch's profiler for two collectives on the CPU."""
    calls = [{"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "ts": 1000 * i, "dur": 200,
              "args": {"Input Dims": [[1000]], "Input type": ["float"]}} for i in range(2)]
    return {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": calls}


def recipes(options):
    if os.geteuid() != 0:
        print("skipped: run as root, with iproute2, to run the commands of docs/guides in a network of their own")
        sys.exit(77)
    ran = 0
    for path in sorted((options.source / "docs/guides").glob("*.md")):
        if path.name.endswith(".zh.md"):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            has_model = place_stand_ins(folder, options)
            for language, text, line in blocks(path):
                needs_model = "llm --model" in text and not has_model
                if language != "sh" or needs_model or any(word in text for word in NOT_RUN):
                    continue
                ran += 1
                for pattern, stand_in in STAND_INS:
                    text = re.sub(pattern, stand_in, text, flags=re.MULTILINE)
                (folder / "script").write_text("set -e\n" + text)
                hosts = HOSTS.format(hosts=folder / "hosts", folder=folder, script=folder / "script")
                done = subprocess.run(
                    ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-ec", hosts], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True, errors="replace", timeout=1200,
                    env=clean_environment(options.library) | {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder)})
                if done.returncode != 0:
                    yield f"{path.relative_to(options.source)}:{line}: code {done.returncode} of\n{text}{done.stdout}"
    if ran < 45:
        yield f"only {ran} blocks were run"


def tests(options):
    text = (options.source / "docs/reliability.md").read_text()
    sources = "".join(path.read_text() for folder in ("tests", "src")
                      for path in (options.source / folder).rglob("*_test.cc"))
    written = {f"{suite}.{name}" for suite, name in
               re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s+(\w+)\)", sources, re.MULTILINE)}
    named = re.findall(r"`(\w+\.[A-Z]\w*\*?|\w+\.\*)`", text)
    for name in named:
        if not any(one == name or (name[-1] == "*" and one.startswith(name[:-1])) for one in written):
            yield f"docs/reliability.md: no test is called {name}"
    scripts = set(re.findall(r"reliability/(\w+)", text)) - {"x", "x_test"}
    for name in scripts:
        if not (options.source / f"tests/reliability/{name}_test.py").exists():
            yield f"docs/reliability.md: there is no tests/reliability/{name}_test.py"
    if len(named) < 40 or len(scripts) < 6:
        yield f"only {len(named)} tests and {len(scripts)} scripts were found"


def openings(options):
    table = subprocess.run([str(options.program), "help", "--json"], check=True, capture_output=True, text=True).stdout
    texts = {"unisono help": "\n".join(re.findall(r'"(?:help|summary|what)": "(.*)"', table))}
    for path in documents(options.source):
        if not path.name.endswith(".zh.md") and "internals" not in path.parts:
            text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
            texts[str(path.relative_to(options.source))] = text
    begins = re.compile(r"(?:^|[.;:|]\s+|\n\s*\n)((?:Of|Who) [a-z]\w*|What (?:is|was|has|did|does) [a-z]\w*)(?![^.:]*\?)")
    for place, text in texts.items():
        for found in begins.finditer(text):
            yield f"{place}: a sentence begins with '{found.group(1)}'"


def code_and_links(path):
    """Returns the blocks, code words and linked files of a document; links of a twin count as the English ones."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    words = {" ".join(word.split()) for word in re.findall(r"`([^`]+)`", text)}
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)}
    return ({block for _, block, _ in blocks(path)}, words | {link.replace(".zh.md", ".md") for link in links}, links)


def twins(options):
    count = 0
    for chinese in documents(options.source):
        if not chinese.name.endswith(".zh.md"):
            continue
        count += 1
        english = chinese.with_name(chinese.name.replace(".zh.md", ".md"))
        shown, words, _ = code_and_links(english)
        shown_in_chinese, words_in_chinese, links = code_and_links(chinese)
        where = chinese.relative_to(options.source)
        for block in sorted(shown - shown_in_chinese):
            yield f"{where}: {english.name} has another block\n{block}"
        for word in sorted(words - words_in_chinese - {chinese.name.replace(".zh.md", ".md")}):
            yield f"{where}: {english.name} says {word}"
        for link in links - {english.name}:
            if link.endswith(".md") and (chinese.parent / link.replace(".md", ".zh.md")).exists():
                yield f"{where}: {link} is there in Chinese"
    if count < 9:
        yield f"only {count} documents in Chinese were found"


CHECKS = {"programs": programs, "output": output, "pictures": pictures, "excerpts": excerpts, "links": links,
          "commands": commands, "recipes": recipes, "tests": tests, "twins": twins, "openings": openings}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=CHECKS)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    options = parser.parse_args()
    findings = list(CHECKS[options.check](options))
    print("\n".join(findings) or f"{options.check}: right")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
