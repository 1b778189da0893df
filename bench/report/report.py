"""Compares unisono with Open MPI, MPICH and Gloo, and with the limits of this machine.

All implementations run the same rows on the same kind of buffers, timed by the same code; they
take turns row by row, and while one runs the others sleep. A time is the median over repeats of
the median call, in microseconds; a call ends when the slowest rank has it. `fresh`: before each
timed call every rank rewrites its input and reads its output; `repeat`: back-to-back calls on
the same buffers. The hop (one cache line from one CPU to the other) is measured before and after
every row: `near` or `far`; only rows of one state are compared. * marks the best peer.
Bytes are those of the vector, or of one rank's part (all_gather, reduce_scatter, gather,
scatter) or pair's part (all_to_all). Rows of other dtypes than f32 are compared with unisono's
own f32 of the same count.
--transport tcp: all libraries over TCP on the loopback device; veth: between two network
namespaces (root only), even ranks in one, odd ranks in the other. The limit is then what
sockets need to carry the bytes that an all_reduce moves at least, between pairs of ranks.
"""

import argparse
import datetime
import json
import os
import platform
import signal
import subprocess
import sys

import history
import plot
import table
from cases import COLLECTIVES, DTYPE_BYTES, SIZES, crossed_cases, default_cases, parse_size, tcp_cases
from measure import PEERS, Bench, summarise
from network import NETWORKS, NotPermitted

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/report/run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"),
                        help="build folder with the benchmark programs (default: build/release)")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, repeats and calls")
    parser.add_argument("--transport", choices=sorted(NETWORKS), default="shm",
                        help="what the ranks talk over (default: shm)")
    parser.add_argument("--ranks", help="numbers of ranks (default: 2,4,8; over TCP 2,4)")
    parser.add_argument("--sizes", help="bytes, such as 8,4K,1M: every size for every collective")
    parser.add_argument("--collectives", help="such as all_reduce,broadcast; all: every one")
    parser.add_argument("--dtypes", default="f32", help="f32,f16,bf16,f8e4m3,f8e5m2")
    parser.add_argument("--data", default="fresh,repeat", help="fresh, repeat or both")
    parser.add_argument("--repeats", type=int, help="turns of each implementation (default: 5)")
    parser.add_argument("--budget-ms", type=int, help="timed calls of one turn (default: 60)")
    parser.add_argument("--without", default="", help="leave out: openmpi,mpich,gloo,unisono")
    parser.add_argument("--json", metavar="FILE", help="write the results, one JSON a line")
    parser.add_argument("--keep", metavar="FOLDER", help="write DATE-MACHINE.json, of which the site makes its history")
    parser.add_argument("--svg", metavar="FILE", help="write a plot: time against bytes")
    return parser.parse_args()


def find_programs(build, without, own):
    programs = {}
    for name in [*own, *PEERS]:
        file_name = own.get(name, f"bench_peer_{name}")
        path = os.path.join(build, "bench", file_name)
        if name in without:
            continue
        if os.access(path, os.X_OK):
            programs[name] = path
        else:
            print(f"bench: no {path}: {name} is left out", file=sys.stderr)
    if "limit" not in programs:
        sys.exit("bench: build the benchmark first, or name its folder with --build")
    return programs


def choose_cases(arguments):
    over_tcp = arguments.transport != "shm"
    usual = "2,4" if over_tcp else "2,4,8"
    ranks = [int(word) for word in (arguments.ranks or usual).split(",")]
    fresh = [word == "fresh" for word in arguments.data.split(",")]
    if not arguments.sizes and not arguments.collectives and arguments.dtypes == "f32":
        cases = tcp_cases if over_tcp else default_cases
        return [case for case in cases(ranks, arguments.quick) if case.fresh in fresh]
    names = (arguments.collectives or "all_reduce").split(",")
    names = COLLECTIVES if names == ["all"] else names
    sizes = [parse_size(word) for word in arguments.sizes.split(",")] if arguments.sizes else SIZES
    dtypes = arguments.dtypes.split(",")
    unknown = (set(names) - set(COLLECTIVES)) | (set(dtypes) - set(DTYPE_BYTES))
    if unknown:
        sys.exit(f"bench: unknown: {', '.join(sorted(unknown))}")
    return crossed_cases(ranks, names, sizes, dtypes, fresh)


