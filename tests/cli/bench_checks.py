"""Checks of bench, tune and doctor: one function per check; it returns the mistake, or None."""
import json
import pathlib
import xml.etree.ElementTree

from check_tools import FILES, output

COLLECTIVES = {"broadcast", "scatter", "gather", "reduce", "all_reduce", "all_gather",
               "reduce_scatter", "all_to_all", "barrier", "scatter_v", "gather_v", "all_gather_v",
               "reduce_scatter_v", "all_to_all_v", "scan", "exclusive_scan", "send_recv"}
QUICK = ["-b", "8", "-e", "8K", "-f", "32", "--iters", "5"]


def bench(program, environment, ranks, words):
    # A call that does not end becomes an error with its place, long before the job's own limit.
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


def bench_moe(program, scratch, environment):
    """The routing of a file, with a token choice of -1, over shared memory and over TCP."""
    routing = scratch / "routing.txt"
    routing.write_text("0 3\n1,2\n3 -1\n\n0 1\n2 3\n1 0\n")
    for transport in ("auto", "tcp"):
        result = bench(program, {**environment, "UNISONO_TRANSPORT": transport}, 3,
                       ["moe", "--routing", str(routing)])
        last = result.stdout.splitlines()[-1].split() if result.stdout else []
        if result.returncode != 0 or last[:5] != ["2", "2048", "4", "2", "file"] or last[-1] != "0":
            return f"{transport}: code {result.returncode}\n{result.stdout}{result.stderr}"
    result = bench(program, environment, 2, ["moe", "--json", "--routing", str(routing)])
    row = json.loads(result.stdout)
    if (row["schema"], row["tokens"], row["wrong"]) != ("unisono.bench_moe/1", 3, 0):
        return f"json: {result.stdout}{result.stderr}"
    routing.write_text("0 3\n1 x\n")
    result = bench(program, environment, 2, ["moe", "--routing", str(routing)])
    if result.returncode == 0 or 'routing.txt:2: "x" is not an expert' not in result.stderr:
        return f"code {result.returncode}: {result.stderr}"
    return None


def bench_words(program, scratch, environment):
    """A collective with its algorithm, rows of 80 columns, and the error of one rank."""
    result = bench(program, environment, 2, ["all_reduce/ring", "-b", "1K", "-e", "1K", "--iters", "5"])
    lines = result.stdout.splitlines()
    rows = [line.split() for line in lines if line.startswith(" ")]
    if result.returncode != 0 or [row[3] for row in rows] != ["ring", "ring"]:
        return f"code {result.returncode}\n{result.stdout}{result.stderr}"
    if any(row[6] != "-" for row in rows) or max(len(line) for line in lines) > 90:
        return f"p99 of five batches, or rows that are too long\n{result.stdout}"
    alone = output(program, ["bench", "all_reduce", "-b", "1K", "-e", "1K", "--iters", "5"],
                   environment)
    if "nothing is communicated" not in alone.stdout:
        return f"one rank is not warned\n{alone.stdout}"
    alone = output(program, ["bench", "all_reduce", "-b", "8", "-e", "8", "-n", "2", "--json",
                             "--min-busbw", "1"], environment)
    if "1 rank: nothing" not in alone.stderr or "next   unisono run -n 4" not in alone.stderr:
        return f"one rank is not warned beside JSON\n{alone.stderr}"
    return None


def bench_types(program, scratch, environment):
    """Every dtype with every operation that it supports: no wrong element."""
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
    """The columns of each format, and the effect of the options."""
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
    bench(program, environment, 2, ["all", "--plot", str(path)] + QUICK)
    root = xml.etree.ElementTree.parse(path).getroot()
    lowest = max(float(element.get("y")) for element in root.iter() if element.tag.endswith("text"))
    if lowest > float(root.get("height")):
        return f"the legend ends at {lowest}, the picture at {root.get('height')}"
    other = bench(program, environment, 1, ["all_reduce", "--plot", "x.png"] + QUICK)
    if other.returncode != 2 or "writes SVG" not in other.stderr:
        return f"wrote SVG as x.png: {other.stdout}{other.stderr}"
    early = bench(program, environment, 1, ["all_reduce", "--plot", "/no/folder/x.svg"] + QUICK)
    if early.returncode != 2 or early.stdout or "cannot write" not in early.stderr:
        return f"measured before it looked at the file: {early.stdout}{early.stderr}"
    return None


