"""Tracks the model's current layer, which vLLM's calls do not pass but labels and experts need."""

import contextlib
import weakref

_groups = weakref.WeakValueDictionary()
_numbers = {}
_layer = ""
_expert_map = None


def group_number(name):
    """Returns a number for the group, equal on all its ranks because they create groups in the same order."""
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
    """Marks calls inside as belonging to this layer."""
    global _layer
    before, _layer = _layer, name.removeprefix("model.")
    try:
        yield
    finally:
        _layer = before


@contextlib.contextmanager
def experts(expert_map):
    """Sets the map from global to local expert numbers for the dispatch inside; None: no parallel experts."""
    global _expert_map
    before, _expert_map = _expert_map, expert_map
    try:
        yield
    finally:
        _expert_map = before


def expert_map():
    return _expert_map
