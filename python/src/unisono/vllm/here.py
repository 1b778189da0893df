"""Tracks the model's current layer. Labels and experts need it, but vLLM's calls do not pass it."""

import contextlib
import weakref

_groups = weakref.WeakValueDictionary()
_numbers = {}
_layer = ""
_expert_map = None


def group_number(name):
    """Returns a number for the group. All ranks create groups in the same order, so the number is
    the same on all ranks of the group."""
    return _numbers.setdefault(name, len(_numbers))


def opened(name, communicator):
    _groups[name] = communicator


def closed(name):
    _groups.pop(name, None)


def group(name):
    return _groups[name]


def layer_name():
    """Returns text such as "layers.3.mlp.down_proj", or "" outside a known layer."""
    return _layer


@contextlib.contextmanager
def layer(name):
    """Marks the calls inside as calls of this layer."""
    global _layer
    before, _layer = _layer, name.removeprefix("model.")
    try:
        yield
    finally:
        _layer = before


@contextlib.contextmanager
def experts(expert_map):
    """Sets the map from global to local expert numbers, or None, for the dispatch inside."""
    global _expert_map
    before, _expert_map = _expert_map, expert_map
    try:
        yield
    finally:
        _expert_map = before


def expert_map():
    return _expert_map
