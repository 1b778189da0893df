"""Sums over a fixed tree of leaves, with the same bits for any number of ranks. See
docs/guides/same-bits.md."""

from itertools import accumulate

from unisono._errors import UsageError


class TreeSum:
    """The running sum of a rank's leaves, which are numpy or torch arrays of one shape.

        total = unisono.TreeSum(leaves=16, first=4 * comm.rank)
        for microbatch in microbatches:
            total.add(gradient_of(microbatch))
        gradient = total.all_reduce(comm, [4, 4, 4, 4])

    `comm` may be a communicator, or a torch.distributed process group of any backend.

    leaves: the number of leaves on all ranks. first: the number of the first leaf that is added
    here. Keeps at most 2 log2(leaves) arrays. Each addition rounds to the type of the leaves.
    """

    def __init__(self, leaves, first=0):
        if leaves < 1 or not 0 <= first <= leaves:
            raise UsageError(f"usage: TreeSum: leaf {first} is not one of {leaves} leaves")
        self._leaves, self._first, self._next = leaves, first, first
        self._nodes = []  # [first, end, sum], from left to right

    @property
    def next(self):
        """The number of the leaf that add() adds next."""
        return self._next

    def add(self, leaf):
        """Adds the next leaf and keeps a copy of it. Local."""
        if self._next == self._leaves:
            raise UsageError(f"usage: TreeSum: leaf {self._next} is not one of {self._leaves} leaves")
        copy = leaf.detach().contiguous().clone() if hasattr(leaf, "detach") else leaf.copy()
        self._nodes.append([self._next, self._next + 1, copy])
        self._next += 1
        _settle(self._nodes, self._leaves)

    def sum(self):
        """Returns the sum of all leaves. This object must have all of them. Local."""
        if self._first != 0 or self._next != self._leaves:
            raise UsageError(f"usage: TreeSum: has leaves {self._first} to {self._next} of {self._leaves}")
        return self._nodes[0][2]

    def all_reduce(self, comm, leaves, like=None):
        """Returns the sum over all ranks as a new array. Collective.

        leaves: the number of leaves of each rank; all ranks pass the same list. like: an array with
        the shape and type of the leaves, for a rank without leaves.
        """
        comm = _communicator(comm)
        starts, like = self._check(comm, leaves, like)
        if hasattr(comm, "all_reduce") and _is_tree_of_ranks(starts, 0, comm.size):
            out = _empty(like, like.shape)
            comm.all_reduce(self._nodes[0][2], out, algorithm="tree_order")
            return out
        lengths = _even(like, comm.size)
        out = _empty(like, [sum(lengths)])
        comm.all_gather_v(self._exchange(comm, starts, like, lengths), out, lengths)
        return out.reshape(like.shape)

    def reduce(self, comm, leaves, root, like=None):
        """Returns the sum over all ranks: on the root a new array, elsewhere None. Collective."""
        comm = _communicator(comm)
        starts, like = self._check(comm, leaves, like)
        if not 0 <= root < comm.size:
            raise UsageError(f"usage: TreeSum: rank {root} is not one of {comm.size} ranks")
        lengths = [0] * comm.size
        lengths[root] = like.reshape(-1).shape[0]
        part = self._exchange(comm, starts, like, lengths)
        return part.reshape(like.shape) if comm.rank == root else None

    def reduce_scatter(self, comm, leaves, like=None):
        """Returns this rank's part of the sum: elements [rank, rank + 1) * count / size, as a flat array.
        Collective."""
        comm = _communicator(comm)
        starts, like = self._check(comm, leaves, like)
        if like.reshape(-1).shape[0] % comm.size != 0:
            raise UsageError(
                f"usage: TreeSum: {like.reshape(-1).shape[0]} elements cannot be split between {comm.size} ranks"
            )
        return self._exchange(comm, starts, like, _even(like, comm.size))

    def _check(self, comm, leaves, like):
        starts = [0, *accumulate(leaves)]
        mine = (self._first, self._next, self._leaves)
        if len(leaves) != comm.size or mine != (starts[comm.rank], starts[comm.rank + 1], starts[-1]):
            raise UsageError(
                f"usage: TreeSum: rank {comm.rank} has leaves {self._first} to {self._next} of "
                f"{self._leaves}, and the list of all ranks is {list(leaves)}"
            )
        like = self._nodes[0][2] if self._nodes else like
        if like is None:
            raise UsageError("usage: TreeSum: a rank without leaves needs `like`")
        return starts, like

    def _exchange(self, comm, starts, like, lengths):
        """Sends every rank its part of this rank's nodes. Returns this rank's part of the sum."""
        flat = [node[2].reshape(-1) for node in self._nodes]
        places = [0, *accumulate(lengths)]
        length = lengths[comm.rank]
        ranges = [list(_subtrees(0, self._leaves, *part)) for part in zip(starts, starts[1:])]

        data = _empty(like, [len(flat) * places[-1]])
        at = 0
        for begin, end in zip(places, places[1:]):
            for node in flat:
                data[at : at + end - begin] = node[begin:end]
                at += end - begin
        received = [len(subtrees) * length for subtrees in ranges]
        parts = _empty(like, [sum(received)])
        comm.all_to_all_v(data, [len(flat) * part for part in lengths], parts, received)
        nodes = []
        for index, (first, end) in enumerate(sum(ranges, [])):
            nodes.append([first, end, parts[index * length : (index + 1) * length]])
            _settle(nodes, self._leaves)
        return nodes[0][2]


