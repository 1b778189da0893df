"""Plots time against bytes, both logarithmic, with one panel per number of ranks and data mode.

The shaded area is the machine's limit. A hollow point was measured while the two CPUs were far apart, a
filled point while they were near.
"""

import math
from html import escape

from cases import size_text

PANEL_WIDTH, PANEL_HEIGHT = 560, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 104, 44, 44
MARGIN, HEAD = 28, 78
INK, SOFT, GRID, PAPER, FLOOR = "#1c2430", "#6b7482", "#e4e6ea", "#ffffff", "#eceff3"
# column: name, colour, dashes, width. Drawn in this order, so that unisono is on top.
SERIES = {
    "gloo": ("Gloo", "#9aa3b0", "", 1.6),
    "mpich": ("MPICH", "#b277c9", "", 1.6),
    "openmpi": ("Open MPI", "#e08a1e", "", 1.6),
    "persistent": ("persistent", "#12a594", "5 3", 2.2),
    "ordinary": ("unisono", "#12a594", "", 2.6),
    "registered": ("registered", "#0b5f8a", "", 2.6),
}
LABEL_GAP = 14


def panels(results):
    """Groups results into panels of lines: cases that differ only in bytes, with at least two sizes."""
    found = {}
    for result in results:
        case = result["case"]
        if result["times_us"] and case.dtype == "f32":
            found.setdefault((case.collective, case.ranks, case.fresh), []).append(result)
    return {key: sorted(rows, key=lambda r: r["case"].bytes)
            for key, rows in found.items() if len({r["case"].bytes for r in rows}) > 1}


class Panel:
    """One chart. x() and y() map bytes and microseconds to page coordinates."""

    def __init__(self, key, rows, left, top):
        self.key, self.rows = key, rows
        self.x0, self.x1 = left + LEFT, left + PANEL_WIDTH - RIGHT
        self.y0, self.y1 = top + PANEL_HEIGHT - BOTTOM, top + TOP
        self.left, self.top = left, top
        sizes = [row["case"].bytes for row in rows]
        times = [t for row in rows for column, t in row["times_us"].items() if column in SERIES]
        times += [row["limit_us"] for row in rows if row.get("limit_us")]
        self.low_x, self.high_x = math.log2(min(sizes)), math.log2(max(sizes))
        self.low_y = math.floor(math.log10(min(times)) * 2) / 2
        self.high_y = max(math.ceil(math.log10(max(times)) * 2) / 2, self.low_y + 1)

    def x(self, size):
        part = (math.log2(size) - self.low_x) / (self.high_x - self.low_x)
        return self.x0 + part * (self.x1 - self.x0)

    def y(self, time_us):
        part = (math.log10(time_us) - self.low_y) / (self.high_y - self.low_y)
        return self.y0 + part * (self.y1 - self.y0)

    def draw(self):
        return [*self._axes(), *self._floor(), *self._lines(), *self._labels()]

    def _axes(self):
        collective, ranks, fresh = self.key
        data = ("fresh data before each call" if fresh else "back-to-back calls, same data")
        yield text(self.left + LEFT, self.top + 18, f"{collective}, {ranks} ranks", 15, INK, 600)
        yield text(self.left + LEFT, self.top + 34, data, 12, SOFT)
        for decade in range(math.ceil(self.low_y), math.floor(self.high_y) + 1):
            y = self.y(10 ** decade)
            yield f'<path d="M{self.x0} {y:.1f}H{self.x1}" stroke="{GRID}"/>'
            yield text(self.x0 - 8, y + 4, time_label(decade), 11, SOFT, anchor="end")
        last = -1000.0
        for size in sorted({row["case"].bytes for row in self.rows}):
            x = self.x(size)
            yield f'<path d="M{x:.1f} {self.y0}v4" stroke="{SOFT}"/>'
            if x - last > 48:
                yield text(x, self.y0 + 18, size_text(size), 11, SOFT, anchor="middle")
                last = x
        yield f'<path d="M{self.x0} {self.y0}H{self.x1}" stroke="{SOFT}"/>'

    def _floor(self):
        points = [(self.x(row["case"].bytes), self.y(row["limit_us"]))
                  for row in self.rows if row.get("limit_us")]
        if len(points) < 2:
            return
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield (f'<polygon points="{points[0][0]:.1f},{self.y0} {line} '
               f'{points[-1][0]:.1f},{self.y0}" fill="{FLOOR}"/>')
        yield f'<polyline points="{line}" fill="none" stroke="#aab2bd" stroke-width="1.2"/>'

    def _points(self, column):
        return [(self.x(row["case"].bytes), self.y(row["times_us"][column]), row["state"])
                for row in self.rows if column in row["times_us"]]

    def _lines(self):
        for column, (_, colour, dashes, width) in SERIES.items():
            points = self._points(column)
            if not points:
                continue
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
            dash = f' stroke-dasharray="{dashes}"' if dashes else ""
            yield (f'<polyline points="{line}" fill="none" stroke="{colour}" '
                   f'stroke-width="{width}" stroke-linejoin="round"{dash}/>')
            for x, y, state in points:
                fill = colour if state == "near" else PAPER
                yield (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{fill}" '
                       f'stroke="{colour}" stroke-width="1.4"/>')

    def _labels(self):
        """Writes names at the ends of the lines, moved apart if they would touch."""
        ends = [(self._points(column)[-1][1], name, colour)
                for column, (name, colour, _, _) in SERIES.items() if self._points(column)]
        limits = [row["limit_us"] for row in self.rows if row.get("limit_us")]
        if len(limits) > 1:
            ends.append((self.y(limits[-1]), "limit", SOFT))
        ends.sort()
        places = []
        for y, _, _ in ends:
            places.append(max(y, places[-1] + LABEL_GAP) if places else y)
        excess = max(0.0, places[-1] - self.y0) if places else 0.0
        for index in range(len(places) - 1, -1, -1):
            after = places[index + 1] - LABEL_GAP if index + 1 < len(places) else places[-1] - excess
            places[index] = min(places[index], after)
        for (y, name, colour), place in zip(ends, places):
            yield (f'<path d="M{self.x1 + 5:.1f} {y:.1f}L{self.x1 + 15:.1f} {place:.1f}" '
                   f'stroke="{colour}" stroke-width="0.8" fill="none"/>')
            yield text(self.x1 + 18, place + 4, name, 12, colour, 600)


