"""Prints the table: one line per case, as soon as the case is measured."""

import os

from cases import target, tcp_target

COLUMNS = [("case", 30, "<"), ("data", 6, "<"), ("hop", 9, ">"), ("limit", 9, ">"),
           ("openmpi", 9, ">"), ("mpich", 9, ">"), ("gloo", 9, ">"),
           ("unisono", 9, ">"), ("regist.", 9, ">"), ("persist.", 9, ">"),
           ("ratio to best peer", 20, ">"), ("/limit", 6, ">"), ("target", 15, ">"),
           ("verdict", 8, "<")]


def time_text(value):
    """Formats microseconds with four significant digits."""
    if value is None:
        return "-"
    for bound, digits in ((10, 3), (100, 2), (1000, 1)):
        if value < bound:
            return f"{value:.{digits}f}"
    return f"{value:.0f}"


def ratio_text(value):
    return "-" if value is None else f"{value:.2f}"


def ratios(result):
    """Returns times relative to the reference: the best peer for f32, unisono's own f32 for other dtypes."""
    times = result["times_us"]

    def over(column, base):
        return times[column] / base if column in times and base else None

    if result["case"].dtype != "f32":
        return {"ordinary": over("ordinary", times.get("f32")),
                "registered": over("registered", times.get("f32 registered")),
                "persistent": over("persistent", times.get("f32"))}
    best = result.get("best_us")
    return {column: over(column, best) for column in ("ordinary", "registered", "persistent")}


def limit_ratio(result):
    """Returns unisono's best time relative to the limit; without unisono, the best peer's time."""
    limit = result.get("limit_us")
    times = result["times_us"]
    ours = [times[c] for c in ("ordinary", "registered", "persistent") if c in times]
    best = min(ours) if ours else result.get("best_us")
    return best / limit if limit and best else None


def target_of(result):
    if result.get("network", "shm") == "shm":
        return target(result["case"])
    return tcp_target(result["case"], len(os.sched_getaffinity(0)))


def verdict(result):
    """Compares times with their targets. Returns 'ok', 'miss: registered, ...', or '-' if not run."""
    want = target_of(result)
    found = ratios(result)
    missed = [column for column, value in found.items()
              if value is not None and getattr(want, column) is not None
              and round(value, 2) > getattr(want, column)]
    over_tcp = result.get("network", "shm") != "shm"
    took = result["times_us"].get("ordinary" if over_tcp else "registered")
    limit = result.get("limit_us")
    if want.limit and took and limit and round(took / limit, 2) > want.limit:
        missed.append(f"{took / limit:.2f} of the limit")
    wrong = [column for column in found if column in result["wrong"]]
    if wrong:
        return "WRONG: " + ", ".join(wrong)
    if all(value is None for value in found.values()):
        return "-"
    return "miss: " + ", ".join(missed) if missed else "ok"


def header():
    return "  ".join(f"{name:{align}{width}}" for name, width, align in COLUMNS)


def line(result):
    case = result["case"]
    times = result["times_us"]

    def peer(name):
        if name in result["wrong"]:
            return "wrong"
        mark = "*" if result.get("best") == name else ""
        return time_text(times.get(name)) + mark

    want = target_of(result)
    found = ratios(result)
    hop = result.get("hop_us")
    cells = [case.label(), "fresh" if case.fresh else "repeat",
             f"{hop:.3f} {result['state']:<4}" if hop else "-",
             time_text(result.get("limit_us")), peer("openmpi"), peer("mpich"), peer("gloo"),
             *(time_text(times.get(c)) for c in ("ordinary", "registered", "persistent")),
             " ".join(f"{ratio_text(v):>6}" for v in found.values()),
             ratio_text(limit_ratio(result)),
             " ".join(f"{ratio_text(v):>4}"
                      for v in (want.ordinary, want.registered, want.persistent)),
             verdict(result)]
    return "  ".join(f"{cell:{align}{width}}"
                     for cell, (_, width, align) in zip(cells, COLUMNS)).rstrip()
