"""The extension. Public names are in unisono, unisono.schedule, unisono.model and
unisono.pipeline.

Buffer: a C-contiguous object in CPU memory with the buffer protocol (numpy, bytearray, array.array,
memoryview) or with __dlpack__. Buffers that are written must not be read-only. All buffers of a
call have one dtype: bool, int8 to int64, uint8 to uint64, float16, bfloat16, float8_e4m3fn,
float8_e5m2, float32, float64, complex64 or complex128. int16 and uint16 can be sent but not
reduced. Complex numbers support only sum, avg and premul_sum. `dtype=` defines how to interpret the
bytes.

Errors of every call:
  TypeError, ValueError: invalid arguments, before anything is sent. If the core detects the error,
    the ValueError is a UsageError.
  PeerLostError, TimeoutError, MismatchError, AbortedError: on all ranks. All communicators of the
    world are then unusable.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, TypeVar

from unisono._errors import Error

Buffer = Any
Path = str | PathLike[str]
B = TypeVar("B")
Op = str | premul_sum | Callable[[memoryview, memoryview], None]
Dtype = Any  # "bf16", "bfloat16", a dtype of numpy or torch; None: the buffers' dtype

ANY_SOURCE: int
"""As from_ of recv(): receives from the rank whose message arrives first."""

class premul_sum:
    """op=premul_sum(factor): multiplies each rank's input by `factor`, and sums the products."""

    factor: float
    def __init__(self, factor: float) -> None: ...

class Request:
    """An operation in progress. Keeps its buffers alive. Its destructor waits for the operation."""

    def wait(self, timeout_ms: int = -1) -> Any:
        """Waits. Returns the result of the blocking form, or raises the error of the operation."""
    def test(self) -> bool:
        """Returns True if the operation has ended. Never blocks."""
    def source(self) -> int:
        """Returns the sender's rank; ANY_SOURCE before the receive has ended."""
    def received(self) -> int:
        """Returns the bytes of the received message; 0 before the receive has ended."""

class Plan:
    """A collective that is checked and planned once. Keeps its buffers alive."""

    @property
    def algorithm(self) -> str: ...
    def start(self) -> Any: ...
    def start_async(self) -> Request: ...

class Region:
    """Memory that the peers access directly; numpy.frombuffer(region, dtype=...) views it."""

    @property
    def nbytes(self) -> int:
        """The number of registered bytes."""
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Explanation:
    """The algorithm of a call, and the reason for the choice. str() returns a table."""

    chosen: str
    profile: str
    @property
    def why(self) -> str: ...
    @property
    def candidates(self) -> list[dict[str, Any]]: ...
    @property
    def unable(self) -> dict[str, str]: ...

