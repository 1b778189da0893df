"""Checks of output without a job: one function per check; it returns the mistake, or None."""
import json
import re
import subprocess

from check_tools import FILES, LIMIT_S, output

COMMANDS = ("run", "bench", "tune", "sim", "topo", "show", "view", "verify", "list", "doctor", "env", "completion", "help")


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


def help_fits(program, scratch, environment):
    """Help is as wide as the terminal; a command that continues in the next line is still one command."""
    narrow = {**environment, "COLUMNS": "80"}
    commands = json.loads(output(program, ["help", "--json"], environment).stdout)["commands"]
    problems = []
    for words in ([["--help"], ["help"]] + [["help", command["name"]] for command in commands] +
                  [[command["name"], "--help"] for command in commands]):
        lines = output(program, words, narrow).stdout.splitlines()
        problems += [f"{' '.join(words)}: {len(line)} columns: {line}" for line in lines if len(line) > 80]
    for command in commands:
        joined = re.sub(r" \\\n +", " ", output(program, ["help", command["name"]], narrow).stdout)
        problems += [f"{command['name']}: not in the help: {example['command']}"
                     for example in command["examples"] if f"\n  {example['command']}\n" not in joined]
    return "\n".join(problems)


def scripts_parse(program, scratch, environment):
    script = scratch / "unisono.bash"
    script.write_text(output(program, ["completion", "bash"], environment).stdout)
    words = ('source "$1"; COMP_WORDS=(unisono show --st); COMP_CWORD=2; _unisono; '
             'echo "${COMPREPLY[*]}"; COMP_WORDS=(unisono show --format j); COMP_CWORD=3; _unisono; '
             'echo "${COMPREPLY[*]}"')
    result = subprocess.run(["bash", "-c", words, "bash", str(script)], capture_output=True,
                            text=True, timeout=LIMIT_S)
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
    """topo reads its own output, of presets and of this host, and sim runs on it."""
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


def this_host(program, scratch, environment):
    """`topo` alone is --discover."""
    environment = environment | {"ASAN_OPTIONS": "detect_leaks=0"}  # libraries that hwloc loads leak
    alone = output(program, ["topo"], environment)
    found = output(program, ["topo", "--discover"], environment)
    if alone.returncode != 0 or alone.stdout != found.stdout or "ranks" not in alone.stdout:
        return f"code {alone.returncode}\n{alone.stdout}{alone.stderr}"
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


def exchange_of_counts(program, scratch, environment):
    """From a routing to counts, to a schedule that contains them: all commands report the same numbers."""
    run = lambda *words: output(program, [str(word) for word in words], environment)
    examples = FILES.parents[2] / "examples" / "moe"
    counts, exchange, page = scratch / "counts.json", scratch / "exchange.json", scratch / "exchange.html"
    back = scratch / "back.json"
    run("plan", "moe", "--routing", examples / "routing.txt", "-n", "4", "--hidden", "2048", "--save", counts)
    if counts.read_text() != (examples / "counts.json").read_text():
        return f"examples/moe/counts.json is not that of its routing\n{counts.read_text()}"
    sent = json.loads(counts.read_text())["send"]
    run("plan", "moe", "--routing", examples / "routing.txt", "-n", "4", "--call", "combine", "--save", back)
    returned = json.loads(back.read_text())
    if (returned["send"], returned["element_bytes"]) != ([list(row) for row in zip(*sent)], 2 * 7168):
        return f"combine sends back {returned}"
    result = run("verify", "all_to_all_v/pairwise", "--counts", back)
    if result.returncode != 0:
        return f"combine: {result.stdout}{result.stderr}"
    named = ("all_to_all_v/pairwise", "--counts", counts)
    exchange.write_text(run("show", *named, "--json").stdout)
    for command, more in (("verify", ()), ("show", ()), ("sim", ("--on", "dgx_h100", "--json"))):
        by_name, by_file = (run(command, *words, *more) for words in (named, (exchange,)))
        if by_name.returncode != 0 or by_name.stdout != by_file.stdout:
            return f"{command}: {by_name.stdout}{by_name.stderr}{by_file.stdout}{by_file.stderr}"
    for words in (named, (exchange,)):
        run("view", *words, "--no-open", "-o", page)
        found = page_data(page)["schedule"]
        if (found["counts"], found["collective"]) != ({"element_bytes": 2112, "send": sent}, "all_to_all_v"):
            return f"the page has {found.get('counts')} of {found['collective']}"
    wrong = json.loads(exchange.read_text())
    wrong["counts"]["receive"] = [list(row) for row in zip(*sent)]
    wrong["counts"]["receive"][2][1] += 1
    exchange.write_text(json.dumps(wrong))
    result = run("verify", exchange)
    if result.returncode != 1 or f"rank 1 sends {sent[1][2]} to rank 2, which expects {sent[1][2] + 1}" not in result.stdout:
        return f"a count that is wrong at one end: {result.stdout}{result.stderr}"
    return None


