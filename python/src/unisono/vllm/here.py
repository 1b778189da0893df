"""Where in the model this process is: what vLLM's calls do not say, and labels and experts need."""

import contextlib
import weakref

_groups = weakref.WeakValueDictionary()
_numbers = {}
_layer = ""
_expert_map = None


def group_number(name):
    """Returns a number for the group, the same on all its ranks: they make their groups in the same order."""
    return _numbers.setdefault(name, len(_numbers))


def opened(name, communicator):
    _groups[name] = communicator


def closed(name):
    _groups.pop(name, None)


def group(name):
    return _groups[name]


def layer_name():
    """Returns "layers.3.mlp.down_proj"; empty outside of a known layer."""
    return _layer


@contextlib.contextmanager
def layer(name):
    """The calls inside are of this layer."""
    global _layer
    before, _layer = _layer, name.removeprefix("model.")
    try:
        yield
    finally:
        _layer = before


@contextlib.contextmanager
def experts(expert_map):
    """The dispatch inside is of a layer with this map from global to local numbers; None: no parallel experts."""
    global _expert_map
    before, _expert_map = _expert_map, expert_map
    try:
        yield
    finally:
        _expert_map = before


def expert_map():
    return _expert_map