class Communicator:
    """A group of ranks, as seen by this rank. n is the number of its ranks.

    Each collective has three forms: blocking, `_async` (returns a Request) and `_plan` (returns a
    Plan, which runs the collective repeatedly). All forms accept:
      dtype: see above
      algorithm: such as "ring" or "mine.json"; "": automatic
      timeout_ms: -1: the communicator's limit; 0: no limit
      max_error: if it is above 0, such as 0.01, float32 data may be rounded between hosts. -1: the
        communicator's max_error, for sums; 0: exact
    Calls from several threads run one after the other. Only abort(), label(), failure() and
    statistics() do not wait for other calls.
    """

    @property
    def rank(self) -> int:
        """This rank's number in the group, from 0."""
    @property
    def size(self) -> int:
        """The number of ranks in the group."""
    @property
    def hosts(self) -> int:
        """The number of hosts of the group."""
    @property
    def local_rank(self) -> int:
        """This rank's number among the ranks of the group on its host."""
    @property
    def local_size(self) -> int:
        """The number of ranks of the group on this rank's host."""
    @property
    def closed(self) -> bool:
        """True after close()."""
    def close(self) -> None:
        """Leaves the group. If this rank then has no group, plan, request or region of the world
        left, peers that wait for this rank raise PeerLostError.
        """
    def abort(self, reason: str = "") -> None:
        """Ends all operations of this world on all ranks with AbortedError. Any thread may call it."""
    def label(self, text: str = "") -> None:
        """Labels this rank's next calls on all groups of this world, for example with a layer or
        phase. Recordings show the label until the next call of label(). Empty: no label. Any thread
        may call it.
        """
    def failure(self) -> Error | None:
        """Returns the exception that the next operation would raise because the world has ended;
        otherwise None. Checks for dead ranks, and never waits. Any thread may call it, also during
        an operation.
        """
    def late_ranks(self) -> list[int]:
        """Returns the ranks of this group that have not entered this rank's latest collective. May
        be called after a timeout. Ranks of other hosts report their position only while a rank
        waits. Before their report they count as late.
        """
    def statistics(self) -> dict[str, dict[str, Any]]:
        """Returns the cost of this group's calls on this rank, for each kind of call ("all_reduce",
        "send"). Any thread may call it, also during an operation.

        calls, bytes: totals. moving_s: time inside blocking calls, without waits. waiting_s: time
        of waits. waiting_for_s: time of waits by the rank that was waited for. skew: a histogram of
        the wait per call. skew[0] counts waits below one microsecond, and skew[k] counts waits from
        2**(k-1) to 2**k microseconds.
        """
    def __enter__(self) -> Communicator: ...
    def __exit__(self, *error: object) -> None: ...
    def broadcast(
        self, data: B, root: int = 0, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> B:
        """Copies the root's `data` into `data` of all ranks."""
    def broadcast_async(
        self, data: Buffer, root: int = 0, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def broadcast_plan(
        self, data: Buffer, root: int = 0, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def all_reduce(
        self, data: B, out: Buffer | None = None, op: Op = "sum", *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Any:
        """Reduces `data` of all ranks into every `out` (same length); without `out`, into
        `data`."""
    def all_reduce_async(
        self, data: Buffer, out: Buffer | None = None, op: Op = "sum", *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def all_reduce_plan(
        self, data: Buffer, out: Buffer | None = None, op: Op = "sum", *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def reduce(
        self, data: Buffer, out: Buffer | None = None, op: Op = "sum", root: int = 0, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Any:
        """Reduces `data` of all ranks into the root's `out`, or without `out` into the root's
        `data`."""
    def reduce_async(
        self, data: Buffer, out: Buffer | None = None, op: Op = "sum", root: int = 0, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def reduce_plan(
        self, data: Buffer, out: Buffer | None = None, op: Op = "sum", root: int = 0, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def scatter(
        self, data: Buffer | None, out: B, root: int = 0, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> B:
        """Copies part r of the root's `data` (n * k elements) into `out` (k elements) of rank r."""
    def scatter_async(
        self, data: Buffer | None, out: Buffer, root: int = 0, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def scatter_plan(
        self, data: Buffer | None, out: Buffer, root: int = 0, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def gather(
        self, data: Buffer, out: Buffer | None = None, root: int = 0, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Any:
        """Copies `data` (k elements) of rank r into part r of the root's `out` (n * k elements)."""
    def gather_async(
        self, data: Buffer, out: Buffer | None = None, root: int = 0, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def gather_plan(
        self, data: Buffer, out: Buffer | None = None, root: int = 0, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def all_gather(
        self, data: Buffer, out: B, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> B:
        """Copies `data` (k elements) of rank r into part r of every `out` (n * k elements)."""
    def all_gather_async(
        self, data: Buffer, out: Buffer, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def all_gather_plan(
        self, data: Buffer, out: Buffer, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def reduce_scatter(
        self, data: Buffer, out: B, op: Op = "sum", *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> B:
        """Reduces `data` (n * k elements) of all ranks. Rank r gets part r in `out` (k
        elements)."""
    def reduce_scatter_async(
        self, data: Buffer, out: Buffer, op: Op = "sum", *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def reduce_scatter_plan(
        self, data: Buffer, out: Buffer, op: Op = "sum", *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def all_to_all(
        self, data: Buffer, out: B, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> B:
        """Copies part d of rank s's `data` into part s of rank d's `out`, n * k elements each."""
    def all_to_all_async(
        self, data: Buffer, out: Buffer, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def all_to_all_plan(
        self, data: Buffer, out: Buffer, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def scan(
        self, data: B, out: Buffer | None = None, op: Op = "sum", *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Any:
        """Reduces `data` of ranks 0 to r into `out` on rank r; without `out`, into `data`.

        `op` must not be avg.
        """
    def scan_async(
        self, data: Buffer, out: Buffer | None = None, op: Op = "sum", *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def scan_plan(
        self, data: Buffer, out: Buffer | None = None, op: Op = "sum", *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def exclusive_scan(
        self, data: B, out: Buffer | None = None, op: Op = "sum", *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Any:
        """Reduces `data` of ranks 0 to r-1 into `out` on rank r; without `out`, into `data`.

        Rank 0 gets the identity of `op`, such as 0 for "sum". If `op` is a function, `out` of rank
        0 is unchanged. `op` must not be avg.
        """
    def exclusive_scan_async(
        self, data: Buffer, out: Buffer | None = None, op: Op = "sum", *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def exclusive_scan_plan(
        self, data: Buffer, out: Buffer | None = None, op: Op = "sum", *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def barrier(
        self, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> None:
        """Waits until all ranks have called barrier()."""
    def barrier_async(
        self, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def barrier_plan(
        self, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def scatter_v(
        self, data: Buffer | None, out: B, counts: list[int], root: int = 0, displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> B:
        """counts[r]: elements of part r (same list on all ranks). displs[r]: offset of part r."""
    def scatter_v_async(
        self, data: Buffer | None, out: Buffer, counts: list[int], root: int = 0, displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def scatter_v_plan(
        self, data: Buffer | None, out: Buffer, counts: list[int], root: int = 0, displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def gather_v(
        self, data: Buffer, out: Buffer | None = None, counts: list[int] = ..., root: int = 0, displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Any:
        """counts[r]: elements of part r (same list on all ranks). displs[r]: offset of part r."""
    def gather_v_async(
        self, data: Buffer, out: Buffer | None = None, counts: list[int] = ..., root: int = 0, displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def gather_v_plan(
        self, data: Buffer, out: Buffer | None = None, counts: list[int] = ..., root: int = 0, displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def all_gather_v(
        self, data: Buffer, out: B, counts: list[int], displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> B:
        """counts[r]: elements of part r (same list on all ranks). displs[r]: offset of part r."""
    def all_gather_v_async(
        self, data: Buffer, out: Buffer, counts: list[int], displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def all_gather_v_plan(
        self, data: Buffer, out: Buffer, counts: list[int], displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def reduce_scatter_v(
        self, data: Buffer, out: B, counts: list[int], op: Op = "sum", displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> B:
        """counts[r]: elements of part r (same list on all ranks). displs[r]: offset of part r."""
    def reduce_scatter_v_async(
        self, data: Buffer, out: Buffer, counts: list[int], op: Op = "sum", displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def reduce_scatter_v_plan(
        self, data: Buffer, out: Buffer, counts: list[int], op: Op = "sum", displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def all_to_all_v(
        self, data: Buffer, counts: list[int], out: B, recv_counts: list[int], displs: list[int] | None = None, recv_displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> B:
        """Sends counts[i] elements of `data` to rank i, and receives recv_counts[i] from rank i."""
    def all_to_all_v_async(
        self, data: Buffer, counts: list[int], out: Buffer, recv_counts: list[int], displs: list[int] | None = None, recv_displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Request: ...
    def all_to_all_v_plan(
        self, data: Buffer, counts: list[int], out: Buffer, recv_counts: list[int], displs: list[int] | None = None, recv_displs: list[int] | None = None, *, dtype: Dtype = None, max_error: float = -1, algorithm: str = "", timeout_ms: int = -1
    ) -> Plan: ...
    def explain(
        self, collective: str, count: int, dtype: Dtype = "float32", *, root: int = 0,
        algorithm: str = "",
    ) -> Explanation:
        """Explains which algorithm a call with `count` elements uses. Local."""
    def send(self, data: Buffer, to: int, tag: int = 0, *, timeout_ms: int = -1) -> None:
        """Sends the bytes of `data` to rank `to`. If the message fits into the lane's buffers (256
        KiB within a host, about 2 MiB between hosts), send() may return before the message is
        received.
        """
    def send_async(
        self, data: Buffer, to: int, tag: int = 0, *, timeout_ms: int = -1
    ) -> Request: ...
    def recv(self, data: B, from_: int, tag: int = 0, *, timeout_ms: int = -1) -> B:
        """Receives into `data`. A message of another size raises MismatchError on all ranks."""
    def recv_async(
        self, data: Buffer, from_: int, tag: int = 0, *, exact: bool = True, timeout_ms: int = -1
    ) -> Request:
        """With exact=False, messages may be shorter than `data`. received() returns the length."""
    def send_recv(
        self, data: Buffer, to: int, out: B, from_: int, tag: int = 0, *, timeout_ms: int = -1
    ) -> B:
        """Sends and receives at the same time."""
    def split(self, color: int, key: int = 0) -> Communicator | None:
        """Splits the group by color. Returns None if color < 0. Collective."""
    def subgroup(self, members: list[int], id: int) -> Communicator:
        """Makes a group of `members`. Only these ranks call it, and each must be its own process.
        Two groups that share a member need different ids while both exist.
        """
    def shrink(self, *, timeout_ms: int = -1, quorum: bool = True) -> Communicator:
        """Makes a communicator of the ranks that remain after an error has ended the world. All
        remaining ranks call it.
        """
    def grow(self, size: int, *, address: str = "") -> Communicator:
        """Adds new ranks, which call connect() for a world of `size` ranks. Collective."""
    @property
    def previous_ranks(self) -> list[int]:
        """For each rank: its number in the world before shrink()."""
    def group(self, body: Callable[[], object]) -> None:
        """Starts the asynchronous calls of body() together, and waits for all of them. Do not call
        wait() on their requests: it raises UsageError.
        """
    def allocate(self, nbytes: int) -> Region:
        """Allocates zeroed, page-aligned memory that the peers access directly. Local."""
    def register_buffer(self, data: Buffer) -> Region:
        """Moves the whole pages of `data` to memory that the peers access directly. Local.

        The address of `data` does not change.
        """

def connect(
    *, rank: int = -1, size: int = -1, job: str = "", token: str = "", file: Path | None = None,
    connect_timeout_ms: int = 30000, timeout_ms: int = 300000, algorithm: str = "",
    profile: Path | None = None, wait_spin: int = -1, wait_yield_us: int = -1, address: str = "", interface: str = "", ports: str = "",
    transport: Literal["auto", "shm", "tcp"] | None = None, host: str = "", checksum: bool | None = None, threads: int = 0, max_error: float = -1,
    bootstrap: Callable[[bytes], list[bytes]] | None = None,
) -> Communicator:
    """Joins the world that arguments and environment describe. Blocks until all ranks have joined.

    bootstrap(mine): for ranks that can already communicate, such as over MPI or a store. It sends
    `mine` to all ranks and returns the list of the bytes of all ranks. No rank then listens at an
    address. connect() calls it once, on a separate thread, and raises its exceptions.
    """

T = TypeVar("T")

def run_threads(
    ranks: int, body: Callable[[Communicator], T], *, job: str = "", token: str = "",
    file: Path | None = None, connect_timeout_ms: int = 30000, timeout_ms: int = 300000, algorithm: str = "",
    profile: Path | None = None, wait_spin: int = -1, wait_yield_us: int = -1, address: str = "", interface: str = "", ports: str = "",
    transport: Literal["auto", "shm", "tcp"] | None = None, host: str = "", checksum: bool | None = None, threads: int = 0, max_error: float = -1,
) -> list[T]:
    """Starts `ranks` threads of this process as ranks, and calls body(comm) in each of them."""

def _close_all() -> None: ...

class Move:
    """A range of chunks from one rank to another, in one step (counted from 0)."""

    step: int
    from_: int
    to: int
    chunk: int
    chunks: int
    line: int
    source: str
    target: str
    reduces: bool

class Finding:
    """A mistake in a schedule, and the position of the mistake."""

    kind: str
    step: int
    rank: int
    chunk: int
    line: int
    text: str

class Algorithm:
    """An entry of the catalogue."""

    name: str
    collective: str
    summary: str
    source: str
    limits: str
    allows_v: bool
    in_place: bool
    def can_serve(self, ranks: int) -> bool:
        """Returns True if the algorithm works on this number of ranks."""

class Schedule:
    """An algorithm as data: the moves between all ranks."""

    collective: str
    algorithm: str
    ranks: int
    root: int
    chunks: int
    steps: int
    file: str
    phases: list[tuple[str, int]]
    moves: list[Move]
    counts: list[list[int]]
    def with_counts(
        self, send: Any, receive: Any = ..., element_bytes: int = 1
    ) -> Schedule: ...
    def verify(self) -> list[Finding]: ...
    def verify_in_place(self) -> list[Finding]: ...
    def show(self, step: int | None = None, width: int = 100) -> str: ...
    def to_json(self) -> str:
        """Returns the text of a schedule file."""
    @staticmethod
    def from_json(text: str) -> Schedule: ...
    def save(self, path: Path) -> None: ...
    @staticmethod
    def load(path: Path) -> Schedule:
        """Reads a schedule file; raises ValueError for a syntax error. Does not verify it."""

class Builder:
    """Builds a schedule move by move."""

    def __init__(
        self, collective: str, ranks: int, chunks: int, root: int = 0, algorithm: str = "mine"
    ) -> None: ...
    def phase(self, name: str) -> None: ...
    def step(self) -> None: ...
    def move(
        self, from_: int, to: int, chunk: int, chunks: int = 1, *, reduce: bool = False,
        source: str = "automatic", target: str = "automatic",
    ) -> None: ...
    def build(self) -> Schedule: ...

def catalog(collective: str = "") -> list[Algorithm]: ...
def build(target: str, ranks: int, root: int = 0) -> Schedule: ...
def verify_claims(schedule: Schedule) -> list[Finding]: ...
def beside(a: Schedule, b: Schedule) -> Schedule: ...
def then(a: Schedule, b: Schedule) -> Schedule: ...
def sub(
    schedule: Schedule, *, collective: str, ranks: int, chunks: int, root: int = 0,
    members: list[int], first_chunk: int = 0, width: int = 1, stride: int = 1, begins: bool = False,
) -> Schedule: ...

class Link:
    """A network with one link for each pair of ranks. All links are equal."""

    def __init__(
        self, *, alpha_us: float, beta_gb_per_s: float, gamma_gb_per_s: float = 0,
        floor_us: float = 0,
    ) -> None: ...

class Topology:
    """Devices, the links between them, and the device of each rank."""

    name: str
    source: str
    ranks: int
    devices: list[str]
    links: int
    def to_json(self) -> str:
        """Returns the text of a file in the format unisono.topology/1."""

class Simulation:
    total_us: float
    messages: float
    item_end_us: list[float]
    def report_json(self) -> str: ...
    def trace_json(self) -> str: ...

class Machine:
    """A machine measured by `unisono tune`."""

    name: str
    @staticmethod
    def from_json(text: str) -> Machine:
        """Reads the text of a file that `unisono tune` wrote."""
    def time_us(self, target: str, ranks: int, bytes: float) -> float: ...

def plan(collective: str, ranks: int, bytes: float, link: Link) -> dict[str, Any]: ...
def plan_training(
    model: str, on: Topology, batch: float, sequence: float, precision: str, layout: str, device: str, top: int,
) -> dict[str, Any]: ...
def plan_serving(
    model: str, on: Topology, input: float, output: float, precision: str, concurrency: float, ttft: float, tpot: float,
    rate: float, imbalance: float, prefix_hits: float, speculate: Sequence[float] | None, pools: bool, layout: str, device: str, top: int,
) -> dict[str, Any]: ...
def topology(text: str) -> Topology: ...
def presets() -> dict[str, str]: ...
def simulate(target: Schedule | str, on: Link | Topology, **options: Any) -> Simulation: ...

class PipelineSchedule:
    """The order in which each rank computes its stages and microbatches. It has been verified."""

    @staticmethod
    def by_name(name: str, ranks: int, microbatches: int, chunks: int = 0) -> PipelineSchedule:
        """Makes a schedule that `unisono pipeline list` names."""
    @staticmethod
    def parse(text: str) -> PipelineSchedule:
        """Reads the text of a file in the format unisono.pipeline/1 or PyTorch's CSV."""
    @property
    def ranks(self) -> int:
        """The number of ranks of the pipeline."""
    @property
    def stages(self) -> int:
        """The number of stages on all ranks."""
    @property
    def microbatches(self) -> int:
        """The number of microbatches per step."""
    @property
    def capacity(self) -> int:
        """The number of unread messages that one lane can hold."""
    def rank_of(self, stage: int) -> int: ...
    def stages_of(self, rank: int) -> list[int]: ...
    def chains(self) -> list[list[int]]: ...
    def actions_of(self, rank: int) -> list[str]: ...
    def text(self) -> str: ...

class PipelineRunner:
    """Runs a pipeline schedule on the ranks of a communicator; see unisono.pipeline.Pipeline."""

    def __init__(
        self,
        comm: Communicator,
        schedule: PipelineSchedule,
        stages: dict[int, tuple[tuple[Any, Sequence[int]] | None, tuple[Any, Sequence[int]] | None]],
        *,
        forward: Callable[[int, int, memoryview | None, memoryview | None], object],
        backward: Callable[..., object] | None = None,
        backward_input: Callable[..., object] | None = None,
        backward_weight: Callable[..., object] | None = None,
        reduce_grad: Callable[[int], object] | None = None,
        unshard: Callable[[int], object] | None = None,
        reshard: Callable[[int], object] | None = None,
        overlap: Callable[[list[Callable[[], None]]], object] | None = None,
        timeout_ms: int = -1,
        record: bool = False,
    ) -> None: ...
    def run_step(self) -> None: ...
    def times_json(self) -> str: ...
    def close(self) -> None: ...
    @property
    def most_bytes_held(self) -> int:
        """The most bytes that inputs, outputs and gradients have occupied on this rank."""

class ExpertRouting:
    """The ranks that each token is sent to. route() makes it. May be used any number of times."""

    @property
    def tokens(self) -> int: ...
    @property
    def rows(self) -> int: ...
    def first_row(self, local: int) -> int: ...
    def rows_of(self, local: int) -> int: ...
    @property
    def experts_here(self) -> list[int]: ...
    @property
    def chosen(self) -> list[int]: ...
    @property
    def dropped(self) -> int: ...
    @property
    def rows_of_ranks(self) -> list[int]: ...
    def _sources(self) -> bytes: ...
    def _experts(self) -> bytes: ...

class ExpertRequest:
    """A call in progress; see unisono.expert.Pending."""

    def wait(self, timeout_ms: int) -> None: ...
    def test(self) -> bool: ...

class ExpertExchange:
    """Dispatch and combine for mixtures of experts; see unisono.expert.ExpertExchange."""

    def __init__(
        self,
        comm: Communicator,
        experts: int,
        k: int,
        layout: str,
        alignment: int,
        capacity: int,
        experts_of_rank: Sequence[Sequence[int]],
        max_tokens: int,
        row_bytes: int,
    ) -> None: ...
    def route(self, chosen: Any) -> ExpertRouting: ...
    def dispatch(
        self,
        routing: ExpertRouting,
        payloads: Sequence[tuple[Any, Any, int, bool, str]],
        is_async: bool,
    ) -> ExpertRequest | None:
        """payloads: a list of (tokens, out, row_bytes, one_a_slot, coding)."""
    def gather_list(self, routing: ExpertRouting, tokens: Any, row_bytes: int) -> bytes:
        """Returns the 64-bit addresses of the rows."""
    def end_gather(self) -> None: ...
    def combine(
        self,
        routing: ExpertRouting,
        rows: Any,
        out: Any,
        hidden: int,
        weights: Any,
        residual: Any,
        coding: str,
        is_async: bool,
    ) -> ExpertRequest | None: ...
    def combine_backward(
        self,
        routing: ExpertRouting,
        gradient: Any,
        rows_gradient: Any,
        hidden: int,
        weights: Any,
        rows: Any,
        weights_gradient: Any,
    ) -> None: ...
    def mask(self, ranks: Sequence[int], routes: int | None) -> list[int]: ...
    def masked(self) -> list[int]: ...
    def max_tokens(self) -> int: ...
    def max_rows(self) -> int: ...
    def close(self) -> None: ...

def balance_experts(
    loads: Sequence[float], ranks: int, physical_experts: int, groups: int, hosts: int
) -> tuple[list[list[int]], list[float]]: ...
def find_expert_moves(
    before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]
) -> list[tuple[int, int, int]]: ...
def bytes_of_moves(
    moves: Sequence[tuple[int, int, int]], ranks: int, expert_bytes: int
) -> list[list[int]]: ...
def move_experts(
    comm: Communicator,
    moves: Sequence[tuple[int, int, int]],
    expert_bytes: int,
    held: Any,
    placed: Any,
) -> None: ...
def experts_after_shrink(
    survivors: Communicator,
    experts: int,
    experts_of_rank: Sequence[Sequence[int]],
    ranks_before: int,
) -> list[list[int]]: ...
def array_of(array: Any) -> tuple[list[int], str, int]:
    """Returns (shape, dtype, bytes per element) of memory that has __dlpack__ or a buffer."""

class DeviceArray:
    @property
    def shape(self) -> tuple[int, ...]:
        """The number of elements in each dimension."""
    @property
    def dtype(self) -> str:
        """The type of the elements, such as "float32"."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(self, **kwargs: Any) -> Any:
        """Does not wait. The caller passes the stream on which the memory was written."""

class DeviceGroup:
    def __init__(
        self,
        comm: Communicator,
        *,
        device: int = 0,
        channels: int = 0,
        timeout_ms: int = -1,
        scratch_bytes: int = 33554432,
    ) -> None: ...
    @property
    def rank(self) -> int:
        """This rank's number in the group, from 0."""
    @property
    def size(self) -> int:
        """The number of ranks in the group."""
    @property
    def device(self) -> int:
        """The number of this rank's CUDA device."""
    @property
    def closed(self) -> bool:
        """True after close()."""
    def allocate(self, shape: Sequence[int], dtype: Dtype = "float32") -> DeviceArray:
        """Allocates device memory that all ranks can reach while the group lives. Collective."""
    def check(self) -> None:
        """If an error has ended the group, raises this error. Any thread may call it."""
    def synchronize(self, stream: Any = None, timeout_ms: int = 0) -> None:
        """Returns when all work of the stream is done. Any thread may call it."""
    def close(self) -> None:
        """Waits for this rank's calls, and for close() on the other ranks. Collective."""
    def broadcast(
        self, data: B, root: int = 0, *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> B:
        """Copies the root's `data` into `data` of all ranks."""
    def all_reduce(
        self, data: B, out: Buffer | None = None, op: Op = "sum", *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> Any:
        """Reduces `data` of all ranks into every `out`; without `out`, into `data`."""
    def reduce(
        self, data: Buffer, out: Buffer | None = None, op: Op = "sum", root: int = 0, *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> Any:
        """Reduces `data` of all ranks into the root's `out`, or without `out` into the root's
        `data`."""
    def scatter(
        self, data: Buffer | None, out: B, root: int = 0, *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> B:
        """Copies part r of the root's `data` (n * k elements) into `out` (k elements) of rank r."""
    def gather(
        self, data: Buffer, out: Buffer | None = None, root: int = 0, *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> Any:
        """Copies `data` (k elements) of rank r into part r of the root's `out` (n * k elements)."""
    def all_gather(
        self, data: Buffer, out: B, *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> B:
        """Copies `data` (k elements) of rank r into part r of every `out` (n * k elements)."""
    def reduce_scatter(
        self, data: Buffer, out: B, op: Op = "sum", *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> B:
        """Reduces `data` (n * k elements) of all ranks. Rank r gets part r in `out` (k
        elements)."""
    def all_to_all(
        self, data: Buffer, out: B, *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> B:
        """Copies part d of rank s's `data` into part s of rank d's `out`, n * k elements each."""
    def barrier(
        self, *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> None:
        """Orders the streams: later work begins when all ranks' streams are at the barrier."""
    def scatter_v(
        self, data: Buffer | None, out: B, counts: list[int], root: int = 0, displs: list[int] | None = None, *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> B:
        """Copies part r of the root's `data`, of counts[r] elements, into `out` of rank r."""
    def gather_v(
        self, data: Buffer, out: Buffer | None = None, counts: list[int] = ..., root: int = 0, displs: list[int] | None = None, *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> Any:
        """Copies `data` of rank r into part r, of counts[r] elements, of the root's `out`."""
    def all_gather_v(
        self, data: Buffer, out: B, counts: list[int], displs: list[int] | None = None, *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> B:
        """Copies `data` of rank r into part r, of counts[r] elements, of every `out`."""
    def reduce_scatter_v(
        self, data: Buffer, out: B, counts: list[int], op: Op = "sum", displs: list[int] | None = None, *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> B:
        """Reduces `data` of all ranks. Part r, of counts[r] elements, goes to `out` of rank r."""
    def all_to_all_v(
        self, data: Buffer, counts: list[int], out: B, recv_counts: list[int], displs: list[int] | None = None, recv_displs: list[int] | None = None, *, dtype: Dtype = None, algorithm: str = "", stream: Any = None
    ) -> B:
        """Sends counts[i] elements of `data` to rank i, and receives recv_counts[i] from rank i."""
