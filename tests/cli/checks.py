"""What cannot be compared with a file: one function a check; it returns what is wrong, or None."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import xml.etree.ElementTree

FILES = pathlib.Path(__file__).resolve().parent / "files"
COMMANDS = ("run", "bench", "tune", "sim", "topo", "show", "view", "verify", "list", "doctor", "env", "completion", "help")
COLLECTIVES = {"broadcast", "scatter", "gather", "reduce", "all_reduce", "all_gather",
               "reduce_scatter", "all_to_all", "barrier", "scatter_v", "gather_v", "all_gather_v",
               "reduce_scatter_v", "all_to_all_v", "send_recv"}
QUICK = ["-b", "8", "-e", "8K", "-f", "32", "--iters", "5"]


def output(program, words, environment, **more):
    return subprocess.run([str(program)] + words, env=environment, capture_output=True, text=True,
                          timeout=60, **more)


def marked(mark):
    """Processes that have the mark in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if mark.encode() in file.read():
                        found.append(int(entry))
            except OSError:
                pass
    return found


def wait_for_none(mark, seconds=5):
    end = time.time() + seconds
    while marked(mark) and time.time() < end:
        time.sleep(0.02)
    return marked(mark)


def tables_agree(program, scratch, environment):
    """Help, man page and the three completions know the same options as the parser."""
    table = json.loads(output(program, ["help", "--json"], environment).stdout)
    scripts = {shell: output(program, ["completion", shell], environment).stdout
               for shell in ("bash", "zsh", "fish")}
    names = [command["name"] for command in table["commands"]]
    problems = [f"{name} is missing" for name in COMMANDS if name not in names]
    overview = output(program, ["help"], environment).stdout
    for command in table["commands"]:
        name = command["name"]
        help_text = output(program, ["help", name], environment).stdout
        man = output(program, ["help", name, "--man"], environment).stdout.replace("\\-", "-")
        if len(command["examples"]) != 3 or help_text.find("examples") > help_text.find("usage"):
            problems.append(f"{name}: three examples must come first")
        if f"  {name} " not in overview:
            problems.append(f"{name}: not in the overview")
        fish = "\n".join(line for line in scripts["fish"].splitlines()
                         if f"from {name}'" in line)
        zsh = scripts["zsh"].partition(f"    {name})\n")[2].partition(";;")[0]
        bash = re.search(rf"^    {name}\) .*$", scripts["bash"], re.M).group(0)
        for option in command["options"]:
            flag = f"--{option['name']}"
            places = {"help": flag + (" " if option["value"] else "") in help_text,
                      "man": rf"\fB{flag}\fR" in man,
                      "bash": re.search(rf"[ ']{flag}[ ']", bash),
                      "zsh": f"'{flag}[" in zsh, "fish": f" -l {option['name']} " in fish}
            problems += [f"{name} {flag}: not in {place}" for place, there in places.items()
                         if not there]
    return "\n".join(problems)


def scripts_parse(program, scratch, environment):
    script = scratch / "unisono.bash"
    script.write_text(output(program, ["completion", "bash"], environment).stdout)
    words = ('source "$1"; COMP_WORDS=(unisono show --st); COMP_CWORD=2; _unisono; '
             'echo "${COMPREPLY[*]}"; COMP_WORDS=(unisono show --format j); COMP_CWORD=3; _unisono; '
             'echo "${COMPREPLY[*]}"')
    result = subprocess.run(["bash", "-c", words, "bash", str(script)], capture_output=True,
                            text=True, timeout=20)
    if result.stdout.split() != ["--step", "json"]:
        return f"bash completes: {result.stdout!r} {result.stderr}"
    return None


def json_everywhere(program, scratch, environment):
    """--json gives JSON, one value or one a line."""
    for words in (["list"], ["env"], ["help"], ["verify", "--all", "-n", "2"],
                  ["show", "all_reduce/ring", "-n", "3"], ["completion", "zsh"],
                  ["run", "-n", "2", "--", "echo", "x"], ["bench", "all_reduce", "-e", "8"],
                  ["topo", "--discover"], ["topo", "--presets"], ["topo", "torus", "--route", "0,9"],
                  ["sim", "barrier/flat", "--on", "hgx_h200"]):
        text = output(program, [words[0], "--json"] + words[1:], environment).stdout
        try:
            json.loads(text)
        except ValueError:
            try:
                for line in text.splitlines():
                    json.loads(line)
            except ValueError as error:
                return f"{words}: {error}\n{text}"
    return None


