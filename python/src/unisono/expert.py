"""Mixture of experts: sends tokens to the ranks of their experts, and returns the outputs.

    exchange = unisono.expert.ExpertExchange(comm, experts=64, k=8)
    routing = exchange.route(chosen)              # [tokens, k] of int32 or int64; -1: no expert
    rows = exchange.dispatch(routing, tokens)     # [routing.rows, ...]
    ... experts compute rows[routing.rows_of_expert(i)] ...
    sums = exchange.combine(routing, outputs, weights)

Arrays are numpy arrays or torch tensors, C-contiguous. Results are of the same kind as the
arguments. All calls are collective. docs/guides/experts.md describes the layouts and the cost of
each call.
"""

import atexit
import math
import weakref

from unisono import _core

__all__ = ["ExpertExchange", "GatheredRows", "Pending", "Routing", "balance", "bytes_of_moves", "find_expert_moves", "move_experts"]

_open = weakref.WeakSet()


def balance(loads, ranks, physical_experts=0, groups=1, hosts=1):
    """Returns a placement of experts and their replicas as (experts by rank, load by rank). Local.

    loads: the number of tokens that chose each expert.
    physical_experts: the number of experts and replicas on all ranks; 0: no replicas.
    groups, hosts: each group of experts stays on one host. This requires that `groups` is a
    multiple of `hosts`, and that a rank has at most as many physical experts as its host has
    experts.
    """
    return _core.balance_experts([float(load) for load in loads], ranks, physical_experts, groups, hosts)


def find_expert_moves(before, after):
    """Returns (expert, from, to) for each copy of weights between two placements. Local.

    before, after: the experts of each rank, as in the argument experts_of_rank of ExpertExchange.
    """
    return _core.find_expert_moves(before, after)


def bytes_of_moves(moves, ranks, expert_bytes):
    """Returns [from][to], the bytes that ranks send to each other for these moves. Local."""
    return _core.bytes_of_moves(moves, ranks, expert_bytes)


def move_experts(comm, moves, expert_bytes, held, placed):
    """Copies weights between steps, expert_bytes per move. Collective.

    On the sending rank, held[expert] is the array to send. On the receiving rank, placed[expert] is
    the array to fill. `held` and `placed` may be any mapping by expert number. All weights are read
    before any weights are written, so an arriving expert may use the memory of a departing expert.
    Raises UsageError on all ranks, before any weights are written, if an array has a wrong length,
    is missing or is not contiguous.
    """
    _core.move_experts(comm, moves, expert_bytes, held, placed)


def _shape(array):
    return tuple(array.shape if hasattr(array, "shape") else _core.array_of(array)[0])


def _item_bytes(array):
    if hasattr(array, "itemsize"):
        return array.itemsize
    return array.element_size() if hasattr(array, "element_size") else _core.array_of(array)[2]


def _new(like, shape, dtype=None):
    """Returns an uninitialised array of the same kind as `like`. If `like` has only __dlpack__,
    returns a numpy array."""
    if hasattr(like, "new_empty"):
        return like.new_empty(shape, dtype=dtype and getattr(__import__("torch"), dtype))
    import numpy

    return numpy.empty(shape, dtype or _numpy_dtype(like))


def _numpy_dtype(array):
    import numpy

    if hasattr(array, "dtype"):
        return numpy.dtype(array.dtype)
    name = _core.array_of(array)[1]
    try:
        return numpy.dtype(name)
    except TypeError:  # bfloat16 and similar types
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, name))


def _numbers(data, dtype, columns):
    import numpy

    return numpy.frombuffer(data, dtype).reshape(-1, columns)


class Routing:
    """The ranks that each token is sent to. route() makes it. May be used any number of times."""

    def __init__(self, made, k, layout):
        self._made = made
        self._columns = k if layout == "rank_major" else 1

    def __getattr__(self, name):
        if name in ("tokens", "rows", "experts_here", "chosen", "dropped", "rows_of_ranks"):
            return getattr(self._made, name)
        raise AttributeError(f"a routing has no '{name}'")

    def rows_of_expert(self, local):
        """Returns the slice of rows of this rank's expert `local`. Only for expert_major."""
        first = self._made.first_row(local)
        return slice(first, first + self._made.rows_of(local))

    @property
    def sources(self):
        """Returns [rows, 3], the source of each row: rank (-1: padding), token, slot."""
        return _numbers(self._made._sources(), "i8", 3)

    @property
    def experts(self):
        """Returns [rows, 1], the local number of each row's expert; -1: padding.

        rank_major: returns [rows, k], the local number for each slot; -1: not on this rank.
        """
        return _numbers(self._made._experts(), "i4", self._columns)


