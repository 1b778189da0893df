"""Moves tensors from one mesh of ranks to another mesh, such as a trainer's weights to an engine.

    moves = unisono.reshard.Reshard(comm, {
        "weight": ("float32", (4, 6), "tp=2: tp=shard(0)", "tp=2: tp=shard(1)")})
    moves.run({"weight": rows}, {"weight": columns})

A layout is a text with a mesh, the ranks of the mesh, and the placement of the tensor on each axis:
"dp=2,tp=4 on 0-7: tp=shard(0)". Arrays are numpy arrays, torch tensors, or other objects with the
buffer protocol or __dlpack__, with any strides. The guide is docs/guides/reshard.md.
"""

import atexit
import operator
import weakref

from unisono._core import _parallel
from unisono._errors import UsageError

__all__ = ["NameMap", "Reshard"]

_open = weakref.WeakSet()


class NameMap(_parallel.NameMap):
    """Maps a checkpoint's tensors to an engine's fused tensors: NameMap.load("llama.json").

    docs/guides/reshard.md describes the file. examples/reshard/ has the maps of some models.
    """

    @classmethod
    def load(cls, path):
        """Reads a file of rules."""
        with open(path, encoding="utf-8") as file:
            return cls(file.read())

    def apply(self, tensors):
        """Returns the engine's tensors as {name: (shape, parts)}.

        tensors: {name: (dtype, shape)}. A part is (source, index, dim, first, begin, count). Along
        dimension `dim`, it has the `count` elements of the source that start at `begin`. They
        become the elements of the target that start at `first`. If the target is a stack, they
        belong to its entry `index`; otherwise index is None.
        """
        return super().apply([(name, dtype, list(shape)) for name, (dtype, shape) in tensors.items()])


class Reshard(_parallel.Reshard):
    """Plans the moves once. run() executes them. Both calls are collective over `comm`.

    tensors: {name: (dtype, whole shape, layout before, layout after)}. All ranks pass the same
    tensors.

    With a NameMap as `names`, tensors is {name: (dtype, whole shape, layout before)}, and targets
    is {name of the engine's tensor: layout after}. In the layout after, the sections of a fused
    dimension are the lengths of its parts, such as "tp=4: tp=shard(0,sections=4096+2*1024)".
    """

    def __init__(self, comm, tensors, *, names=None, targets=None):
        if (names is None) != (targets is None):
            raise UsageError("Reshard: names and targets go together")
        columns = 4 if names is None else 3
        for name, row in tensors.items():
            if len(row) != columns:
                raise UsageError(
                    f'Reshard: "{name}" has {len(row)} values; it needs dtype, shape, the layout before'
                    + (" and the layout after" if names is None else "; targets has the layout after")
                )
        rows = [(name, row[0], _lengths(name, row[1])) for name, row in tensors.items()]
        before = [row[2] for row in tensors.values()]
        self._inputs = list(tensors)
        self._outputs = list(tensors if names is None else targets)
        if names is None:
            super().__init__(comm, rows, before, [row[3] for row in tensors.values()])
        else:
            super().__init__(comm, rows, before, names, list(targets.items()))
        self._is_plain = names is None
        _open.add(self)

    def run(self, inputs, outputs, *, timeout_ms=-1):
        """Fills `outputs` from `inputs`; both are dicts of this rank's parts by name. Returns `outputs`.

        Tensors without a part on this rank may be missing. Raises UsageError, before anything is sent, if an
        input and an output share memory. After an error, complete(name) returns whether an output has
        arrived.
        """
        super().run(
            _values("inputs", inputs, self._inputs), _values("outputs", outputs, self._outputs), timeout_ms
        )
        return outputs

    def in_shape(self, name):
        """Returns the shape of this rank's part before the move, or None if it has no part."""
        return _shape(super().in_shape(self._move(name)))

    def out_shape(self, name):
        """Returns the shape of this rank's part after the move, or None if it has no part."""
        return _shape(super().out_shape(self._move(name)))

    def complete(self, name):
        """Returns True if the latest run() has filled this rank's output `name` completely."""
        return super().complete(_index("output", name, self._outputs))

    @property
    def bytes_sent(self):
        """The bytes that all ranks together send to other ranks in one run()."""
        return self.bytes()[0]

    @property
    def bytes_between_hosts(self):
        """The part of bytes_sent that is sent between hosts."""
        return self.bytes()[1]

    def _move(self, name):
        if not self._is_plain:
            raise UsageError("Reshard: with names, the layouts give the shapes of parts")
        return _index("tensor", name, self._inputs)


def _index(what, name, names):
    if name not in names:
        raise UsageError(f'Reshard: there is no {what} "{name}"')
    return names.index(name)


def _lengths(name, shape):
    try:
        lengths = [operator.index(length) for length in shape]
    except TypeError:
        lengths = [-1]
    if any(length < 0 for length in lengths):
        raise UsageError(f'Reshard: "{name}" has the shape {shape!r}; it needs a list of lengths, each 0 or more')
    return lengths


def _shape(shape):
    return None if shape is None else tuple(shape)


def _values(what, given, names):
    unknown = [name for name in given if name not in set(names)]
    if unknown:
        raise UsageError(f"Reshard: {what} has unknown names: {', '.join(map(repr, unknown))}")
    return [given.get(name) for name in names]


# Runs before the communicators are closed, because a rank leaves its world only when nothing refers
# to it.
@atexit.register
def _close_all():
    for thing in list(_open):
        thing.close()
