"""UNISONO_* variables with values that cannot be: an error for every rank, and not a rank that hangs."""

import os

import jobs
import torch.distributed as dist
from jobs import caught

WRONG = {
    "TRANSPORT": "foo", "TIMEOUT_MS": "abc", "CONNECT_TIMEOUT_MS": "-5", "TOKEN": "short",
    "TLS": "maybe", "CHECKSUM": "2", "ALGORITHM": "all_reduce=foo", "PROFILE": "/nowhere",
    "WAIT": "long", "PORTS": "9-1", "INTERFACE": "none0", "RANK": "first", "SIZE": "0",
    "RECORD_EVENTS": "many", "REPLACE_GLOO": "please", "QUIET": "x", "RELAY": "here",
}  # fmt: skip


def join(folder, name, value, on):
    """What each rank hears when those of `on` have the variable."""
    rank = int(os.environ["RANK"])
    if rank in on:
        os.environ[f"UNISONO_{name}"] = value
    store = dist.FileStore(os.path.join(folder, f"{name}-{len(on)}"), 2)
    said = caught(dist.init_process_group, "unisono", store=store, rank=rank, world_size=2)
    os.environ.pop(f"UNISONO_{name}", None)
    # The last to leave a FileStore removes its file, which the other may not have opened yet.
    store.set(f"heard {rank}", "")
    store.wait([f"heard {1 - rank}"])
    return said


def join_with_each(folder):
    on_all = {name: join(folder, name, value, [0, 1]) for name, value in WRONG.items()}
    return on_all, join(folder, "TRANSPORT", "foo", [1])


def test_wrong_values(tmp_path):
    said = jobs.run(2, join_with_each, str(tmp_path), backend=None)
    for on_all, _ in said:
        for name, (kind, text) in on_all.items():
            assert kind == "ValueError" and text.startswith("unisono: config: "), (name, kind, text)
            assert len(text.splitlines()) == 2, f"{text} does not say what to do"
    (kind, text), (own_kind, _) = said[0][1], said[1][1]
    assert own_kind == "ValueError"
    assert kind == "DistBackendError" and "rank 1 cannot take part" in text and "foo" in text