class Pending:
    """A dispatch or combine on the exchange's thread. Do not change its arguments until it ends."""

    def __init__(self, request, out, routing):
        self._request = request
        self._out = out
        self._routing = routing  # kept alive for the thread

    def wait(self, timeout_ms=-1):
        """Waits for the call, and returns its rows or sums. May be called again."""
        self._request.wait(timeout_ms)
        return self._out

    def test(self):
        """Returns True if the call has ended. Does not wait."""
        return self._request.test()


class _Foreign:
    """Bytes at an address, for numpy. A reference keeps the memory alive."""

    def __init__(self, address, count, owner):
        self.__array_interface__ = {
            "data": (address, False), "shape": (count,), "typestr": "|u1", "version": 3
        }
        self._owner = owner


class GatheredRows:
    """Rows in the memory of their source ranks: rows[i] is a view, or None for padding.

    The rows are read-only. They are valid until the next combine() or end_gather() of the exchange.
    A view keeps the exchange and the arguments of gather_list() alive.
    """

    def __init__(self, exchange, tokens, addresses, row_bytes):
        self.addresses = addresses  # [rows] of uint64; 0 for padding
        self._exchange = exchange
        self._tokens = tokens
        self._row_bytes = row_bytes

    def __len__(self):
        return len(self.addresses)

    def __getitem__(self, row):
        import numpy

        address = int(self.addresses[row])
        if address == 0:
            return None
        shape = _shape(self._tokens)[1:]
        data = numpy.asarray(_Foreign(address, self._row_bytes, self))
        if hasattr(self._tokens, "new_empty"):
            import torch

            return torch.from_numpy(data).view(self._tokens.dtype).reshape(shape)
        view = data.view(_numpy_dtype(self._tokens)).reshape(shape)
        view.flags.writeable = False
        return view


