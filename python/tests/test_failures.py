"""Failures: mistakes of callers, and ranks that disagree, are late, die, or leave."""

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import jobs
import pytest
import torch
import torch.distributed as dist
from jobs import caught


def mistakes():
    group = dist.group.WORLD
    x = torch.ones(4)
    options = dist.BroadcastOptions()
    options.rootRank = 7
    found = {
        "root": caught(group.broadcast, [x], options),
        "two tensors": caught(group.allreduce, [x, x]),
        "sizes": caught(group._allgather_base, torch.ones(5), x),
        "types": caught(group._allgather_base, torch.ones(8, dtype=torch.int32), x),
        "bitwise": caught(dist.all_reduce, x, dist.ReduceOp.BAND),
        "bool": caught(dist.all_reduce, x > 0, dist.ReduceOp.AVG),
        "splits": caught(dist.all_to_all_single, x, x, [3, 1], [1, 1]),
        "negative split": caught(dist.all_to_all_single, x, x, [3, 1], [-1, 5]),
        "indivisible": caught(dist.all_to_all_single, torch.ones(3), torch.ones(3)),
        "list": caught(group.allgather, [[x]], [x]),
        "fp8 kinds": caught(dist.all_reduce, torch.ones(4).to(torch.float8_e8m0fnu)),
        "meta": caught(group._get_backend(torch.device("cpu")).broadcast, [x.to("meta")]),
        "expanded": caught(dist.all_reduce, torch.ones(1).expand(4)),
        "expanded list": caught(dist.all_gather, [torch.ones(1).expand(4)] * 2, x),
        "source": caught(group.recv, [x], 9, 0),
        "destination": caught(group.send, [x], 9, 0),
        "own split": caught(dist.all_to_all_single, torch.ones(4), x, [4, 0], [3, 1])
        if dist.get_rank() == 0
        else caught(dist.all_to_all_single, torch.ones(4), x, [0, 4], [1, 3]),
        "huge split": caught(dist.all_to_all_single, x, x, [3, 1], [1 << 62, 1 << 62]),
    }
    dist.all_reduce(x)  # nothing was sent, so the group works as before
    assert x.tolist() == [2.0] * 4
    return found


def test_mistakes_are_refused_before_anything_is_sent():
    expected = {
        "root": ("ValueError", "root 7 is not a rank of this group; ranks are 0 to 1"),
        "two tensors": ("ValueError", "2 tensors; exactly one tensor is expected"),
        "sizes": ("ValueError", "the output has 5 elements; 2 ranks of 4 make 8"),
        "types": ("TypeError", "tensors of Int and Float; all must have one type"),
        "bitwise": ("TypeError", "BAND of Float; bitwise operations need integers or bool"),
        "bool": ("TypeError", "AVG of bool; convert to a numeric type first"),
        "splits": ("ValueError", "the input split sizes add up to 2, but its dim 0 is 4"),
        "negative split": ("ValueError", "an input split size is -1"),
        "own split": ("ValueError", " sends itself 3 elements and expects 4 from itself; these splits of"),
        "indivisible": ("ValueError", "is 3, which 2 ranks do not divide; give split sizes"),
        "list": ("ValueError", "a list of 1 tensors for 2 ranks; there must be one for each"),
        "fp8 kinds": ("TypeError", "this type can be moved but not reduced"),
        "meta": ("ValueError", "a tensor is on meta; unisono works on tensors of the CPU and of CUDA"),
        "expanded": ("ValueError", "several elements of an output share one place in memory"),
        "expanded list": ("ValueError", "several elements of an output share one place in memory"),
        "source": ("ValueError", "source 9 is not a rank of this group; ranks are 0 to 1"),
        "destination": ("ValueError", "destination 9 is not a rank of this group; ranks are 0 to 1"),
        "huge split": ("ValueError", "input split sizes add up to more than its dim 0, which is 4"),
    }
    for found in jobs.run(2, mistakes):
        for name, (kind, text) in expected.items():
            assert found[name][0] == kind, (name, found[name])
            assert text in found[name][1], (name, found[name])


def late(run_async):
    if dist.get_rank() == 1:
        jobs.hear("over")
        return None
    options = dist.AllreduceOptions()
    options.timeout = timedelta(milliseconds=300)
    options.asyncOp = bool(run_async)
    start = time.monotonic()
    try:
        work = dist.group.WORLD.allreduce([torch.ones(3)], options)
        if run_async:
            work.get_future().wait() if run_async == "future" else work.wait()
    except RuntimeError as error:
        return type(error).__name__, str(error), time.monotonic() - start
    finally:
        jobs.say("over")
    return "no error", "", 0


