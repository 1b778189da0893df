#!/usr/bin/env python3
"""How far a fresh profile is off: predictions against `unisono bench` on this machine.

    bench/tune/check.py --program build/release/tools/unisono/unisono

Tunes, then measures every algorithm that the profile knows at sizes that were not tuned, and says how far
the predictions are off and how often the chosen algorithm is the best one. Nothing else should run.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

LEAST, FACTOR = 24, 6  # none of these sizes is one that is tuned


def unisono(options, *words):
    done = subprocess.run([str(options.program), *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"unisono {' '.join(map(str, words))}: code {done.returncode}\n{done.stderr}")
    return done.stdout


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] if values else float("nan")


def bench(options, ranks, collective, algorithm):
    """(bytes, us) of each size."""
    lines = unisono(options, "run", "-n", ranks, "--env", "UNISONO_PROFILE=none", "--", options.program, "bench",
                    collective, "--algorithm", algorithm, "-b", LEAST, "-e", options.max_bytes, "-f", FACTOR,
                    "--place", "out", "--time-per-row", options.time_per_row, "--json").splitlines()
    rows = [json.loads(line) for line in lines]
    return {row["bytes"]: row["time_us"] for row in rows}


def predictions(options, profile, ranks, collective, size):
    """{algorithm: us} and the chosen one."""
    plan = json.loads(unisono(options, "plan", collective, "-n", ranks, "--bytes", size, "--machine", profile,
                              "--json"))
    times = {row["algorithm"]: row["time_us"] for row in plan["candidates"] if row["time_us"] is not None}
    chosen = [row["algorithm"] for row in plan["candidates"] if row.get("chosen")]
    return times, chosen[0] if chosen else None


def check(options, profile):
    known = json.loads(profile.read_text())["points"]
    series = sorted(set(zip(known["ranks"], known["collective"], known["algorithm"])))
    most = {}
    for key in zip(known["ranks"], known["collective"], known["algorithm"], known["bytes"]):
        most[key[:3]] = max(most.get(key[:3], 0), key[3])
    measured = {}
    for ranks, collective, algorithm in series:
        if options.collectives and collective not in options.collectives.split(","):
            continue
        for size, time in bench(options, ranks, collective, algorithm).items():
            measured.setdefault((ranks, collective, size), {})[algorithm] = time
    rows = []
    for (ranks, collective, size), times in sorted(measured.items()):
        predicted, chosen = predictions(options, profile, ranks, collective, size)
        for algorithm, time in times.items():
            rows.append({"ranks": ranks, "collective": collective, "bytes": size, "algorithm": algorithm,
                         "measured_us": time, "predicted_us": predicted[algorithm],
                         "tuned": size <= most[ranks, collective, algorithm],
                         "chosen": algorithm == chosen, "best_us": min(times.values())})
    return rows


def report(rows):
    def errors(chosen_rows):
        return [abs(row["predicted_us"] / row["measured_us"] - 1) for row in chosen_rows]

    def line(name, some):
        values = errors(some)
        print(f"{name:<34} {len(values):>5}  median {100 * quantile(values, .5):5.1f} %"
              f"  p90 {100 * quantile(values, .9):6.1f} %")

    line("all", rows)
    line("sizes that were tuned around", [row for row in rows if row["tuned"]])
    for ranks in sorted({row["ranks"] for row in rows}):
        line(f"{ranks} ranks", [row for row in rows if row["ranks"] == ranks])
    for collective in sorted({row["collective"] for row in rows}):
        line(collective, [row for row in rows if row["collective"] == collective])
    chosen = [row for row in rows if row["chosen"]]
    good = [row for row in chosen if row["measured_us"] <= 1.1 * row["best_us"]]
    print(f"the chosen algorithm is within 10 % of the best in {len(good)} of {len(chosen)} points")
    for row in chosen:
        if row not in good:
            print(f"  {row['collective']} {row['ranks']} ranks {row['bytes']} B: {row['algorithm']}"
                  f" {row['measured_us']:.1f} us, best {row['best_us']:.1f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--collectives", default="", help="only these; empty: all")
    parser.add_argument("--max-bytes", default="64M")
    parser.add_argument("--time", default="15s", help="of unisono tune")
    parser.add_argument("--time-per-row", default="20ms")
    parser.add_argument("--profile", type=pathlib.Path, help="check this one instead of a fresh one")
    parser.add_argument("--rows", type=pathlib.Path, help="write all rows as JSON")
    options = parser.parse_args()
    options.program = options.program.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        profile = options.profile or pathlib.Path(scratch) / "profile.json"
        if not options.profile:
            print(unisono(options, "tune", "-n", options.ranks, "-e", options.max_bytes, "--time", options.time,
                          "-o", profile))
        rows = check(options, profile)
    if options.rows:
        options.rows.write_text(json.dumps(rows))
    report(rows)


if __name__ == "__main__":
    main()