def page_data(path):
    """The data in a page that `unisono view` wrote."""
    text = path.read_text()
    begin = '<script type="application/json" id="unisono-data">'
    if text.count(begin) != 1 or "<!--unisono-data-->" in text:
        raise ValueError("the data is not where the marker was")
    return json.loads(text.split(begin)[1].split("</script>")[0])


def view_pages(program, scratch, environment):
    """A page has the catalogue, and the requested schedule, recording or topology."""
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
    view("all_gather_v/ring", "-n", "3")
    schedule = page_data(path)["schedule"]
    if (schedule["collective"], schedule["algorithm"]) != ("all_gather_v", "ring"):
        return f"a v-form opens as {schedule}"
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
    recording = json.loads((FILES / "recording.json").read_text())
    recording["findings"] = [{"kind": "gone", "text": "rank 1 is gone"}]
    (scratch / "run.json").write_text(json.dumps(recording))
    names = []
    for words in ([], ["--op", "world #1"], ["--op", "1"]):
        printed = output(program, ["view", "run.json", "--no-open", *words], environment, cwd=scratch).stdout
        names.append(printed.split("  ")[0])
        shown = page_data(scratch / names[-1])
        if shown["recording"]["findings"] != recording["findings"] or ("schedule" in shown) != bool(words):
            return f"{words}: {names[-1]} shows {shown['recording']} {shown.get('schedule')}"
    if names != ["run.html", "run-world-1.html", "run-1.html"] or shown["schedule"]["ranks"] != 2:
        return f"names {names}, predicts {shown['schedule']}"
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
    if full.returncode != 3 or not printed.stdout.startswith("<!doctype html>"):
        return f"/dev/full: {full.returncode} {full.stderr}"
    return None


def chinese_is_whole(program, scratch, environment):
    """The overview has no English line in Chinese, and each row of the table describes an existing command."""
    folder = FILES.parent.parent.parent
    rows = re.findall(r'\{"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\}', (folder / "tools/unisono/cli/chinese.cc").read_text())
    problems = [f"{english}: other holes in Chinese" for english, chinese in rows
                if re.findall(r"\{\*?\}", english) != re.findall(r"\{\*?\}", chinese)]
    said = "".join(re.sub(r'"\s*"', "", path.read_text()) for part in ("tools", "src")
                   for path in sorted((folder / part).rglob("*.[ch]*")) if path.name != "chinese.cc")
    said += "No such file or directory Permission denied"  # messages of the system
    for english, _ in rows:
        pieces = re.split(r"\{\*?\}|: |  +(?:<- )?", english)
        problems += [f"{english}: nothing says '{piece}' any more" for piece in pieces if piece.strip() not in said]
    overview = output(program, ["help"], {**environment, "LANG": "zh_CN.UTF-8"}).stdout
    problems += [f"not in Chinese: {line}" for line in overview.splitlines() if line and line.isascii()]
    return "\n".join(problems)