class _Group:
    """A torch.distributed process group with the communicator methods that the exchange needs."""

    def __init__(self, group):
        self._group, self.size, self.rank = group, group.size(), group.rank()

    def all_to_all_v(self, data, sent, out, received):
        import torch.distributed as dist

        dist.all_to_all_single(out, data, received, sent, group=self._group)

    def all_gather_v(self, part, out, lengths):
        # Other backends do not have all_gather for parts of different lengths.
        self.all_to_all_v(part.repeat(self.size), [part.shape[0]] * self.size, out, lengths)


def _communicator(comm):
    return comm if hasattr(comm, "all_to_all_v") else _Group(comm)


def _even(like, parts):
    """Returns the lengths of `parts` parts of an array that is split as evenly as possible."""
    count = like.reshape(-1).shape[0]
    return [count * (part + 1) // parts - count * part // parts for part in range(parts)]


def _empty(like, shape):
    if hasattr(like, "new_empty"):
        return like.new_empty(tuple(shape))
    import numpy

    return numpy.empty(tuple(shape), like.dtype)


def _middle(first, end):
    return first + (1 << ((end - first - 1).bit_length() - 1))


def _are_terms(a, b, c, leaves):
    """Returns True if the sums of [a, b) and [b, c) are the terms of an addition in the tree."""
    first, end = 0, leaves
    while end - first >= 2:
        middle = _middle(first, end)
        if (first, end) == (a, c):
            return middle == b
        if c <= middle:
            end = middle
        elif a >= middle:
            first = middle
        else:
            return False
    return False


def _settle(nodes, leaves):
    while len(nodes) >= 2 and _are_terms(nodes[-2][0], nodes[-2][1], nodes[-1][1], leaves):
        _, end, upper = nodes.pop()
        nodes[-1][1] = end
        nodes[-1][2] += upper


def _subtrees(first, end, begin, stop):
    """Yields the largest nodes of tree(first, end) inside [begin, stop), from left to right."""
    if begin >= end or stop <= first or begin == stop:
        return
    if begin <= first and end <= stop:
        yield first, end
        return
    middle = _middle(first, end)
    yield from _subtrees(first, middle, begin, stop)
    yield from _subtrees(middle, end, begin, stop)


def _is_tree_of_ranks(starts, first, end):
    if end - first == 1:
        return True
    middle = _middle(first, end)
    return (
        starts[first] < starts[middle] < starts[end]
        and _middle(starts[first], starts[end]) == starts[middle]
        and _is_tree_of_ranks(starts, first, middle)
        and _is_tree_of_ranks(starts, middle, end)
    )
