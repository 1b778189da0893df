"""torch.distributed._symmetric_memory on the CPU: peers' buffers, signals, and the events that end a wait."""

import gc
import os
import signal
import time

import jobs
import pytest
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
from torch._C._autograd import DeviceType
from torch._C._distributed_c10d import _SymmetricMemory

WORLD = "0"  # PyTorch's name of the first group


def memory(*size, dtype=torch.float32):
    """Returns this rank's tensor, and the handle."""
    tensor = symmetric.empty(*size, dtype=dtype, device="cpu")
    return tensor, symmetric.rendezvous(tensor, dist.group.WORLD)


def neighbours():
    rank, size = dist.get_rank(), dist.get_world_size()
    tensor, handle = memory(4, 3)
    tensor.fill_(rank)
    handle.barrier()
    seen = [handle.get_buffer(peer, (4, 3), torch.float32).sum().item() for peer in range(size)]
    handle.barrier()
    # The last row of the next rank, by an offset in elements.
    handle.get_buffer((rank + 1) % size, (3,), torch.float32, 9).fill_(100 + rank)
    handle.barrier()
    remote = handle.get_remote_tensor((rank + 1) % size, (12,), torch.float32)[-1].item()
    facts = {
        "rank": handle.rank,
        "size": handle.world_size,
        "bytes": handle.buffer_size,
        "device": str(handle.device),
        "own": handle.buffer_ptrs[rank] == tensor.data_ptr(),
        "again": symmetric.rendezvous(tensor, WORLD).buffer_ptrs == handle.buffer_ptrs,
        "is": symmetric.is_symm_mem_tensor(tensor),
        "other": symmetric.is_symm_mem_tensor(torch.empty(4)),
        "multicast": _SymmetricMemory.has_multicast_support(DeviceType.CPU, 0),
        "backend": symmetric.get_backend("cpu"),
        "too much": jobs.caught(handle.get_buffer, 0, (13,), torch.float32),
        "no rank": jobs.caught(handle.get_buffer, size, (1,), torch.float32)[0],
    }
    return seen, tensor[-1].tolist(), remote, facts


@pytest.mark.parametrize("backend", ["unisono", "gloo"])
def test_every_rank_reads_and_writes_every_buffer(backend):
    for rank, (seen, row, remote, facts) in enumerate(jobs.run(3, with_any_backend, neighbours, backend=backend)):
        assert seen == [0.0, 12.0, 24.0]
        assert row == [100.0 + (rank - 1) % 3] * 3 and remote == 100.0 + rank
        assert "exceeds the allocated size (48 bytes)" in facts.pop("too much")[1]
        assert facts == {
            "rank": rank,
            "size": 3,
            "bytes": 48,
            "device": "cpu",
            "own": True,
            "again": True,
            "is": True,
            "other": False,
            "multicast": False,
            "backend": "UNISONO",
            "no rank": "RuntimeError",
        }


def with_any_backend(body):
    import unisono.torch

    unisono.torch.enable_symmetric_memory()
    return body()


def signals():
    rank = dist.get_rank()
    tensor, handle = memory(2, dtype=torch.int64)
    for turn in range(200):  # each word is consumed before it is written again
        if rank == 0:
            tensor[0] = turn
            handle.put_signal(1, channel=3)
            handle.wait_signal(1, channel=3)
        else:
            handle.wait_signal(0, channel=3, timeout_ms=60_000)
            assert handle.get_buffer(0, (1,), torch.int64).item() == turn
            handle.put_signal(0, channel=3, timeout_ms=60_000)
    pad = handle.get_signal_pad(rank)
    return pad.dtype, pad.numel(), int(pad.sum(dtype=torch.int64)), handle.get_signal_pad(0, (8, 8)).shape