def topologies_read_back(program, scratch, environment):
    """What topo writes, of presets and of this host, it reads, and sim runs on it."""
    presets = json.loads(output(program, ["topo", "--presets", "--json"], environment).stdout)
    path = scratch / "topology.json"
    for words in [[row["preset"]] for row in presets["presets"]] + [["--discover"]]:
        path.write_text(output(program, ["topo"] + words + ["--json"], environment).stdout)
        again = output(program, ["topo", str(path), "--json"], environment)
        if again.stdout != path.read_text():
            return f"{words}: {again.stderr}"
        result = output(program, ["sim", "all_gather/ring", "--on", str(path)], environment)
        if result.returncode != 0:
            return f"{words}: {result.stderr}"
    return None


def simulation_trace(program, scratch, environment):
    path = scratch / "trace.json"
    result = output(program, ["sim", "all_reduce/halving_doubling", "--on", "hgx_h200", "--trace",
                              str(path)], environment)
    events = json.loads(path.read_text())["traceEvents"]
    moves = [event for event in events if event["ph"] == "X"]
    # Two ends of 8 messages in each of 6 steps.
    if result.returncode != 0 or len(moves) != 2 * 8 * 6:
        return f"{result.stderr}: {len(moves)} events"
    return None


def shown_file_verifies(program, scratch, environment):
    for name in output(program, ["list", "--names"], environment).stdout.split():
        path = scratch / "schedule.json"
        path.write_text(output(program, ["show", name, "-n", "6", "--json"], environment).stdout)
        result = output(program, ["verify", str(path)], environment)
        if result.returncode != 0:
            return f"{name}: {result.stdout}{result.stderr}"
    return None


def nothing_left(program, scratch, environment):
    """Children and grandchildren end with the job, whatever ends it."""
    mark = f"CLI_TEST_MARK={os.getpid()}-"
    # A rank with a child in its group, and one that has left for a session of its own.
    body = "sleep 61 & setsid sleep 62 & [ $RANK = 1 ] && sleep 0.3 && exit 5; wait"
    job = ["run", "-n", "2", "--env", mark + "a", "--", "sh", "-c", body]
    result = output(program, job, environment)
    if result.returncode != 5 or wait_for_none(mark + "a"):
        return f"after a failure: code {result.returncode}, left {marked(mark + 'a')}"
    result = output(program, ["run", "-n", "2", "--env", mark + "b", "--", "sh", "-c",
                              "sleep 61 & exit 0"], environment)
    if result.returncode != 0 or wait_for_none(mark + "b"):
        return f"after success: code {result.returncode}, left {marked(mark + 'b')}"
    return None