def time_label(decade):
    if decade < 0:
        return f"{10.0 ** decade:g} µs"
    if decade < 3:
        return f"{10 ** decade} µs"
    return f"{10 ** (decade - 3)} ms" if decade < 6 else f"{10 ** (decade - 6)} s"


def text(x, y, words, size, colour, weight=400, anchor="start"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" '
            f'font-weight="{weight}" text-anchor="{anchor}">{escape(words)}</text>')


def draw(results, versions):
    """Returns the whole page as SVG text."""
    found = panels(results)
    columns = min(2, max(1, len(found)))
    width = 2 * MARGIN + columns * PANEL_WIDTH
    # Each row has one number of ranks, fresh on the left and repeat on the right.
    keys = sorted(found, key=lambda key: (key[0], key[1], not key[2]))
    height = HEAD + -(-len(keys) // columns) * PANEL_HEIGHT + MARGIN
    names = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    parts = [text(MARGIN + 12, 36, "Time of a call against its bytes", 20, INK, 700),
             text(MARGIN + 12, 58, f"{names} · median of interleaved runs · shaded: below what "
                  "this machine can do · hollow points: CPUs far apart", 12, SOFT)]
    if not keys:
        parts.append(text(MARGIN + 12, 90, "no case has two sizes", 12, SOFT))
    for index, key in enumerate(keys):
        left = MARGIN + index % columns * PANEL_WIDTH
        top = HEAD + index // columns * PANEL_HEIGHT
        parts += Panel(key, found[key], left, top).draw()
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="Inter, Helvetica, Arial, sans-serif">\n'
            f'<rect width="100%" height="100%" fill="{PAPER}"/>\n{body}\n</svg>\n')
