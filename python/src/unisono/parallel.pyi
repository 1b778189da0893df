"""Types and summaries. help(unisono.parallel) and include/unisono/parallel/ give shapes and
errors."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeVar

from unisono._core import Communicator

Buffer = Any
Dtype = Any
Path = str | PathLike[str]
B = TypeVar("B")
# The whole shape, this rank's part, the index of the part's first element, and the dtype if this
# rank has no part.
Part = tuple[Any, ...]

class ContextAxes:
    def __init__(
        self,
        outer: Communicator | None = None,
        heads: Communicator | None = None,
        *,
        method: str = "ring",
        order: str = "zigzag",
    ) -> None: ...
    def positions(self, length: int) -> list[int]:
        """Returns this rank's positions of a sequence of `length`."""

class GradientBuckets:
    def __init__(
        self,
        comm: Communicator,
        *,
        first_bytes: int = 1 << 20,
        bytes: int = 25 << 20,
        op: str = "avg",
        allow_unused: bool = False,
        learn_order: bool = True,
        timeout_ms: int = 20_000,
    ) -> None: ...
    def add(self, name: str, count: int) -> int:
        """Adds a gradient of `count` elements before the first step. Returns its index. Local."""
    def begin(self, reduce: bool = True) -> None:
        """Begins a step. With reduce=False the step only accumulates: nothing is sent.

        Local, except the first begin() after a step that reduced: with learn_order it is
        collective.
        """
    def add_to(self, index: int, values: Buffer) -> None:
        """Adds `values`, which has all elements of the gradient, in float32. Local."""
    def ready(self, index: int) -> None:
        """Marks a gradient as complete. All ranks use the same order. Collective."""
    def finish(self) -> None:
        """Waits until all gradients are combined. Collective."""
    def copy_to(self, index: int, out: B) -> B:
        """Copies a combined gradient to `out`, and returns `out`. Local."""
    @property
    def buckets(self) -> int:
        """The number of buckets."""
    @property
    def exposed_us(self) -> float:
        """How long finish() has waited in this step, in microseconds."""
    def close(self) -> None:
        """Leaves the groups of the buckets."""

class Mesh:
    def __init__(self, comm: Communicator, text: str) -> None: ...
    @property
    def shape(self) -> MeshShape:
        """The axes of this mesh and their sizes."""
    @property
    def world(self) -> Communicator:
        """The communicator of all ranks of the mesh."""
    def size(self, names: str) -> int:
        """Returns the number of ranks of a group along these axes. Local."""
    def coordinate(self, names: str) -> int:
        """Returns this rank's index in its group along these axes. Local."""
    def axis(self, names: str) -> Communicator:
        """Returns this rank's group along one axis, or along several axes: "dp,cp".

        The first call for an axis is collective over the group.
        """
    def close(self) -> None:
        """Leaves all groups of the mesh."""

class MeshShape:
    def __init__(self, text: str, ranks: int = 0) -> None: ...
    @property
    def ranks(self) -> int:
        """The product of all axes."""
    @property
    def axes(self) -> dict[str, int]:
        """The size of each axis, slowest first."""
    @property
    def folded(self) -> dict[str, int]:
        """The axes after the semicolon."""
    def size(self, names: str) -> int: ...
    def coordinate(self, rank: int, names: str) -> int: ...
    def groups(self, names: str) -> list[list[int]]: ...

class Parameter:
    def __init__(
        self, name: str, count: int, *, decays: bool = True, counted: bool = True
    ) -> None: ...
    @property
    def name(self) -> str:
        """The name of the parameter in error texts."""
    @property
    def count(self) -> int:
        """The number of elements."""

