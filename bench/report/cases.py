"""The rows of the benchmark, and the target ratio of each."""

from dataclasses import dataclass

SYMMETRIC = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "exchange", "window"]
ROOTED = ["broadcast", "reduce", "gather", "scatter"]
COLLECTIVES = SYMMETRIC + ROOTED
KIB, MIB = 1024, 1024 * 1024
SIZES = [8, 256, 4 * KIB, 64 * KIB, MIB, 16 * MIB, 128 * MIB]
DTYPE_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "f8e4m3": 1, "f8e5m2": 1}


@dataclass(frozen=True)
class Case:
    ranks: int
    collective: str
    bytes: int       # in the vector, or in one rank's or pair's part
    fresh: bool      # rewrite inputs and read outputs before each timed call
    dtype: str = "f32"

    def row(self, memory, budget_ms):
        """Returns the line that requests this case from a benchmark program."""
        return (f"{self.collective} bytes={self.bytes} dtype={self.dtype} memory={memory} "
                f"fresh={int(self.fresh)} budget_ms={budget_ms}")

    def same_count_f32(self):
        count = self.bytes // DTYPE_BYTES[self.dtype]
        return Case(self.ranks, self.collective, 4 * count, self.fresh)

    def exchange(self):
        """Returns the case of the bytes that each rank of an all_reduce must send and receive at least: 2
        (n-1)/n of the vector (Patarasuk and Yuan, 2009)."""
        return Case(self.ranks, "exchange", 2 * (self.ranks - 1) * self.bytes // self.ranks, self.fresh)

    def label(self):
        size = "" if self.collective == "barrier" else " " + size_text(self.bytes)
        dtype = "" if self.dtype == "f32" else " " + self.dtype
        return f"{self.ranks} {self.collective}{dtype}{size}"


@dataclass(frozen=True)
class Target:
    """Greatest allowed time relative to the best peer. `limit`: relative to the limit, for registered memory
    or, over TCP, for ordinary memory."""
    ordinary: float | None = None
    registered: float | None = None
    persistent: float | None = None
    limit: float | None = None


def tcp_target(case, cpus):
    if case.collective != "all_reduce" or case.dtype != "f32":
        return Target()
    if case.ranks > cpus:
        return Target(0.7)
    return Target(0.9, limit=1.15 if case.ranks == 2 and case.bytes >= 64 * KIB else None)


def target(case):
    if case.dtype != "f32":
        # Relative to unisono's own f32 with the same count.
        halved = case.dtype == "bf16" and case.collective == "all_reduce"
        ratio = 0.6 if halved and case.bytes >= MIB // 2 else 1.0
        return Target(ratio, ratio)
    if case.collective == "window":
        return Target(1.0)
    if case.collective in ROOTED:
        return Target(1.0, 1.0)
    if case.ranks > 2:
        return Target(0.85, 0.85) if case.bytes <= 256 else Target(0.7, 0.4)
    if case.bytes <= 256:
        return Target(0.85, 0.85, 0.75)
    if case.bytes <= 4 * KIB:
        return Target(0.75, 0.55)
    if case.bytes <= 64 * KIB:
        return Target(0.8, 0.45)
    if case.bytes <= MIB:
        return Target(0.95, 0.6)
    return Target(0.8, 0.4, limit=1.3 if case.collective == "all_reduce" else None)


def size_text(count):
    for unit, scale in (("MiB", MIB), ("KiB", KIB)):
        if count >= scale and count % scale == 0:
            return f"{count // scale} {unit}"
    return f"{count} B"


def parse_size(text):
    text = text.strip().upper().removesuffix("IB").removesuffix("B").strip()
    scale = {"K": KIB, "M": MIB, "G": 1024 * MIB}.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * scale


def tcp_cases(ranks_list, quick):
    sizes = [8, 4 * KIB, 64 * KIB, MIB] if quick else SIZES
    return [Case(ranks, "all_reduce", size, False) for ranks in ranks_list for size in sizes]


def default_cases(ranks_list, quick):
    """Returns the rows that the project's speed targets name."""
    cases = []
    for ranks in ranks_list:
        for fresh in (True, False):
            small = [8] if quick or ranks > 2 else [8, 256]
            vector = [8, 4 * KIB, 64 * KIB, MIB] if quick else SIZES
            vector = [size for size in vector if ranks == 2 or size != 256]
            cases += [Case(ranks, "all_reduce", size, fresh) for size in vector]
            if ranks == 2:
                cases += [Case(ranks, collective, size, fresh)
                          for collective in COLLECTIVES[1:]
                          for size in {"barrier": small[:1], "window": [8, 4 * KIB]}.get(collective, small)]
    if not quick and 2 in ranks_list:
        # Adds 16-bit and 8-bit floats, with f32 of the same count.
        cases += [Case(2, "all_reduce", size // 4 * width, True, dtype)
                  for size in (MIB, 16 * MIB)
                  for dtype, width in DTYPE_BYTES.items() if dtype != "f32"]
    return cases


def crossed_cases(ranks_list, collectives, sizes, dtypes, fresh_modes):
    """Returns every combination of the requested values."""
    return [Case(ranks, collective, size, fresh, dtype)
            for ranks in ranks_list
            for fresh in fresh_modes
            for collective in collectives
            for dtype in dtypes
            for size in (sizes[:1] if collective == "barrier" else sizes)]