@pytest.mark.parametrize("run_async", [False, True, "future"])
def test_timeout_names_who_has_not_come(run_async):
    with jobs.Job(2, late, run_async) as job:
        kind, text, took = job.ending(0).value
        assert kind in ("DistBackendError", "RuntimeError")
        assert "timeout: all_reduce" in text and " Timed out " in text
        assert "rank 1 has not entered it" in text
        assert 0.3 <= took < 20


def group_timeout():
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    group._set_default_timeout(timedelta(milliseconds=200))
    start = time.monotonic()
    kind, text = caught(dist.recv, torch.zeros(3), 1 - dist.get_rank())
    errors = [kind, text, caught(dist.barrier)[0]]
    return errors, time.monotonic() - start, group._is_failed()


def timeout_that_pytorch_sets():
    c10d = dist.distributed_c10d
    alone = dist.new_group([dist.get_rank()], use_local_synchronization=True)
    c10d._set_pg_timeout(timedelta(seconds=7), alone)
    untouched = dist.group.WORLD._get_backend(torch.device("cpu")).options._timeout
    c10d._set_pg_timeout(timedelta(milliseconds=200))
    start = time.monotonic()
    kind, text = caught(dist.recv, torch.zeros(3), 1 - dist.get_rank())
    return kind, "timeout: recv" in text, time.monotonic() - start < 20, untouched.total_seconds()


def test_timeout_that_pytorch_sets():
    assert jobs.run(2, timeout_that_pytorch_sets) == [("DistBackendError", True, True, jobs.TIMEOUT_S)] * 2


def test_timeout_of_the_group_and_the_end_of_it():
    for (kind, text, after), took, state in jobs.run(2, group_timeout):
        assert kind == "DistBackendError" and "timeout: recv" in text, text
        assert after == "DistBackendError" and took < 20
        assert state


def limited_wait():
    if dist.get_rank() == 1:
        jobs.hear("gave up")
        dist.all_reduce(torch.ones(3))
        return True
    x = torch.ones(3)
    work = dist.all_reduce(x, async_op=True)
    kind, text = caught(work.wait, timedelta(milliseconds=50))
    jobs.say("gave up")
    work.wait()  # the timeout of a wait does not end the operation
    return kind == "DistBackendError" and " Timed out " in text and x.tolist() == [2.0] * 3


def test_a_wait_may_give_up_and_come_back():
    assert jobs.run(2, limited_wait) == [True, True]


def disagree():
    dist.all_reduce(torch.ones(3 if dist.get_rank() == 0 else 4))


def test_ranks_that_disagree_are_told_what_each_does():
    with jobs.Job(2, disagree) as job:
        for rank in range(2):
            text = job.ending(rank).text
            assert "mismatch" in text and "rank 0" in text and "rank 1" in text, text


def work_for_ever(run_async, folder):
    x = torch.ones(50_000)
    dist.barrier()
    (folder / str(dist.get_rank())).touch()
    while True:
        work = dist.all_reduce(x, async_op=run_async)
        if work is not None:
            work.wait()
        x.fill_(1.0)


@pytest.mark.parametrize("run_async", [False, True])
def test_the_death_of_a_rank_ends_the_others_at_once(run_async, tmp_path):
    with jobs.Job(4, work_for_ever, run_async, tmp_path) as job:
        jobs.wait_for_files(tmp_path, 4)
        time.sleep(0.2)
        os.kill(job.processes[2].pid, signal.SIGKILL)
        killed = time.monotonic()
        for rank in (0, 1, 3):
            ending = job.ending(rank)
            assert ending.error == "DistBackendError", ending
            assert "rank 2" in ending.text and "SIGKILL" in ending.text, ending.text
            # 50 ms on an idle machine; a busy one gets more, but less than the timeout.
            assert ending.at - killed < 10, ending.at - killed
        job.processes[2].join()


def make_a_group_without_one(is_late, folder):
    dist.barrier()
    (folder / str(dist.get_rank())).touch()
    if dist.get_rank() == 2:
        time.sleep(100)
    while is_late and not (folder / "dead").exists():
        time.sleep(0.01)
    start = time.monotonic()
    return *caught(dist.new_group, [0, 1, 2]), time.monotonic() - start


@pytest.mark.parametrize("is_late", [False, True])
def test_a_group_is_not_waited_for_that_a_dead_rank_should_make(is_late, tmp_path):
    with jobs.Job(4, make_a_group_without_one, is_late, tmp_path, timeout_s=600) as job:
        jobs.wait_for_files(tmp_path, 4)
        time.sleep(0.2)
        os.kill(job.processes[2].pid, signal.SIGKILL)
        job.processes[2].join()
        (tmp_path / "dead").touch()
        for rank in (0, 1):
            kind, text, took = job.ending(rank, 60).value
            assert kind == "DistBackendError", text
            assert "rank 2" in text and "SIGKILL" in text and "earlier process group" in text, text
            assert took < 20  # 0.6 s on an idle machine
        job.processes[3].kill()  # not a member: it waits in PyTorch's own barrier