class Placement:
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class ShardedState:
    def __init__(
        self,
        comm: Communicator,
        units: Sequence[Sequence[Parameter]],
        *,
        stage: int = 1,
        dtype: Dtype = "float32",
        op: str = "avg",
        rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.95,
        epsilon: float = 1e-08,
        decay: float = 0.0,
        max_norm: float = 0.0,
        replicas: Communicator | None = None,
        model: Communicator | None = None,
    ) -> None: ...
    def count(self, unit: int) -> int:
        """Returns the number of elements of a unit, without padding. Local."""
    def set(self, unit: int, values: Buffer) -> None:
        """Sets the whole unit; all ranks pass the same values. Collective."""
    def whole(self, unit: int, out: B) -> B:
        """Fills `out` with the whole unit from the masters, and returns `out`. Collective."""
    def parameters(self, unit: int, out: B) -> B:
        """Copies the unit's parameters to `out`, and returns `out`. Collective in stage 3."""
    def prefetch(self, unit: int) -> None:
        """Starts to gather the parameters that parameters() needs. Collective in stage 3."""
    def release(self, unit: int) -> None:
        """Frees the parameters that parameters() has gathered. Local."""
    def add_to_gradients(self, unit: int, values: Buffer, first: int = 0) -> None:
        """Adds `values` to the unit's gradients, starting at element `first`. Local."""
    def gradients_ready(self, unit: int) -> None:
        """Marks the unit's gradients as complete, and starts their reduction. Collective."""
    def wait_gradients(self) -> None:
        """Waits for the reductions in progress. step() also does this. Collective."""
    def step(self) -> float:
        """Waits for the reductions, clips the gradients, and updates the parameters. Collective.

        Returns the norm of all gradients before clipping.
        """
    @property
    def bytes_held(self) -> dict[str, int]:
        """The bytes that this rank holds now, by purpose."""
    @property
    def exposed_us(self) -> float:
        """How long calls have waited for transfers since the last step() began, in microseconds."""
    def close(self) -> None:
        """Leaves the groups of the state."""

def Partial(op: str = "sum") -> Placement: ...
def Replicate() -> Placement: ...
def Shard(dim: int) -> Placement: ...
def causal_work(order: str, length: int, ranks: int, rank: int) -> int: ...
def conjugate(from_: Placement, to: Placement) -> tuple[Placement, Placement]: ...
def context_attention(
    axes: ContextAxes,
    shape: tuple[int, int, int, int],
    causal: bool,
    length: int,
    forward: Callable[..., None],
    query: Buffer,
    key: Buffer,
    value: Buffer,
    out: Buffer,
    log_sum: Buffer,
) -> None: ...
def context_attention_backward(
    axes: ContextAxes,
    shape: tuple[int, int, int, int],
    causal: bool,
    length: int,
    backward: Callable[..., None],
    query: Buffer,
    key: Buffer,
    value: Buffer,
    out: Buffer,
    log_sum: Buffer,
    gradient: Buffer,
    query_gradient: Buffer,
    key_gradient: Buffer,
    value_gradient: Buffer,
) -> None: ...
def context_positions(order: str, length: int, ranks: int, rank: int) -> list[int]: ...
def enter_region(
    comm: Communicator, rows: int, width: int, data: Buffer, out: B, *, sequence: bool = False
) -> B: ...
def enter_region_backward(
    comm: Communicator, rows: int, width: int, data: Buffer, out: B, *, sequence: bool = False
) -> B: ...
def head_map(heads: int, key_value_heads: int, ranks: int, rank: int) -> list[int]: ...
def head_share(
    heads: int, key_value_heads: int, ranks: int, rank: int, even: bool = False
) -> tuple[slice, slice]: ...
def leave_region(
    comm: Communicator, rows: int, width: int, data: Buffer, out: B, *, sequence: bool = False
) -> B: ...
def leave_region_backward(
    comm: Communicator, rows: int, width: int, data: Buffer, out: B, *, sequence: bool = False
) -> B: ...
def list_checkpoint(folder: Path) -> dict[str, tuple[str, list[int]]]: ...
def load_checkpoint(
    folder: Path, tensors: Mapping[str, Part], comm: Communicator | None = None
) -> None: ...
def merge_decoded(
    comm: Communicator, shape: tuple[int, int, int, int], out: B, log_sum: Buffer
) -> B: ...
def redistribute(
    comm: Communicator,
    data: Buffer,
    from_: Placement,
    to: Placement,
    out: B,
    *,
    replicate_to_partial: bool = False,
    timeout_ms: int = -1,
) -> B: ...
def sample(candidates: Sequence[tuple[float, int]], temperature: float, uniform: float) -> int: ...
def save_checkpoint(comm: Communicator, folder: Path, tensors: Mapping[str, Part]) -> None: ...
def shard_range(size: int, ranks: int, rank: int) -> slice: ...
def top_candidates(
    comm: Communicator, vocabulary: int, logits: Buffer, count: int
) -> list[tuple[float, int]]: ...
def vocabulary_cross_entropy(
    comm: Communicator, vocabulary: int, logits: Buffer, targets: Buffer, scale: float, losses: B
) -> B: ...
def vocabulary_embedding(
    comm: Communicator, vocabulary: int, width: int, table: Buffer, tokens: Buffer, out: B
) -> B: ...
def vocabulary_embedding_backward(
    comm: Communicator,
    vocabulary: int,
    width: int,
    out_gradient: Buffer,
    tokens: Buffer,
    table_gradient: B,
) -> B: ...
