"""Invalid values of UNISONO_* variables cause an error on every rank, not a hang."""

import os
import socket

import jobs
import pytest
import torch.distributed as dist
from jobs import caught

WRONG = {
    "TRANSPORT": "foo", "TIMEOUT_MS": "abc", "CONNECT_TIMEOUT_MS": "-5", "TOKEN": "short",
    "TLS": "maybe", "CHECKSUM": "2", "ALGORITHM": "all_reduce=foo", "PROFILE": "/nowhere",
    "WAIT": "long", "PORTS": "9-1", "INTERFACE": "none0", "RANK": "first", "SIZE": "0",
    "RECORD_EVENTS": "many", "REPLACE_GLOO": "please", "QUIET": "x", "RELAY": "here",
}  # fmt: skip


def join(folder, name, value, on):
    """Returns the error of each rank if the ranks in `on` have the variable."""
    rank = int(os.environ["RANK"])
    if rank in on:
        os.environ[f"UNISONO_{name}"] = value
    store = dist.FileStore(os.path.join(folder, f"{name}-{len(on)}"), 2)
    said = caught(dist.init_process_group, "unisono", store=store, rank=rank, world_size=2)
    os.environ.pop(f"UNISONO_{name}", None)
    # The rank that leaves last removes the file of a FileStore.
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


def hear_a_refusal(path):
    """Rank 1 cannot take part; rank 2 arrives only when rank 0 has got the error."""
    rank = int(os.environ["RANK"])
    store = dist.FileStore(path, 3)
    if rank == 2:
        store.wait(["heard"])
    if rank == 1:
        os.environ["UNISONO_TRANSPORT"] = "foo"
    found = caught(dist.init_process_group, "unisono", store=store, rank=rank, world_size=3)
    if rank == 0:
        store.set("heard", "")
    store.set(f"over {rank}", "")
    store.wait([f"over {other}" for other in range(3)])
    return found


def test_a_refusal_is_heard_before_all_have_come(tmp_path):
    found = jobs.run(3, hear_a_refusal, str(tmp_path / "store"), backend=None)
    assert found[1][0] == "ValueError"
    for kind, text in (found[0], found[2]):
        assert kind == "DistBackendError" and "rank 1 cannot take part" in text and "foo" in text


def disagree(path, sizes, names):
    """Each rank has its own world size and variables."""
    rank = int(os.environ["RANK"])
    store = dist.FileStore(path, len(sizes))
    os.environ.update(names[rank])
    found = caught(
        dist.init_process_group, "unisono", store=store, rank=rank, world_size=sizes[rank]
    )
    store.set(f"over {rank}", "")
    store.wait([f"over {other}" for other in range(len(sizes))])
    return found


def test_world_sizes_that_differ(tmp_path):
    """Rank 1 would wait half an hour for a rank 2 that is never started."""
    found = jobs.run(2, disagree, str(tmp_path / "store"), [2, 3], [{}, {}], backend=None)
    for kind, text in found:
        assert kind == "DistBackendError", text
        assert "rank 0 makes this process group with world size 2, rank 1 with 3" in text


def test_a_rank_beyond_the_world(tmp_path):
    found = jobs.run(2, disagree, str(tmp_path / "store"), [3, 1], [{}, {}], backend=None)
    assert found[1] == ("ValueError", "unisono: rank 1 is not a rank of a world of 1; ranks are 0 to 0")
    kind, text = found[0]
    assert kind == "DistBackendError", text
    assert "rank 1 cannot take part: rank 1 is not a rank of a world of 1" in text


def has_loopback():
    with socket.socket() as listener, socket.socket() as caller:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        return caller.connect_ex(listener.getsockname()) == 0


@pytest.mark.skipif(not has_loopback(), reason="the loopback device is down: ip link set lo up")
def test_tokens_that_differ(tmp_path):
    """The refused rank gives up after some seconds, and notifies the other rank, which would keep waiting."""
    names = [{"UNISONO_TOKEN": f"the token of rank {rank}", "UNISONO_HOST": f"host-{rank}"} for rank in (0, 1)]
    found = jobs.run(2, disagree, str(tmp_path / "store"), [2, 2], names, backend=None)
    for kind, text in found:
        assert kind == "DistBackendError" and "another job token" in text, text