def make_a_group_of_the_living(folder):
    rank = dist.get_rank()
    pair = [0, 1] if rank < 2 else [2, 3]
    group = dist.new_group(pair, backend="unisono", use_local_synchronization=True)
    dist.barrier(group=group)
    (folder / str(rank)).touch()
    if rank == 1:
        time.sleep(100)
    if rank == 3:
        return None
    while not (folder / "dead").exists():
        time.sleep(0.01)
    time.sleep(2 if rank == 2 else 0)  # longer than the wait for a dead rank
    both = dist.new_group([0, 2], backend="unisono", use_local_synchronization=True)
    x = torch.full((3,), float(rank + 1))
    dist.all_reduce(x, group=both)
    return x.tolist()


def test_a_death_elsewhere_ends_no_group_of_the_living(tmp_path):
    with jobs.Job(4, make_a_group_of_the_living, tmp_path, backend="gloo", timeout_s=60) as job:
        jobs.wait_for_files(tmp_path, 4)
        os.kill(job.processes[1].pid, signal.SIGKILL)
        job.processes[1].join()
        (tmp_path / "dead").touch()
        for rank in (0, 2):
            ending = job.ending(rank, 60)
            assert ending.value == [4.0] * 3, ending


def abort_while_waiting():
    if dist.get_rank() == 0:
        time.sleep(0.2)
        dist.group.WORLD._get_backend(torch.device("cpu")).abort()
        return caught(dist.barrier)
    return caught(dist.barrier)


def test_abort_wakes_who_waits():
    for kind, text in jobs.run(2, abort_while_waiting):
        assert kind == "DistBackendError" and "aborted" in text, text


def leave_early():
    x = torch.full((100_000,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        work = dist.isend(x, 1)
        dist.destroy_process_group()  # waits for pending operations
        work.wait()
        return True
    time.sleep(0.3)
    dist.recv(x, 0)
    return x[99_999].item() == 0.0


def test_who_leaves_has_sent_all_that_it_owed():
    assert jobs.run(2, leave_early) == [True, True]


def end_without_destroying():
    dist.all_reduce(torch.ones(3))
    if dist.get_rank() == 0:
        from unisono.torch import extension

        extension().leave_all(finish_owed=True)  # as at the end of the interpreter
        return True
    time.sleep(0.3)
    return "peer_lost" in caught(dist.barrier)[1]


def test_the_end_of_a_program_is_no_death():
    assert jobs.run(2, end_without_destroying) == [True, True]


def destroyed():
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    dist.destroy_process_group()
    return caught(group.barrier)


def test_a_destroyed_group_says_so():
    for kind, text in jobs.run(2, destroyed):
        assert kind == "DistBackendError" and "has been destroyed" in text


def destroyed_too_early():
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    group._set_default_timeout(timedelta(milliseconds=300))
    work = dist.irecv(torch.ones(3), 1 - dist.get_rank())
    start = time.monotonic()
    dist.destroy_process_group()
    return caught(work.wait), time.monotonic() - start


def test_destroying_a_group_with_operations_under_way_ends():
    for (kind, text), took in jobs.run(2, destroyed_too_early):
        assert kind == "DistBackendError" and took < 20, text


def destroyed_in_a_blocking_call(is_of_world):
    """A thread is in a call that the other rank never makes when the group is destroyed."""
    group = None if is_of_world else dist.new_group([0, 1])
    backend = (group or dist.group.WORLD)._get_backend(torch.device("cpu"))
    backend._set_default_timeout(timedelta(milliseconds=500))
    if dist.get_rank() == 1:
        time.sleep(2)
        return None
    said = []
    thread = threading.Thread(target=lambda: said.append(caught(dist.barrier, group)))
    thread.start()
    time.sleep(0.2)
    dist.destroy_process_group(group)
    thread.join(30)
    return said


@pytest.mark.parametrize("is_of_world", [False, True], ids=["of a part", "of the world"])
def test_destroying_a_group_while_a_thread_is_in_a_blocking_call_ends(is_of_world):
    with jobs.Job(2, destroyed_in_a_blocking_call, is_of_world) as job:
        ending = job.ending(0)
        assert ending is not None and ending.error is None
        ((kind, text),) = ending.value
        assert kind == "DistBackendError", text


END_IN_A_CALL = """
import sys, threading, time
import torch.distributed as dist
dist.init_process_group("unisono", store=dist.FileStore(sys.argv[2], 2), rank=int(sys.argv[1]), world_size=2)
if sys.argv[1] == "0":
    threading.Thread(target=dist.barrier, daemon=True).start()
    time.sleep(0.3)
else:
    sys.stdin.read()  # until the other has ended
"""


def test_a_program_may_end_while_a_thread_is_in_a_blocking_call(tmp_path):
    command = [sys.executable, "-c", END_IN_A_CALL]
    ranks = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "store")], stdin=subprocess.PIPE) for rank in range(2)
    ]
    assert ranks[0].wait(60) == 0
    ranks[1].communicate(timeout=600)
    assert ranks[1].returncode == 0


