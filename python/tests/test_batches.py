"""Operations that PyTorch submits together, and that end as one Work."""

import threading

import jobs
import pytest
import torch
import torch.distributed as dist


def coalesced(async_ops, device):
    rank, found = dist.get_rank(), []
    device = torch.device(device) if device else None
    tensors = [torch.full((3 + i,), float(rank + i)) for i in range(4)]
    with dist._coalescing_manager(device=device, async_ops=async_ops) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    if async_ops:
        manager.wait()
    found.append([tensor[0].item() for tensor in tensors])
    parts = [torch.full((2,), float(rank)) for _ in range(2)]
    wholes = [torch.zeros(4) for _ in range(2)]
    with dist._coalescing_manager(device=device, async_ops=async_ops) as manager:
        for whole, part in zip(wholes, parts):
            dist.all_gather_into_tensor(whole, part)
    if async_ops:
        manager.wait()
    found.append([whole.tolist() for whole in wholes])
    with dist._coalescing_manager(device=device, async_ops=async_ops) as manager:
        for whole, part in zip(wholes, parts):
            dist.reduce_scatter_tensor(part, whole)
    if async_ops:
        manager.wait()
    found.append([part.tolist() for part in parts])
    return found


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("async_ops", [False, True])
def test_coalescing(async_ops, device):
    for rank, found in enumerate(jobs.run(2, coalesced, async_ops, device)):
        assert found[0] == [1.0, 3.0, 5.0, 7.0]
        assert found[1] == [[0.0, 0.0, 1.0, 1.0]] * 2
        assert found[2] == [[2.0 * rank] * 2] * 2


def coalesced_messages():
    """Messages in a batch are one Work, which ends when all of them have ended."""
    cpu, rank = torch.device("cpu"), dist.get_rank()
    group = dist.group.WORLD
    out, x = torch.zeros(5), torch.full((5,), float(rank))
    group._start_coalescing(cpu)
    group.send([x], 1 - rank, 3)
    group.recv([out], 1 - rank, 3)
    work = group._end_coalescing(cpu)
    work.wait()
    return work.is_completed() and out.tolist() == [1.0 - rank] * 5


def test_coalesced_messages():
    assert jobs.run(2, coalesced_messages) == [True, True]


def batched(count):
    """A list of P2POps becomes one Work, with the tensors and the future of all."""
    rank = dist.get_rank()
    outs = [torch.zeros(4) for _ in range(count)]
    steps = []
    for tag, out in enumerate(outs):  # receives first: the order does not matter
        steps.append(dist.P2POp(dist.irecv, out, 1 - rank, tag=tag))
        steps.append(dist.P2POp(dist.isend, torch.full((4,), rank + 10.0 * tag), 1 - rank, tag=tag))
    (work,) = dist.batch_isend_irecv(steps)
    doubled = work.get_future().then(lambda future: [x * 2 for x in future.value()])
    work.wait()
    right = all(out.tolist() == [1.0 - rank + 10.0 * tag] * 4 for tag, out in enumerate(outs))
    values = [x[0].item() for x in doubled.wait()]
    return right, work.is_completed(), work.is_success(), values, [x[0].item() for x in work.result()]


def test_batched_messages_are_one_work():
    for rank, (right, completed, success, doubled, results) in enumerate(jobs.run(2, batched, 3)):
        assert right and completed and success
        assert results == [1.0 - rank + 10.0 * tag for tag in range(3)]
        assert doubled == [2 * x for x in results]


def batched_with_failure():
    rank = dist.get_rank()
    if rank == 1:
        return None  # leaves, and sends nothing
    out = torch.zeros(4)
    (work,) = dist.batch_isend_irecv([dist.P2POp(dist.irecv, out, 1)])
    future = work.get_future()
    said = jobs.caught(work.wait)
    return said, jobs.caught(future.wait), work.is_completed(), work.is_success()


def test_batched_messages_that_fail():
    (kind, text), (_, late), completed, success = jobs.run(2, batched_with_failure)[0]
    assert kind == "DistBackendError" and "rank 1" in text and "rank 1" in late
    assert completed and not success


def batched_after_one_that_failed():
    other = 1 - dist.get_rank()
    wrong = dist.P2POp(dist.irecv, torch.ones(1).expand(4), other)
    said = jobs.caught(dist.batch_isend_irecv, [wrong])
    out = torch.zeros(2)
    good = [dist.P2POp(dist.isend, torch.ones(2), other), dist.P2POp(dist.irecv, out, other)]
    for work in dist.batch_isend_irecv(good):
        work.wait()
    return said, out.tolist()


def test_a_batch_that_is_refused_does_no_harm_to_the_next():
    for (kind, text), out in jobs.run(2, batched_after_one_that_failed):
        assert kind == "ValueError" and "call clone() first" in text
        assert out == [1.0, 1.0]


def batched_by_threads():
    """Each thread has its own batch; one may be open while another begins."""
    rank, cpu, wrong = dist.get_rank(), torch.device("cpu"), []
    group = dist.group.WORLD
    turn = threading.Barrier(2)

    def use(tag):
        for i in range(50):
            out = torch.zeros(2)
            group._start_coalescing(cpu)
            turn.wait()  # both batches are open
            group.send([torch.full((2,), float(i))], 1 - rank, tag)
            group.recv([out], 1 - rank, tag)
            turn.wait()
            group._end_coalescing(cpu).wait()
            if out[0] != i:
                wrong.append((tag, i, out[0].item()))

    users = [threading.Thread(target=use, args=(tag,)) for tag in (1, 2)]
    for user in users:
        user.start()
    for user in users:
        user.join(60)
    return wrong


def test_each_thread_has_a_batch_of_its_own():
    assert jobs.run(2, batched_by_threads) == [[], []]