class ExpertExchange:
    """Exchanges tokens between the experts on the ranks of a communicator. Collective.

    layout: "expert_major", "rank_major" or "flat".
    alignment: in expert_major, the index of each expert's first row is a multiple of this number.
    capacity: the largest number of rows for one expert, over all ranks; -1: no limit.
    experts_of_rank: the experts of each rank. Several ranks may hold replicas of one expert. Empty:
    consecutive experts on each rank.
    max_tokens, row_bytes: the largest number of tokens that a rank routes at once, and the bytes of
    a row. With both, memory is allocated in advance. Larger calls are no error.

    Raises the communicator's errors, on all ranks. After UsageError and MismatchError the exchange
    remains usable. TypeError and ValueError are raised only on the rank with the wrong arguments,
    before its call. The other ranks then wait for that rank.
    """

    def __init__(
        self,
        comm,
        experts,
        k,
        layout="expert_major",
        alignment=1,
        capacity=-1,
        experts_of_rank=(),
        max_tokens=0,
        row_bytes=0,
    ):
        self.k = k
        self.layout = layout
        places = [list(rank) for rank in experts_of_rank]
        self._options = (experts, k, layout, alignment, capacity, places, max_tokens, row_bytes)
        self._ranks = comm.size
        self._made = _core.ExpertExchange(comm, *self._options)
        _open.add(self)

    def after_shrink(self, survivors):
        """Returns an exchange with the same options on the ranks that remain after
        Communicator.shrink(). Collective.

        Each rank keeps its experts. Replicas replace the experts of the lost ranks.
        """
        experts, k, layout, alignment, capacity, places, max_tokens, row_bytes = self._options
        left = _core.experts_after_shrink(survivors, experts, places, self._ranks)
        return ExpertExchange(survivors, experts, k, layout, alignment, capacity, left, max_tokens, row_bytes)

    def route(self, chosen):
        """Returns the Routing for chosen[tokens, k]; -1: no expert. Collective."""
        shape = _shape(chosen)
        if shape[1:] != (self.k,) and not (len(shape) == 1 and self.k == 1):
            raise ValueError(f"route(): chosen is {list(shape)}, not [tokens, {self.k}]")
        return Routing(self._made.route(chosen), self.k, self.layout)

    @property
    def max_tokens(self):
        """The largest number of tokens that any rank has routed at once, or the constructor's
        max_tokens if it is larger."""
        return self._made.max_tokens()

    @property
    def max_rows(self):
        """The largest number of rows that this rank can receive if each rank routes max_tokens
        tokens. Buffers of this length serve all such routings."""
        return self._made.max_rows()

    def dispatch(self, routing, tokens, out=None, coding="none", one_a_slot=False):
        """Returns the rows for this rank's experts. Collective.

        Shapes: tokens[tokens, ...], or tokens[tokens, k, ...] with one_a_slot. coding="i8" sends
        8-bit integers, and coding="f8e4m3" sends 8-bit floats, with a scale for each 128 elements.
        `tokens` may be a list of arrays, which are sent together. The result is then a list; `out`,
        `coding` and `one_a_slot` may also be lists.
        """
        return self._dispatch(routing, tokens, out, coding, one_a_slot, False)

    def dispatch_async(self, routing, tokens, out=None, coding="none", one_a_slot=False):
        """Starts a dispatch on a thread, after earlier asynchronous calls. Returns a Pending."""
        return self._dispatch(routing, tokens, out, coding, one_a_slot, True)

    def gather_list(self, routing, tokens):
        """Returns the rows as GatheredRows, without copying them.

        `tokens` must be in memory from Communicator.allocate() or register_buffer(). No rank may
        change its tokens until the next combine() or end_gather() returns.
        """
        import numpy

        row_bytes = math.prod(_shape(tokens)[1:]) * _item_bytes(tokens)
        found = self._made.gather_list(routing._made, tokens, row_bytes)
        return GatheredRows(self, tokens, numpy.frombuffer(found, "u8"), row_bytes)

    def end_gather(self):
        """Waits until all ranks have finished reading the rows of gather_list()."""
        self._made.end_gather()

    def combine(self, routing, rows, weights=None, residual=None, out=None, coding="none"):
        """Returns sums[t] = residual[t] + the sum over the slots j of weights[t, j] * row.

        Sums are formed in f32 and rounded once.
        """
        return self._combine(routing, rows, weights, residual, out, coding, False)

    def combine_async(self, routing, rows, weights=None, residual=None, out=None, coding="none"):
        """Starts a combine on a thread, as dispatch_async() does. Returns a Pending."""
        return self._combine(routing, rows, weights, residual, out, coding, True)

    def combine_backward(self, routing, gradient, rows=None, weights=None):
        """Returns the gradients of combine() for rows and weights (None for rank_major)."""
        shape = _shape(gradient)[1:]
        self._check("combine_backward()", "gradient", gradient, routing.tokens)
        if weights is not None:
            self._check("combine_backward()", "weights", weights, routing.tokens, self.k)
        rows_gradient = _new(gradient, (routing.rows, *shape))
        weights_gradient = None
        if self.layout != "rank_major":
            weights_gradient = _new(gradient, (routing.tokens, self.k), "float32")
        self._made.combine_backward(
            routing._made, gradient, rows_gradient, math.prod(shape), weights, rows, weights_gradient
        )
        return rows_gradient, weights_gradient

    def mask(self, ranks, routes=None):
        """Excludes the experts of these ranks from the next route() on. Returns all excluded ranks:
        the union of the ranks that the calls of all ranks name.

        routes: the number of route() calls that exclude these ranks; None: exclude them
        until the next mask().
        """
        return self._made.mask(list(ranks), routes)

    @property
    def masked(self):
        """The ranks that the next route() excludes."""
        return self._made.masked()

    def close(self):
        """Waits for the asynchronous calls, then leaves the groups of the exchange."""
        self._made.close()

    def _check(self, call, what, array, *wanted):
        shape = _shape(array)
        if shape[: len(wanted)] != wanted:
            raise ValueError(f"{call}: {what} is {list(shape)}, not {list(wanted)}")

    def _dispatch(self, routing, tokens, out, coding, one_a_slot, is_async):
        many = isinstance(tokens, (list, tuple))
        arrays = tokens if many else [tokens]

        def each(value, name):  # if value is a list, each payload gets its own entry
            values = value if many and isinstance(value, (list, tuple)) else [value] * len(arrays)
            if len(values) != len(arrays):
                raise ValueError(f"{name} has {len(values)} entries for {len(arrays)} payloads")
            return values

        if many and out is not None and not isinstance(out, (list, tuple)):
            raise ValueError("out must be a list like tokens, or None")
        payloads = []
        for array, to, code, slotted in zip(
            arrays, each(out, "out"), each(coding, "coding"), each(one_a_slot, "one_a_slot")
        ):
            shape = _shape(array)[2 if slotted else 1 :]
            self._check("dispatch()", "tokens", array, *((routing.tokens, self.k) if slotted else (routing.tokens,)))
            if to is None:
                to = _new(array, (routing.rows, *shape))
            payloads.append((array, to, math.prod(shape) * _item_bytes(array), slotted, code))
        rows = [payload[1] for payload in payloads]
        rows = rows if many else rows[0]
        request = self._made.dispatch(routing._made, payloads, is_async)
        return rows if request is None else Pending(request, rows, routing)

    def _combine(self, routing, rows, weights, residual, out, coding, is_async):
        shape = _shape(rows)[1:]
        if weights is not None:
            self._check("combine()", "weights", weights, routing.tokens, self.k)
        if residual is not None:
            self._check("combine()", "residual", residual, routing.tokens, *shape)
        if out is None:
            out = _new(rows, (routing.tokens, *shape))
        request = self._made.combine(
            routing._made, rows, out, math.prod(shape), weights, residual, coding, is_async
        )
        return out if request is None else Pending(request, out, routing)


# Runs before the communicators are closed, because a rank leaves its world only when nothing refers
# to it.
@atexit.register
def _close_all():
    for exchange in list(_open):
        exchange.close()
