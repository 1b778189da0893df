#!/usr/bin/env python3
"""Measures the error of a fresh profile: compares its predictions with times of this machine.

    bench/tune/check.py --program build/release/tools/unisono/unisono

Tunes, measures at sizes that were not tuned, and tunes again. Reports the error of the first profile's
predictions at these sizes, how often its algorithm is the best one, and the difference between the two
profiles at equal points, because no prediction can be better than the machine's repeatability. Run nothing
else at the same time.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

SIZES = "24,160,1100,7K,50K,400K,3M,24M,48M"  # sizes that tuning does not measure


def unisono(options, *words):
    done = subprocess.run([str(options.program), *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"unisono {' '.join(map(str, words))}: code {done.returncode}\n{done.stderr}")
    return done.stdout


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] if values else float("nan")


def points(profile):
    """Returns {(collective, algorithm, ranks, bytes): us}."""
    columns = json.loads(profile.read_text())["points"]
    keys = zip(columns["collective"], columns["algorithm"], columns["ranks"], columns["bytes"])
    return dict(zip(keys, columns["time_us"]))


def predictions(options, profile, ranks, collective, size):
    """Returns {algorithm: us}, and the chosen algorithm."""
    plan = json.loads(unisono(options, "plan", collective, "-n", ranks, "--bytes", f"{size:.0f}", "--machine", profile,
                              "--json"))
    times = {row["algorithm"]: row["time_us"] for row in plan["candidates"] if row["time_us"] is not None}
    chosen = [row["algorithm"] for row in plan["candidates"] if row.get("chosen")]
    return times, chosen[0] if chosen else None


def check(options, profile, table):
    measured = collections.defaultdict(dict)
    for (collective, algorithm, ranks, size), time in points(table).items():
        measured[ranks, collective, size][algorithm] = time
    rows, left_out = [], []
    for (ranks, collective, size), times in sorted(measured.items()):
        predicted, chosen = predictions(options, profile, ranks, collective, size)
        rows += [{"ranks": ranks, "collective": collective, "bytes": size, "algorithm": algorithm,
                  "measured_us": time, "predicted_us": predicted[algorithm], "chosen": algorithm == chosen,
                  "best_us": min(times.values())}
                 for algorithm, time in times.items() if algorithm in predicted]
        if chosen not in times:  # not measured: too slow at a smaller size
            left_out.append(f"{collective} {ranks} ranks {size} B: {chosen} fell behind before")
    return rows, left_out


def report(rows, left_out):
    def errors(chosen_rows):
        return [abs(row["predicted_us"] / row["measured_us"] - 1) for row in chosen_rows]

    def line(name, some):
        values = errors(some)
        print(f"{name:<34} {len(values):>5}  median {100 * quantile(values, .5):5.1f} %"
              f"  p90 {100 * quantile(values, .9):6.1f} %")

    line("all", rows)
    for ranks in sorted({row["ranks"] for row in rows}):
        line(f"{ranks} ranks", [row for row in rows if row["ranks"] == ranks])
    for low, high in ((0, 1 << 10), (1 << 10, 1 << 16), (1 << 16, 1 << 22), (1 << 22, 1 << 40)):
        line(f"{low} B and more" if high >> 40 else f"{low} to {high} B",
             [row for row in rows if low <= row["bytes"] < high])
    for collective in sorted({row["collective"] for row in rows}):
        line(collective, [row for row in rows if row["collective"] == collective])
    chosen = [row for row in rows if row["chosen"]]
    good = [row for row in chosen if row["measured_us"] <= 1.1 * row["best_us"]]
    print(f"the chosen algorithm is within 10 % of the best in {len(good)} of {len(chosen) + len(left_out)} points")
    for line_out in left_out:
        print(f"  {line_out}")
    for row in chosen:
        if row not in good:
            print(f"  {row['collective']} {row['ranks']} ranks {row['bytes']} B: {row['algorithm']}"
                  f" {row['measured_us']:.1f} us, best {row['best_us']:.1f} us")


def repeats(first, second):
    common = [key for key in first if key in second]
    values = [abs(first[key] / second[key] - 1) for key in common]
    print(f"{'the machine itself, twice':<34} {len(values):>5}  median {100 * quantile(values, .5):5.1f} %"
          f"  p90 {100 * quantile(values, .9):6.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--time", default="30s", help="of each of the three measurements")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the times, the three profiles and all rows")
    parser.add_argument("--refit", action="store_true", help="measure nothing: fit what lies in --keep again")
    options = parser.parse_args()
    options.program = options.program.resolve()
    if options.refit and not options.keep:
        parser.error("--refit needs --keep")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(exist_ok=True)
        profile, table, again = (folder / name for name in ("profile.json", "table.json", "again.json"))
        for path, more in ((profile, []), (table, ["--sizes", SIZES]), (again, [])):
            times = path.with_suffix(".csv")
            if options.refit:
                unisono(options, "tune", "--table", times, "-o", path)
            else:
                unisono(options, "tune", "-n", options.ranks, "--time", options.time, "-o", path, "--times", times,
                        *more)
        rows, left_out = check(options, profile, table)
        (folder / "rows.json").write_text(json.dumps(rows))
        report(rows, left_out)
        repeats(points(profile), points(again))


if __name__ == "__main__":
    main()