def launcher_signals(program, scratch, environment):
    """The launcher's own death takes the ranks and their children with it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        mark = f"CLI_TEST_MARK={os.getpid()}-{number}"
        job = subprocess.Popen([str(program), "run", "-n", "3", "--env", mark, "--", "sh", "-c",
                                "echo up; sleep 63"], env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        if job.stdout.readline() == "":
            return "the job did not start"
        job.send_signal(number)
        job.communicate(timeout=20)
        wanted = -number if number == signal.SIGKILL else 128 + number
        left = wait_for_none(mark)
        if job.returncode != wanted or left:
            return f"signal {number}: code {job.returncode}, wanted {wanted}, left {left}"
    return None


def log_files(program, scratch, environment):
    folder = scratch / "logs"
    output(program, ["run", "-n", "2", "--log-dir", str(folder), "--only", "0", "--", "sh", "-c",
                     "echo out $RANK; echo err $RANK >&2"], environment)
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    wanted = {f"rank-{rank}.{end}": f"{end} {rank}\n" for rank in (0, 1) for end in ("out", "err")}
    return None if texts == wanted else f"{texts}"


def binding(program, scratch, environment):
    """Rank i gets CPU floor(i * CPUs / ranks) of the allowed ones."""
    cpus = sorted(os.sched_getaffinity(0))
    ranks = 2 * len(cpus)
    code = "import os; print(os.environ['RANK'], *sorted(os.sched_getaffinity(0)))"
    for bind in ("core", "none"):
        result = output(program, ["run", "-n", str(ranks), "--bind", bind, "--no-prefix", "--",
                                  "python3", "-c", code], environment)
        got = dict(line.split(" ", 1) for line in result.stdout.splitlines())
        for rank in range(ranks):
            wanted = [cpus[rank * len(cpus) // ranks]] if bind == "core" else cpus
            if got.get(str(rank)) != " ".join(map(str, wanted)):
                return f"--bind {bind}: {got}"
    return None


def job_variables(program, scratch, environment):
    """Each job has its own name, token and port."""
    seen = []
    for _ in range(2):
        text = output(program, ["run", "-n", "2", "--no-prefix", "--", "sh", "-c",
                                "echo $UNISONO_JOB $UNISONO_TOKEN $MASTER_PORT"], environment).stdout
        lines = set(text.splitlines())
        if len(lines) != 1:
            return f"ranks of one job differ: {text}"
        seen.append(lines.pop().split())
    if not re.fullmatch(r"[0-9a-f]{32}", seen[0][1]) or not 0 < int(seen[0][2]) < 65536:
        return f"{seen}"
    return None if seen[0][0] != seen[1][0] and seen[0][1] != seen[1][1] else f"{seen}"


def bench(program, environment, ranks, words):
    # A call that does not end is an error that says where, long before the job's own limit.
    return output(program, ["run", "-n", str(ranks), "--timeout", "50s", "--env",
                            "UNISONO_TIMEOUT_MS=10000", "--", str(program), "bench"] + words,
                  environment)


def bench_all(program, scratch, environment):
    """Every collective, in and out of place, on an odd number of ranks: no wrong element."""
    result = bench(program, environment, 3, ["all", "-d", "f32,bf16", "--json"] + QUICK)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    seen = {row["collective"] for row in rows}
    wrong = [row for row in rows if row["wrong"]]
    if result.returncode != 0 or seen != COLLECTIVES or wrong or not any(
            row["in_place"] for row in rows):
        return f"code {result.returncode}, {seen ^ COLLECTIVES}, {wrong}\n{result.stderr}"
    return None


def bench_types(program, scratch, environment):
    """Every dtype with every operation that it has: no wrong element."""
    result = bench(program, environment, 3, ["all_reduce", "-d", "all", "-o", "all", "-b", "64",
                                             "-e", "64", "--iters", "2", "--json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    listed = json.loads(output(program, ["list", "--dtypes", "--json"], environment).stdout)
    wanted = {(row["dtype"], op) for row in listed["dtypes"] for op in row["ops"]}
    seen = {(row["dtype"], row["op"]) for row in rows}
    wrong = [row for row in rows if row["wrong"]]
    if result.returncode != 0 or wrong or seen != wanted:
        return f"code {result.returncode}, {seen ^ wanted}, {wrong}\n{result.stderr}"
    return None


def bench_forms(program, scratch, environment):
    """Columns of each format, and what the options choose."""
    nccl = bench(program, environment, 2, ["all_reduce", "--format", "nccl-tests"] + QUICK)
    lines = [line.split() for line in nccl.stdout.splitlines() if not line.startswith("#")]
    if len(lines) != 3 or any(len(line) != 13 for line in lines) or lines[0][2] != "float":
        return f"nccl-tests: {nccl.stdout}{nccl.stderr}"
    csv = bench(program, environment, 2, ["gather", "--format", "csv", "-r", "all", "--place", "out"]
                + QUICK).stdout.splitlines()
    if len(csv) != 1 + 3 * 2 or len({len(line.split(",")) for line in csv}) != 1:
        return f"csv: {csv}"
    for mode in (["--fresh"], ["--registered"], ["--persistent"], ["--data", "random"]):
        result = bench(program, environment, 2, ["all_reduce", "-o", "sum,max,prod"] + mode + QUICK)
        rows = [line for line in result.stdout.splitlines() if not line.startswith("#")]
        if result.returncode != 0 or len(rows) != 3 * 3 * 2 or any(
                line.split()[-1] != "0" for line in rows):
            return f"{mode}: {result.stdout}{result.stderr}"
    small = bench(program, environment, 2, ["all_reduce", "-b", "0", "-e", "16", "--iters", "3",
                                            "--place", "out", "--json"])
    rows = [json.loads(line) for line in small.stdout.splitlines()]
    if [row["bytes"] for row in rows] != [0, 4, 8, 16] or rows[0]["limit_us"] != 0:
        return f"small sizes: {small.stdout}{small.stderr}"
    forced = bench(program, environment, 2, ["all_reduce", "--algorithm", "ring", "--json"] + QUICK)
    if {json.loads(line)["algorithm"] for line in forced.stdout.splitlines()} != {"ring"}:
        return f"forced: {forced.stdout}{forced.stderr}"
    return None


def bench_thresholds(program, scratch, environment):
    for words, code in ((["--min-busbw", "1e9"], 5), (["--max-time", "1ns"], 5),
                        (["--min-busbw", "0", "--max-time", "10s"], 0)):
        result = bench(program, environment, 2, ["all_reduce"] + words + QUICK)
        if result.returncode != code:
            return f"{words}: code {result.returncode}\n{result.stderr}"
    return None


def bench_plot(program, scratch, environment):
    path = scratch / "plot.svg"
    bench(program, environment, 2, ["all_reduce,broadcast", "--plot", str(path)] + QUICK)
    root = xml.etree.ElementTree.parse(path).getroot()
    drawn = [element for element in root.iter() if element.tag.endswith("path")
             and " L" in element.get("d", "")]
    if len(drawn) != 5:
        return f"{len(drawn)} lines drawn, wanted 4 and the limit"
    early = bench(program, environment, 1, ["all_reduce", "--plot", "/no/folder/x.svg"] + QUICK)
    if early.returncode != 3 or early.stdout or "cannot write" not in early.stderr:
        return f"measured before it looked at the file: {early.stdout}{early.stderr}"
    return None


def doctor(program, scratch, environment):
    """Every check passes here; one that fails says how to mend it."""
    result = output(program, ["doctor", "--json"], environment)
    report = json.loads(result.stdout)
    if result.returncode != 0 or not all(check["passed"] for check in report["checks"]):
        return f"{result.stdout}{result.stderr}"
    result = output(program, ["doctor"], environment | {"UNISONO_JBO": "x"})
    if result.returncode != 1 or "UNISONO_JOB" not in result.stdout or "fix:" not in result.stdout:
        return f"{result.stdout}{result.stderr}"
    return None


def tune_table(program, scratch, environment):
    """A table gives the choices of the stored profile, and the communicator uses them."""
    path = scratch / "profile.json"
    result = output(program, ["tune", "--table", "times.csv", "-o", str(path)], environment, cwd=FILES)
    if result.returncode != 0 or result.stderr:
        return f"code {result.returncode}: {result.stderr}"
    choices = [json.loads(file.read_text())["choices"] for file in (path, FILES / "profile.json")]
    if choices[0] != choices[1]:
        return f"not those of files/profile.json: {choices[0]}"
    result = bench(program, environment | {"UNISONO_PROFILE": str(path)}, 2,
                   ["all_reduce", "-b", "8", "-e", "2M", "-f", "262144", "--place", "out",
                    "--iters", "2", "--json"])
    chosen = [json.loads(line)["algorithm"] for line in result.stdout.splitlines()]
    return None if chosen == ["one_shot", "ring"] else f"chosen: {chosen}\n{result.stderr}"


def tune_measures(program, scratch, environment):
    """A short measurement writes a profile that can be asked."""
    home = environment | {"XDG_CONFIG_HOME": str(scratch / "config")}
    result = output(program, ["tune", "-n", "2,3", "-e", "4K", "--time", "400ms", "--json"], home)
    if result.returncode != 0:
        return f"code {result.returncode}: {result.stderr}"
    report = json.loads(result.stdout)
    path = scratch / "config" / "unisono" / "profile.json"
    profile = json.loads(path.read_text())
    counts = set(profile["points"]["ranks"])
    if report["file"] != str(path) or counts != {2, 3} or not profile["host"]["cpus"]:
        return f"{report['file']}: {counts}"
    if max(profile["points"]["bytes"]) > 4096 or not profile["choices"]["collective"]:
        return f"{profile['choices']}"
    first = profile["points"]["collective"][0]
    asked = output(program, ["plan", first, "-n", "2", "-b", "64", "--machine", str(path)], home)
    used = bench(program, home, 3, ["all"] + QUICK)
    wrong = [result.stderr for result in (asked, used) if result.returncode != 0]
    left = list(path.parent.iterdir())
    return None if not wrong and left == [path] else f"{wrong}, {left}"


def page_data(path):
    """The data in a page that `unisono view` wrote."""
    text = path.read_text()
    begin = '<script type="application/json" id="unisono-data">'
    if text.count(begin) != 1 or "<!--unisono-data-->" in text:
        raise ValueError("the data is not where the marker was")
    return json.loads(text.split(begin)[1].split("</script>")[0])


def view_pages(program, scratch, environment):
    """A page has the catalogue, and the schedule, recording or topology that was asked for."""
    path = scratch / "page.html"
    view = lambda *words: output(program, ["view", *words, "-o", str(path)], environment)
    names = output(program, ["list", "--names"], environment).stdout.split()
    if view().returncode != 0 or "open it" not in view().stdout:
        return "does not write the catalogue"
    catalogue = page_data(path)["catalogue"]
    found = {f"{row['collective']}/{row['algorithm']}" for row in catalogue}
    if found != set(names):
        return f"other algorithms: {found ^ set(names)}"
    ring = next(row for row in catalogue if row["algorithm"] == "ring")
    if [each["ranks"] for each in ring["schedules"]] != list(range(2, 17)):
        return f"{ring['collective']}/ring: {[each['ranks'] for each in ring['schedules']]}"
    view("broadcast/binomial", "-n", "40", "--root", "7")
    schedule = page_data(path)["schedule"]
    if (schedule["ranks"], schedule["root"], schedule["algorithm"]) != (40, 7, "binomial"):
        return f"shows {schedule}"
    evil = json.loads((FILES / "right.json").read_text()) | {"algorithm": "</script><b>"}
    (scratch / "evil.json").write_text(json.dumps(evil))
    view(str(scratch / "evil.json"))
    if page_data(path)["schedule"]["algorithm"] != "</script><b>" or "</script><b>" in path.read_text():
        return "a name ends the data"
    why = {"schema": "unisono.why/1", "jobs": []}
    (scratch / "why.json").write_text(json.dumps(why))
    view(str(scratch / "why.json"))
    if page_data(path)["recording"] != why:
        return "another recording"
    topology = {"format": "unisono.topology/1", "preset": "dgx_h100", "parameters": {"nodes": 2}}
    (scratch / "machine.json").write_text(json.dumps(topology))
    for words in ([str(scratch / "machine.json")], ["all_reduce/ring", "--on", "dgx_h100:nodes=2"]):
        view(*words)
        if len(page_data(path)["topology"]["ranks"]) != 16:
            return f"no topology with {words}"
    if view("all_reduce/ring", "--on", "dgx_h001").returncode != 2:
        return "takes any preset"
    full = output(program, ["view", "-o", "/dev/full"], environment)
    printed = output(program, ["view", "-o", "-"], environment)
    if full.returncode != 2 or not printed.stdout.startswith("<!doctype html>"):
        return f"/dev/full: {full.returncode} {full.stderr}"
    return None


def all_checks():
    return [("tables_agree", "text", tables_agree), ("scripts_parse", "text", scripts_parse),
            ("json_everywhere", "text", json_everywhere),
            ("shown_file_verifies", "text", shown_file_verifies),
            ("topologies_read_back", "text", topologies_read_back),
            ("simulation_trace", "text", simulation_trace),
            ("view_pages", "text", view_pages),
            ("nothing_left", "run", nothing_left), ("launcher_signals", "run", launcher_signals),
            ("log_files", "run", log_files), ("binding", "run", binding),
            ("job_variables", "run", job_variables), ("bench_all", "bench", bench_all),
            ("bench_types", "bench", bench_types), ("bench_forms", "bench", bench_forms),
            ("bench_plot", "bench", bench_plot), ("tune_table", "bench", tune_table),
            ("tune_measures", "bench", tune_measures),
            ("bench_thresholds", "bench", bench_thresholds), ("doctor", "bench", doctor)]
