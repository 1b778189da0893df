"""The exceptions of unisono: one for each error code of the C++ interface."""

import builtins


class Error(RuntimeError):
    """An error that ended an operation. The text says what failed, where, and what to do next.

    code: "usage", "config", "connection", "peer_lost", "timeout", "mismatch", "aborted", "corrupt",
    "resource", "evicted" or "internal". rank and peer are world ranks, with one exception. A class
    on top of a communicator, such as DeviceGroup, detects some errors itself, for example a wrong
    argument. The ranks in these errors are ranks of that communicator. Fields that do not apply are
    -1 (rank, peer, op_seq, step) or "" (collective).
    """

    code = "internal"

    def __init__(self, text, rank=-1, peer=-1, collective="", op_seq=-1, step=-1):
        super().__init__(text)
        self.rank, self.peer = rank, peer
        self.collective, self.op_seq, self.step = collective, op_seq, step

    def __reduce__(self):  # so that multiprocessing transfers all fields
        where = (self.rank, self.peer, self.collective, self.op_seq, self.step)
        return type(self), (str(self), *where)


class UsageError(Error, ValueError):
    """The caller passed an invalid argument. Nothing was sent."""

    code = "usage"


class ConfigError(Error, ValueError):
    """Environment variables or options are wrong, or contradict each other."""

    code = "config"


class ConnectionError(Error, builtins.ConnectionError):
    """Ranks could not find each other."""

    code = "connection"


class PeerLostError(Error, builtins.ConnectionError):
    """A rank died or left."""

    code = "peer_lost"


class TimeoutError(Error, builtins.TimeoutError):
    """An operation waited for a rank until the time limit."""

    code = "timeout"


class MismatchError(Error):
    """Ranks make different calls."""

    code = "mismatch"


class AbortedError(Error):
    """A rank called abort() or shrink(), or Ctrl-C ended an operation."""

    code = "aborted"


class CorruptError(Error):
    """A file or message is damaged."""

    code = "corrupt"


class ResourceError(Error, OSError):
    """The system refused memory, a descriptor or an address."""

    code = "resource"


class EvictedError(Error):
    """The other ranks have continued without this rank, or may have done so."""

    code = "evicted"


_KINDS = (
    UsageError, ConfigError, ConnectionError, PeerLostError, TimeoutError, MismatchError, AbortedError, CorruptError,
    ResourceError, EvictedError,
)  # fmt: skip
_CLASSES = {kind.code: kind for kind in _KINDS}


def make(code, *args):
    """Returns the exception for a code. The extension calls it."""
    return _CLASSES.get(code, Error)(*args)