def show_progress(done, total):
    def progress(case, column, turn, repeats):
        if sys.stderr.isatty():
            print(f"\r\033[K[{done[0] + 1}/{total}] {case.label()}: {column} "
                  f"{turn + 1}/{repeats}", end="", file=sys.stderr, flush=True)
    return progress


def machine():
    """Returns the processor's name."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file
                     if line.startswith("model name")]
    except OSError:
        names = []
    name = names[0] if names else platform.machine()
    return f"{name}, {len(os.sched_getaffinity(0))} CPUs, Linux {platform.release()}"


def own_version():
    """Returns the version of the source, and the commit if there is one."""
    with open(os.path.join(ROOT, "python", "pyproject.toml")) as file:
        version = next(line.split('"')[1] for line in file if line.startswith("version"))
    if not os.path.exists(os.path.join(ROOT, ".git")):
        return version
    found = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return f"{version} {found.stdout.strip()}".strip()


def closing_lines(results, bench):
    versions = ", ".join(f"{name} {version}" for name, version in sorted(bench.versions.items()))
    yield f"versions: {versions}"
    if bench.switch_us is not None:
        yield (f"one switch between two processes on one CPU: {bench.switch_us:.2f} us "
               "(in the limit where ranks outnumber CPUs)")
    verdicts = [table.verdict(result) for result in results]
    judged = [text for text in verdicts if text != "-"]
    if judged:
        wrong = sum(text.startswith("WRONG") for text in judged)
        yield f"{judged.count('ok')} of {len(judged)} rows reach their targets, {wrong} wrong"
    load = os.getloadavg()[0]
    if load > 2 * (os.cpu_count() or 1):
        yield f"the machine was busy with other work (load {load:.1f}): times are too long"


def main():
    arguments = parse_arguments()
    try:
        network = NETWORKS[arguments.transport]()
    except NotPermitted as why:
        print(f"bench: no network namespaces here, nothing was measured: {str(why).strip()}")
        return 0
    programs = find_programs(arguments.build, arguments.without.split(","), network.programs)
    cases = choose_cases(arguments)
    version = own_version()
    if arguments.keep:
        os.makedirs(arguments.keep, exist_ok=True)
    repeats = arguments.repeats or (3 if arguments.quick else 5)
    budget_ms = arguments.budget_ms or (20 if arguments.quick else 60)
    done = [0]
    bench = Bench(programs, repeats, budget_ms, show_progress(done, len(cases)), network)
    results = []
    json_file = open(arguments.json, "w") if arguments.json else None
    print(machine())
    print("f32 unless said; times in us; ratios and targets: ordinary, registered, persistent")
    print(table.header(), flush=True)
    try:
        for index, case in enumerate(cases):
            done[0] = index
            results.append({**summarise(case, bench.measure(case), bench),
                            "network": network.name})
            if sys.stderr.isatty():
                print("\r\033[K", end="", file=sys.stderr, flush=True)
            print(table.line(results[-1]), flush=True)
            if json_file:
                print(json.dumps(history.row_of(results[-1])), file=json_file, flush=True)
    finally:
        bench.close()
        network.close()
    print()
    for text in closing_lines(results, bench):
        print(text)
    if arguments.keep:
        print("kept:", history.keep(arguments.keep, history.record(
            results, date=datetime.date.today().isoformat(), machine=machine(), unisono=version,
            versions=bench.versions, options=" ".join(sys.argv[1:]), load=os.getloadavg()[0])))
    if arguments.svg:
        with open(arguments.svg, "w") as file:
            file.write(plot.draw(results, bench.versions))
    return 1 if any(table.verdict(result).startswith("WRONG") for result in results) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
