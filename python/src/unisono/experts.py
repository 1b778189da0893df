"""Mixture of experts: tokens to the ranks of their experts, and the outputs back.

    exchange = unisono.experts.Exchange(comm, experts=64, k=8)
    routing = exchange.route(chosen)              # [tokens, k] of int32 or int64; -1: none
    rows = exchange.dispatch(routing, tokens)     # [routing.rows, ...]
    ... experts compute rows[routing.rows_of_expert(i)] ...
    sums = exchange.combine(routing, outputs, weights)

Arrays are numpy's or torch's, C-contiguous; what is returned is of the kind that was given. All
calls are collective. docs/guides/experts.md says how rows lie and what each call costs.
"""

import atexit
import math
import weakref

from unisono._core import ExpertExchange, ExpertForm, balance_experts

__all__ = ["Exchange", "Pending", "Routing", "balance"]

_open = weakref.WeakSet()


def balance(loads, ranks, seats=0, groups=1, hosts=1):
    """(experts by rank, load by rank): where experts and their replicas should live.

    loads: by expert, tokens that chose it. seats: experts and replicas that all ranks hold together;
    0: one for each expert. groups of experts stay on one host where hosts divide them.
    """
    return balance_experts([float(load) for load in loads], ranks, seats, groups, hosts)


def _new(like, shape, dtype=None):
    """Memory of the kind of `like`, not initialised."""
    if hasattr(like, "new_empty"):
        return like.new_empty(shape, dtype=dtype and getattr(__import__("torch"), dtype))
    import numpy

    return numpy.empty(shape, dtype or like.dtype)


def _numbers(data, dtype, columns):
    import numpy

    return numpy.frombuffer(data, dtype).reshape(-1, columns)


class Routing:
    """Who sends which token to whom. Made by Exchange.route(), used any number of times."""

    def __init__(self, made, k, layout):
        self._made = made
        self._columns = k if layout == "rank_major" else 1

    def __getattr__(self, name):
        if name in ("tokens", "rows", "experts_here", "chosen", "dropped", "rows_of_ranks"):
            return getattr(self._made, name)
        raise AttributeError(f"a routing has no '{name}'")

    def rows_of_expert(self, local):
        """The slice of rows for the expert `local`, counted among those of this rank."""
        first = self._made.first_row(local)
        return slice(first, first + self._made.rows_of(local))

    @property
    def sources(self):
        """[rows, 3]: whose each row is: rank (-1: padding), token, place among the k."""
        return _numbers(self._made._sources(), "i8", 3)

    @property
    def experts(self):
        """[rows, 1], rank_major: [rows, k]: the local numbers of each row's experts; -1: none."""
        return _numbers(self._made._experts(), "i4", self._columns)


class Pending:
    """A dispatch or combine that a thread of the exchange makes. Nothing given may change before it ends."""

    def __init__(self, request, out, routing):
        self._request = request
        self._out = out
        self._routing = routing  # the thread uses it

    def wait(self, timeout_ms=-1):
        """The rows or sums, when they are there; again and again, if they are asked for."""
        self._request.wait(timeout_ms)
        return self._out

    def test(self):
        """Whether it has ended."""
        return self._request.test()