def sparse_of_other_shapes():
    rank = dist.get_rank()
    found = []
    for sizes in [(8 - 4 * rank,), (8,) if rank else (8, 2)]:
        tensor = torch.sparse_coo_tensor([[3]], torch.ones([1, *sizes[1:]]), sizes)
        found.append(caught(dist.all_reduce, tensor))
    tensor = torch.sparse_coo_tensor([[rank]], torch.ones(1), (2,))
    dist.all_reduce(tensor)
    return found, tensor.to_dense().tolist()


def test_sparse_tensors_of_other_shapes_are_refused_on_all_ranks():
    for (sizes, dims), after in jobs.run(2, sparse_of_other_shapes):
        assert sizes[0] == dims[0] == "ValueError"
        assert "rank 0 has sizes [8] with 1 sparse dimensions, rank 1 has sizes [4] with" in sizes[1]
        assert "rank 0 has sizes [8, 2] with 1 sparse dimensions, rank 1 has sizes [8] with" in dims[1]
        assert after == [1.0, 1.0]


def forked():
    dist.barrier()
    child = os.fork()
    if child == 0:
        kind, text = caught(dist.all_reduce, torch.ones(3))
        os._exit(0 if "fork" in text else 1)
    _, status = os.waitpid(child, 0)
    dist.barrier()
    return os.waitstatus_to_exitcode(status)


def test_a_forked_child_is_told_and_does_no_harm():
    assert jobs.run(2, forked) == [0, 0]


def forked_while_waiting():
    if dist.get_rank() == 1:
        jobs.hear("tried")
        dist.all_reduce(torch.ones(3))
        return True
    x = torch.ones(3)
    work = dist.all_reduce(x, async_op=True)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        kind, text = caught(work.wait)
        os._exit(0 if kind == "DistBackendError" and "forked" in text else 1)
    _, status = os.waitpid(child, 0)
    jobs.say("tried")
    work.wait()
    return os.waitstatus_to_exitcode(status) == 0 and x.tolist() == [2.0] * 3


def test_a_forked_child_does_not_wait_for_its_parents_operation():
    assert jobs.run(2, forked_while_waiting) == [True, True]


def watched_failure():
    """A thread that notices the end of an operation also sees its result."""
    if dist.get_rank() == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    work = dist.all_reduce(torch.ones(3), async_op=True)
    while not work.is_completed():
        pass
    return work.is_success(), work.exception() is not None


def test_a_failure_that_is_polled():
    with jobs.Job(2, watched_failure) as job:
        assert job.ending(0).value == (False, True)


def who_is_missing():
    from unisono.torch import extension

    store = dist.PrefixStore("alone", dist.FileStore(os.environ["TEST_STORE"], 3))
    return caught(extension().Backend, store, 0, 3, timedelta(milliseconds=300))


def missing_ranks(path):
    os.environ["TEST_STORE"] = path
    return who_is_missing()


def test_ranks_that_do_not_come_to_a_new_group_are_named(tmp_path):
    ((kind, text),) = jobs.run(1, missing_ranks, str(tmp_path / "store"), backend=None)
    assert kind == "DistBackendError" and "ranks 1, 2 did not come" in text, text


def monitored():
    if dist.get_rank() == 1:
        jobs.hear("over 0")
        jobs.hear("over 2")
        return None
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    found = caught(group.monitored_barrier, timedelta(milliseconds=200), True)
    jobs.say(f"over {dist.get_rank()}")
    return found


def test_monitored_barrier_names_all_who_are_missing():
    endings = jobs.run(3, monitored)
    for rank in (0, 2):
        assert endings[rank][0] == "DistBackendError"
        assert "rank 1 has not entered it" in endings[rank][1]


def monitored_with_two_missing(wait_all_ranks):
    if dist.get_rank() > 0:
        jobs.hear("over 0")
        return None
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    found = caught(group.monitored_barrier, timedelta(milliseconds=200), wait_all_ranks)
    jobs.say("over 0")
    return found


@pytest.mark.parametrize(("wait_all_ranks", "named"), [(False, "Rank 1"), (True, "Ranks 1, 2")])
def test_monitored_barrier_names_them_as_gloo_does(wait_all_ranks, named):
    kind, text = jobs.run(3, monitored_with_two_missing, wait_all_ranks)[0]
    assert kind == "DistBackendError"
    assert f"{named} failed to pass monitoredBarrier in 200 ms" in text, text
