"""Adds unisono's entries to flight recorder dumps. PyTorch 2.13 records only its own backends."""

import functools
import json
import pickle


def extend(loaded):
    """Makes PyTorch's functions _dump_fr_trace and _dump_fr_trace_json include unisono's groups.

    `loaded()` returns the extension, or None if no unisono group has been created yet.
    """
    from torch._C import _distributed_c10d as c10d
    from torch.distributed import distributed_c10d

    pickled, as_json = c10d._dump_fr_trace, c10d._dump_fr_trace_json
    if hasattr(pickled, "__wrapped__"):
        return

    # Since 2.15 each backend has its own recorder. PyTorch records for backends without a recorder.
    self_recording = getattr(distributed_c10d, "_FR_SELF_RECORDING_BACKENDS", None)
    if self_recording is not None:
        self_recording.add("unisono")

    @functools.wraps(pickled)
    def dump(includeCollectives=None, includeStackTraces=None, onlyActive=None, *more, **named):  # noqa: N803
        theirs = pickled(includeCollectives, includeStackTraces, onlyActive, *more, **named)
        if loaded() is None or not _is_ours(*more, **named):
            return theirs
        ours = loaded().dump_flights(
            includeCollectives is not False, includeStackTraces is not False, bool(onlyActive)
        )
        return pickle.dumps(_joined(pickle.loads(theirs), pickle.loads(ours)), protocol=2)

    @functools.wraps(as_json)
    def dump_json(includeCollectives=None, onlyActive=None, *more, **named):  # noqa: N803
        theirs = as_json(includeCollectives, onlyActive, *more, **named)
        if loaded() is None or not _is_ours(*more, **named):
            return theirs
        ours = loaded().dump_flights_json(includeCollectives is not False, bool(onlyActive))
        return json.dumps(_joined(json.loads(theirs), json.loads(ours))).encode()

    c10d._dump_fr_trace, c10d._dump_fr_trace_json = dump, dump_json


def _is_ours(backend="gloo"):
    """Returns True for dumps of gloo, the default, and of unisono: they include our groups."""
    return backend in ("gloo", "unisono")


def _joined(theirs, ours):
    """Merges two dumps. Groups keep their names. Groups and entries get new, unique numbers."""
    first = 1 + max((int(number) for number in theirs["pg_status"]), default=-1)
    status = {str(first + int(number)): value for number, value in ours["pg_status"].items()}
    joined = {
        **theirs,
        "pg_config": {**theirs["pg_config"], **ours["pg_config"]},
        "pg_status": {**theirs["pg_status"], **status},
        "comm_lib_version": theirs["comm_lib_version"] or ours["comm_lib_version"],
    }
    mine = [{**entry, "pg_id": first + entry["pg_id"]} for entry in ours.get("entries", [])]
    entries = sorted(theirs.get("entries", []) + mine, key=lambda entry: entry["time_created_ns"])
    if "entries" in theirs or entries:
        joined["entries"] = [{**entry, "record_id": number} for number, entry in enumerate(entries)]
    return joined