class Exchange:
    """What brings tokens to experts on the ranks of a communicator, which all make it.

    layout: "expert_major", "rank_major" or "flat". experts_of_rank: by rank, its experts; one that is
    at several ranks has replicas. max_tokens that a rank routes at once, with the bytes of a row, sizes the
    memory at once; more is no error. Errors are those of the communicator, with one sentence on all
    ranks; after UsageError and Mismatch everything can be used on.
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
        self._made = ExpertExchange(
            comm, experts, k, layout, alignment, capacity, places, max_tokens, row_bytes
        )
        self._started = None
        _open.add(self)

    def route(self, chosen):
        """A Routing of chosen[tokens, k]; -1: none."""
        return Routing(self._made.route(chosen), self.k, self.layout)

    @property
    def max_tokens(self):
        """The most tokens that a rank has routed at once, or what it was made for."""
        return self._made.max_tokens()

    @property
    def max_rows(self):
        """The most rows that a routing of max_tokens a rank can bring here: `out` may have so many."""
        return self._made.max_rows()

    def dispatch(self, routing, tokens, out=None, coding="none", one_a_slot=False):
        """Rows for this rank's experts, of tokens[tokens, ...]. one_a_slot: tokens[tokens, k, ...].

        coding="i8", "f8e4m3": rows travel as 8-bit integers or floats with a scale for each 128 elements.
        """
        return self._dispatch(routing, tokens, out, coding, one_a_slot, ExpertForm.blocking)

    def start_dispatch(self, routing, tokens, out=None, coding="none", one_a_slot=False):
        """The first half: tokens must not change before finish_dispatch(), which gives the rows."""
        self._started = self._dispatch(routing, tokens, out, coding, one_a_slot, ExpertForm.halves)

    def dispatch_async(self, routing, tokens, out=None, coding="none", one_a_slot=False):
        """A Pending: a thread makes the call meanwhile, after those that were started before it."""
        return self._dispatch(routing, tokens, out, coding, one_a_slot, ExpertForm.asynchronous)

    def finish_dispatch(self):
        self._made.finish_dispatch()
        out, self._started = self._started, None
        return out

    def combine(self, routing, rows, weights=None, residual=None, out=None, coding="none"):
        """sums[t] = residual[t] + sum over the k of weights[t, j] * row, in f32, rounded once."""
        return self._combine(routing, rows, weights, residual, out, coding, ExpertForm.blocking)

    def start_combine(self, routing, rows, weights=None, residual=None, out=None, coding="none"):
        """The first half: nothing given may change before finish_combine(), which gives the sums."""
        self._started = self._combine(routing, rows, weights, residual, out, coding, ExpertForm.halves)

    def combine_async(self, routing, rows, weights=None, residual=None, out=None, coding="none"):
        """A Pending, as that of dispatch_async()."""
        return self._combine(
            routing, rows, weights, residual, out, coding, ExpertForm.asynchronous
        )

    def finish_combine(self):
        self._made.finish_combine()
        out, self._started = self._started, None
        return out

    def combine_backward(self, routing, gradient, rows=None, weights=None):
        """(gradient of the rows, gradient of the weights; rank_major: None) of combine()."""
        shape = tuple(gradient.shape[1:])
        rows_gradient = _new(gradient, (routing.rows, *shape))
        weights_gradient = None
        if self.layout != "rank_major":
            if weights is None:
                weights = _new(gradient, (routing.tokens, self.k), "float32")
                weights[:] = 1
            weights_gradient = _new(gradient, (routing.tokens, self.k), "float32")
        self._made.combine_backward(
            routing._made, gradient, rows_gradient, math.prod(shape), weights, rows, weights_gradient
        )
        return rows_gradient, weights_gradient

    def mask(self, ranks, routes=None):
        """Ranks whose experts get nothing from the next route() on; returns what any rank named.

        routes: for so many of them; the next one has these ranks again. None: until the next mask().
        """
        return self._made.mask(list(ranks), routes)

    @property
    def masked(self):
        """The ranks that are out at the next route()."""
        return self._made.masked()

    def close(self):
        self._made.close()

    def _dispatch(self, routing, tokens, out, coding, one_a_slot, form):
        shape = tuple(tokens.shape[2 if one_a_slot else 1 :])
        if out is None:
            out = _new(tokens, (routing.rows, *shape))
        item = tokens.itemsize if hasattr(tokens, "itemsize") else tokens.element_size()
        request = self._made.dispatch(
            routing._made, tokens, out, math.prod(shape) * item, one_a_slot, coding, form
        )
        return out if request is None else Pending(request, out, routing)

    def _combine(self, routing, rows, weights, residual, out, coding, form):
        shape = tuple(rows.shape[1:])
        if out is None:
            out = _new(rows, (routing.tokens, *shape))
        request = self._made.combine(
            routing._made, rows, out, math.prod(shape), weights, residual, coding, form
        )
        return out if request is None else Pending(request, out, routing)


# Before the communicators: a rank leaves its world when nothing refers to it any more.
@atexit.register
def _close_all():
    for exchange in list(_open):
        exchange.close()