def test_signals_go_and_are_taken():
    for got in jobs.run(2, signals):
        assert got == (torch.uint32, symmetric.get_signal_pad_size() // 4, 0, (8, 8))


def own_signals():
    """A program's own signals, written by an operator or as plain stores into a peer's pad."""
    rank = dist.get_rank()
    tensor, handle = memory(1)
    pad = handle.get_signal_pad(1 - rank)
    if rank == 0:
        _SymmetricMemory.stream_write_value32(pad, 0, 1)  # channel 0, from rank 0
        pad[2] = 1  # channel 1
    else:
        handle.wait_signal(0, channel=0, timeout_ms=60_000)
        handle.wait_signal(0, channel=1, timeout_ms=60_000)
    handle.barrier(channel=2)
    mine = handle.get_signal_pad(rank)
    _SymmetricMemory.memset32(mine, 6, 7, 3)
    return mine[5:10].tolist(), jobs.caught(_SymmetricMemory.memset32, mine, mine.numel(), 1, 1)


def test_words_of_the_pad_are_the_programs_own():
    for words, (kind, text) in jobs.run(2, own_signals):
        assert words == [0, 7, 7, 7, 0]
        assert kind == "ValueError" and "memset32_: words" in text


def sizes():
    usual = symmetric.get_signal_pad_size()
    symmetric.set_signal_pad_size(2 * usual)
    tensor, handle = memory(64)
    pad = handle.get_signal_pad(dist.get_rank())
    pad.fill_(1)
    tensor.fill_(0)
    whole = pad.numel() * 4 == 2 * usual == handle.signal_pad_size and bool(pad.eq(1).all())
    symmetric.set_signal_pad_size(usual)
    large = symmetric.empty(2 << 30, dtype=torch.uint8, device="cpu")  # uses only what is written
    large[-1] = 5
    return whole, large[-2:].tolist(), symmetric.empty(0, device="cpu").numel()


def test_pads_and_memory_of_other_sizes():
    assert jobs.run(2, sizes) == [(True, [0, 5], 0)] * 2


def late():
    rank = dist.get_rank()
    _, handle = memory(1)
    begin = time.monotonic()
    if rank == 0:
        errors = [
            jobs.caught(handle.wait_signal, 1, 0, 200),
            jobs.caught(handle.barrier, 0, 200),
            jobs.caught(handle.put_signal, 1, 0, 200),  # the barrier's signal was not taken
            jobs.caught(handle.put_signal, 2),
            jobs.caught(handle.barrier, 5000),
        ]
        took = time.monotonic() - begin
        jobs.say("done")
        return errors, took
    jobs.hear("done")
    return None, 0


def test_a_time_limit_names_the_rank_and_since_when():
    (wait, barrier, put, none, channel), took = jobs.run(2, late)[0]
    assert {kind for kind, _ in (wait, barrier, put)} == {"DistBackendError"}
    assert "Timed out waiting: timeout: rank 1 has not signalled rank 0 within 200 ms, since " in wait[1]
    assert "rank 1 has not come to the barrier of rank 0 within 200 ms, since " in barrier[1]
    assert "rank 1 has not taken the last signal of rank 0 within 200 ms" in put[1]
    assert none[0] == "ValueError" and "rank 2 is not a rank of this symmetric memory of 2 ranks" in none[1]
    assert channel[0] == "ValueError" and "has 1152 channels" in channel[1]
    assert took > 0.6


def dies(at):
    rank = dist.get_rank()
    tensor, handle = memory(1 << 10)
    tensor.fill_(rank)
    handle.barrier()
    if rank == 1:
        if at == "rendezvous":
            symmetric.empty(8, device="cpu")
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    if at == "rendezvous":
        error = jobs.caught(memory, 8)
    else:
        error = jobs.caught(getattr(handle, at), *([] if at == "barrier" else [1]))
        if at == "put_signal":  # the pad has room for the first
            error = jobs.caught(handle.put_signal, 1)
    took = time.monotonic() - begin
    return error, took, handle.get_buffer(1, (4,), torch.float32).tolist()


@pytest.mark.parametrize("at", ["wait_signal", "put_signal", "barrier", "rendezvous"])
def test_a_dead_peer_is_named_and_what_it_had_is_still_there(at):
    with jobs.Job(2, dies, at) as job:
        ending = job.ending(0)
    assert ending.error is None, ending.text
    (kind, text), took, left = ending.value
    assert kind == "DistBackendError" and "rank 1" in text and "killed by SIGKILL" in text, text
    assert took < 10
    assert left == [1.0] * 4


def frees():
    rank = dist.get_rank()
    tensor, handle = memory(1 << 20)
    tensor.fill_(rank)
    handle.barrier()
    buffer = handle.get_buffer(1 - rank, (1 << 20,), torch.float32)
    if rank == 1:
        del tensor, handle, buffer
        gc.collect()
        jobs.say("freed")
        jobs.hear("read")
        return None
    jobs.hear("freed")
    values = buffer.unique().tolist()
    handle.get_buffer(1, (1 << 20,), torch.float32).fill_(3)
    jobs.say("read")
    del tensor  # the handle keeps what it maps
    gc.collect()
    return values, handle.get_buffer(0, (2,), torch.float32).tolist(), handle.get_buffer(1, (1,), torch.float32).item()


def test_memory_that_is_freed_while_a_peer_maps_it_stays_for_the_peer():
    assert jobs.run(2, frees)[0] == ([1.0], [0.0, 0.0], 3.0)


def disagrees(case):
    rank = dist.get_rank()
    if case == "order":
        small, large = symmetric.empty(4, device="cpu"), symmetric.empty(8, device="cpu")
        return jobs.caught(symmetric.rendezvous, (small, large)[rank], dist.group.WORLD)
    if case == "pads":
        symmetric.set_signal_pad_size(8192 if rank else 4096)
        return jobs.caught(memory, 1)
    if case == "hosts":
        os.environ["UNISONO_HOST"] = f"host{rank}"
        return jobs.caught(memory, 1)
    if rank == 0:
        return jobs.caught(memory, 1)
    jobs.hear("late")
    return None, "late"


@pytest.mark.parametrize(
    "case, text",
    [
        ("order", "rendezvous 1 of this group: rank 0 has 16 bytes of symmetric memory, rank 1 has 32"),
        ("pads", "the signal pad of rank 0 has 4096 bytes, that of rank 1 has 8192"),
        ("hosts", "symmetric memory needs ranks of one host and one user, but rank 0 and rank 1 differ"),
    ],
)
def test_ranks_that_disagree_are_told_at_the_rendezvous(case, text):
    for kind, said in jobs.run(2, disagrees, case):
        assert kind == "DistBackendError" and text in said


def test_a_rank_that_does_not_come_to_the_rendezvous_is_named():
    with jobs.Job(2, disagrees, "late", timeout_s=1) as job:
        ending = job.ending(0)
        job.processes[1].kill()
    kind, text = ending.value
    assert kind == "DistBackendError"
    assert "rank 1 did not come to rendezvous 1 of symmetric memory (4 bytes) within 1000 ms" in text


def refused():
    return [
        jobs.caught(symmetric.rendezvous, torch.empty(4), dist.group.WORLD),
        jobs.caught(_SymmetricMemory.rendezvous, symmetric.empty(4, device="cpu")),
        jobs.caught(symmetric.rendezvous, symmetric.empty(4, device="cpu"), "nobody"),
        jobs.caught(symmetric.empty, 1 << 61, device="cpu"),
    ]


def test_mistakes_of_one_rank_are_refused_at_once():
    ordinary, nameless, nobody, huge = jobs.run(1, refused)[0]
    assert ordinary[0] == "ValueError" and "not in symmetric memory" in ordinary[1]
    assert nameless[0] == "ValueError" and "has no group" in nameless[1]
    assert "nobody" in nobody[1]
    assert huge[0] in ("ValueError", "DistBackendError") and "bytes" in huge[1]


def persistent():
    """Allocations with an id return the same memory, with the same handle."""
    places = []
    for _ in range(2):
        tensor = _SymmetricMemory.empty_strided_p2p((64,), (1,), torch.float32, torch.device("cpu"), WORLD, 42)
        handle = _SymmetricMemory.rendezvous(tensor)
        places.append((tensor.data_ptr(), handle.buffer_ptrs))
        active = jobs.caught(
            _SymmetricMemory.empty_strided_p2p, (64,), (1,), torch.float32, torch.device("cpu"), WORLD, 42
        )
        del tensor
    return places[0] == places[1], active[1]


def test_persistent_allocations():
    for same, active in jobs.run(2, persistent):
        assert same and "still active" in active


def in_a_part():
    pair = dist.new_group([0, 2])
    if dist.get_rank() == 1:
        return None
    tensor = symmetric.empty(1, device="cpu")
    handle = symmetric.rendezvous(tensor, pair)
    tensor.fill_(10 * handle.rank)
    handle.barrier()
    return [handle.get_buffer(rank, (1,), torch.float32).item() for rank in range(handle.world_size)]


def test_groups_of_some_of_the_ranks():
    assert jobs.run(3, in_a_part) == [[0.0, 10.0], None, [0.0, 10.0]]


def operators(dtype):
    rank, size = dist.get_rank(), dist.get_world_size()
    tensor, _ = memory(7, 3, dtype=dtype)
    given = torch.arange(21).view(7, 3).to(dtype) + rank
    wanted = (size * torch.arange(21).view(7, 3) + sum(range(size))).to(dtype)
    ops = torch.ops.symm_mem
    tensor.copy_(given)
    right = [torch.equal(ops.one_shot_all_reduce(tensor, "sum", WORLD), wanted)]
    right.append(torch.equal(tensor, given))  # the input is unchanged
    out = torch.empty_like(given)
    right.append(torch.equal(ops.one_shot_all_reduce_out(tensor, "sum", WORLD, out), wanted))
    right.append(torch.equal(ops.one_shot_all_reduce_copy(tensor, given[:2], "sum", WORLD), wanted[:2]))
    tensor.copy_(given)
    ops.two_shot_all_reduce_(tensor, "sum", WORLD)
    right.append(torch.equal(tensor, wanted))
    return right, jobs.caught(ops.one_shot_all_reduce, tensor, "max", WORLD)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_pytorchs_all_reduces_of_symmetric_memory(dtype):
    for right, (kind, text) in jobs.run(3, operators, dtype):
        assert right == [True] * 5
        assert kind == "ValueError" and '"max"' in text
