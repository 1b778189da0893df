"""Stores benchmark runs as one JSON file per machine and day, and writes the site's page about them."""

import json
import math
import os
import pathlib
import re

import table
from cases import size_text

WORST = 5
WAYS = ("ordinary", "registered", "persistent")


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else None


def row_of(result):
    case = result["case"]
    return {"ranks": case.ranks, "collective": case.collective, "bytes": case.bytes,
            "dtype": case.dtype, "data": "fresh" if case.fresh else "repeat",
            **{key: value for key, value in result.items() if key != "case"},
            "ratios": table.ratios(result), "limit_ratio": table.limit_ratio(result),
            "verdict": table.verdict(result)}


def record(results, *, date, machine, unisono, versions, options, load):
    """Returns the record of one run. `unisono`: its version and commit; `versions`: of each peer; `options`:
    of the command; `load`: of the machine at the end."""
    return {"date": date, "machine": machine, "unisono": unisono, "versions": versions, "options": options,
            "load": load, "rows": [row_of(result) for result in results]}


def processor(kept):
    """Returns the machine's description without its kernel version, which changes."""
    return kept["machine"].split(", Linux")[0]


def keep(folder, kept):
    """Writes the record as DATE-MACHINE.json, replacing an earlier record of that day. Returns the file."""
    name = re.sub(r"\W+", "-", processor(kept).lower()).strip("-")
    path = pathlib.Path(folder) / f"{kept['date']}-{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {key: value for key, value in kept.items() if key != "rows"}
    rows = ",\n".join(json.dumps(row) for row in kept["rows"])
    path.write_text(f'{json.dumps(head)[:-1]}, "rows": [\n{rows}\n]}}\n')
    return path


def groups(rows):
    """Groups f32 rows by network, ranks and data, in that order."""
    found = {}
    for row in rows:
        if row["dtype"] == "f32":
            found.setdefault((row["network"], row["ranks"], row["data"]), []).append(row)
    return sorted(found.items())


def cell(value):
    return "-" if value is None else f"{value:.2f}"


def page_of(kept, link):
    lines = [f"### {kept['date']}: unisono {kept['unisono']}", "",
             "Peers: " + ", ".join(f"{name} {version}" for name, version in sorted(kept["versions"].items())
                                   if name != "unisono") +
             f". {kept['machine'].split(', ')[-1]}, load {kept['load']:.1f} at the end, options "
             f"`{kept['options'] or 'none'}`. [All rows]({link}).", "",
             "| network | ranks | data | calls | " + " | ".join(WAYS) + " | slower than the best peer | worst | wrong |",
             "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |"]
    for (network, ranks, data), rows in groups(kept["rows"]):
        ratios = {way: [row["ratios"][way] for row in rows if row["ratios"].get(way) is not None] for way in WAYS}
        judged = [row for row in rows if row["ratios"].get("ordinary") is not None]
        worst = sorted(judged, key=lambda row: -row["ratios"]["ordinary"])[:WORST]
        shown = ", ".join(f"{row['collective']} {size_text(row['bytes'])} {row['ratios']['ordinary']:.2f}" for row in worst)
        behind = sum(row["ratios"]["ordinary"] > 1 for row in judged)
        wrong = sum(row["verdict"].startswith("WRONG") for row in rows)
        means = " | ".join(cell(geometric_mean(ratios[way])) for way in WAYS)
        lines.append(f"| {network} | {ranks} | {data} | {len(rows)} | {means} | {behind} | {shown or '-'} | {wrong} |")
    return [*lines, ""]


def page(folder, link="benchmarks/{}"):
    """Returns the Markdown page of a folder's records: machine by machine, newest first."""
    machines = {}
    for path in sorted(pathlib.Path(folder).glob("*.json"), reverse=True):
        kept = json.loads(path.read_text())
        machines.setdefault(processor(kept), []).append((kept, link.format(os.path.basename(path))))
    lines = ["# Benchmarks kept", "",
             "The figures are times of unisono over those of the best peer in the same run (geometric means): below",
             "1 unisono is faster. The worst calls come first. `make bench` measures a machine, and",
             '`make bench BENCH="--keep docs/benchmarks"` keeps the run here.', ""]
    if not machines:
        lines.append("No run has been kept yet.")
    for machine, runs in sorted(machines.items()):
        lines += [f"## {machine}", ""]
        for kept, address in runs:
            lines += page_of(kept, address)
    return "\n".join(lines).rstrip() + "\n"