def doctor(program, scratch, environment):
    """Every check passes here; a failing one explains the remedy."""
    environment = environment | {"ASAN_OPTIONS": "detect_leaks=0"}  # UCX loads libraries that leak
    result = output(program, ["doctor", "--json"], environment)
    report = json.loads(result.stdout)
    if result.returncode != 0 or not all(check["passed"] for check in report["checks"]):
        return f"{result.stdout}{result.stderr}"
    if not any(check["name"] == "UCX between hosts" for check in report["checks"]):
        return f"nothing of UCX: {result.stdout}"
    gpus = [check for check in report["checks"] if check["name"] == "collectives on GPU memory"]
    if not pathlib.Path("/dev/nvidiactl").exists():
        text = output(program, ["doctor"], environment).stdout
        if not gpus[0]["absent"] or "none  collectives on GPU memory" not in text:
            return f"a GPU that is not there: {text}"
    result = output(program, ["doctor"], environment | {"UNISONO_CUDA": "/no/driver"})
    if result.returncode != 1 or "/no/driver cannot be opened" not in result.stdout:
        return f"a driver that is named and not there: {result.stdout}{result.stderr}"
    result = output(program, ["doctor"], environment | {"UNISONO_JBO": "x"})
    if result.returncode != 1 or "UNISONO_JOB" not in result.stdout or "fix:" not in result.stdout:
        return f"{result.stdout}{result.stderr}"
    return None


def tune_table(program, scratch, environment):
    """A table sets the choices of the stored profile, and the communicator uses them."""
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


def tune_threads(program, scratch, environment):
    """Numbers of threads are measured if they are given, and the profile states how many move a call."""
    path, times = scratch / "threads.json", scratch / "threads.csv"
    result = output(program, ["tune", "-n", "2", "-e", "128K", "--threads", "2,1", "--time", "1s", "-o", str(path),
                              "--times", str(times)], environment)
    if result.returncode != 0 or "threads at most" not in result.stdout:
        return f"code {result.returncode}: {result.stdout}{result.stderr}"
    rows = [line.split(",") for line in times.read_text().splitlines()[1:]]
    measured = {(row[0], row[-1]) for row in rows if row[-1]}
    cut = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast")
    if measured != {(name, threads) for name in cut for threads in "12"}:
        return f"{measured}"
    chosen = json.loads(path.read_text())["threads"]
    if set(chosen["collective"]) != set(cut) or not set(chosen["threads"]) <= {1, 2} or set(chosen["ranks"]) != {2}:
        return f"{chosen}"
    again = output(program, ["tune", "--table", str(times), "-o", str(path)], environment)
    if again.returncode != 0 or json.loads(path.read_text())["threads"] != chosen:
        return f"another profile from the table: {again.stderr}"
    used = bench(program, environment | {"UNISONO_PROFILE": str(path), "UNISONO_THREADS": "2"}, 2, ["all"] + QUICK)
    if used.returncode != 0:
        return used.stderr
    # Helpers take no part in a call this short.
    short = output(program, ["tune", "-n", "2", "-e", "4K", "--threads", "1,2", "--time", "100ms", "-o", str(path)],
                   environment)
    return short.stderr if short.returncode != 0 or "threads at most" in short.stdout else None


def tune_measures(program, scratch, environment):
    """A short measurement writes a usable profile."""
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
    if wrong or left != [path]:
        return f"{wrong}, {left}"
    # A profile of fewer ranks does not replace it unless it is named.
    before = path.read_text()
    fewer = ["tune", "-n", "2", "-e", "64", "--time", "100ms"]
    result = output(program, fewer, home)
    if result.returncode != 2 or "would lose its measurements of jobs of 3 ranks" not in result.stderr or path.read_text() != before:
        return f"code {result.returncode}: {result.stderr}"
    result = output(program, [*fewer, "-o", str(path)], home)
    return None if result.returncode == 0 and path.read_text() != before else result.stderr
