"""Ranks that are processes: how they connect, die, disagree, fork and end."""

import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import unisono

# If a shell starts the tests in the background, SIGINT may be ignored, and the ranks would inherit
# this.
SIGINT_IS_HEARD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
HEAD = SIGINT_IS_HEARD + """
import os, pathlib, sys, time, numpy as np, unisono
rank = int(sys.argv[1])
comm = unisono.connect(rank=rank, size=int(sys.argv[2]), file=pathlib.Path(sys.argv[3]), timeout_ms=20000)
"""


def start(tmp_path, ranks, body, head=HEAD):
    return [
        subprocess.Popen(
            [sys.executable, "-c", head + body, str(rank), str(ranks), str(tmp_path / "meet")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(ranks)
    ]  # fmt: skip


def ends(processes):
    said = [process.communicate(timeout=600) for process in processes]
    return [(process.returncode, *text) for process, text in zip(processes, said)]


def test_they_meet_and_leave(tmp_path):
    body = """
x = np.full(100, rank + 1.0)
assert (comm.all_reduce(x) == 10).all()
part = comm.subgroup([1, 3], 77) if rank in (1, 3) else None
if part is not None:
    assert part.all_reduce(np.array([rank]))[0] == 4
print(comm)
"""  # which is not closed: leaving is in order all the same
    for rank, end in enumerate(ends(start(tmp_path, 4, body))):
        assert end == (0, f"<unisono.Communicator, rank {rank} of 4>\n", "")


def test_the_environment_says_who_one_is(tmp_path):
    head = "import os, sys, numpy as np, unisono\ncomm = unisono.connect(file=sys.argv[3])\n"
    body = "print(comm.all_reduce(np.array([comm.rank]))[0], comm.size)\n"
    processes = []
    for rank in range(2):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"}
        processes.append(subprocess.Popen(
            [sys.executable, "-c", head + body, "", "", str(tmp_path / "meet")], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))  # fmt: skip
    assert ends(processes) == [(0, "1 2\n", "")] * 2


# Rank 1 does not arrive, and is killed.
READY = """
comm.barrier()
print("ready", flush=True)
if rank == 1:
    time.sleep(100)
"""


def start_ready(tmp_path, ranks, body):
    processes = start(tmp_path, ranks, READY + body)
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    return processes


def test_a_rank_that_is_killed_is_named_at_once(tmp_path):
    body = """
try:
    comm.all_reduce(np.ones(4))
except unisono.PeerLostError as error:
    print(time.monotonic(), error.code, error.peer, error.collective)
"""
    processes = start_ready(tmp_path, 3, body)
    time.sleep(1)
    killed = time.monotonic()
    processes[1].send_signal(signal.SIGKILL)
    for rank in (0, 2):
        out, err = processes[rank].communicate(timeout=600)
        assert processes[rank].returncode == 0, err
        when, *rest = out.split()
        assert rest == ["peer_lost", "1", "all_reduce"]
        assert float(when) - killed < 10  # 50 ms are measured where nothing else runs
    processes[1].communicate()


def test_the_others_go_on_without_a_rank_that_is_killed(tmp_path):
    body = """
try:
    comm.all_reduce(np.ones(4))
except unisono.PeerLostError:
    comm = comm.shrink()
assert comm.previous_ranks == [0, 2], comm.previous_ranks
print(comm.rank, comm.size, comm.all_reduce(np.array([rank]))[0])
"""
    processes = start_ready(tmp_path, 3, body)
    processes[1].send_signal(signal.SIGKILL)
    assert [ends([processes[rank]]) for rank in (0, 2)] == [
        [(0, "0 2 2\n", "")], [(0, "1 2 2\n", "")]]  # fmt: skip
    processes[1].communicate()


def test_failure_tells_who_has_died_without_any_operation(tmp_path):
    body = """
while comm.failure() is None:
    time.sleep(0.001)
lost = comm.failure()
print(time.monotonic(), type(lost).__name__, lost.peer, flush=True)
comm = comm.shrink()
assert comm.failure() is None
comm.barrier()
"""
    processes = start_ready(tmp_path, 3, body)
    processes[1].send_signal(signal.SIGKILL)
    killed = time.monotonic()
    for code, said, errors in ends([processes[0], processes[2]]):
        assert (code, errors) == (0, "")
        when, *what = said.split()
        assert what == ["PeerLostError", "1"]
        assert float(when) - killed < 10  # some milliseconds where nothing else runs
    processes[1].communicate()


def test_other_errors_have_their_classes(tmp_path):
    body = """
try:
    comm.all_reduce(np.ones(4 + rank))
except unisono.MismatchError as error:
    print(error.code, isinstance(error, RuntimeError))
other = None
try:
    unisono.connect(rank=0, size=2, file=sys.argv[3] + str(rank), connect_timeout_ms=300)
except unisono.ConnectionError as error:
    print(isinstance(error, ConnectionError))
"""
    assert ends(start(tmp_path, 2, body)) == [(0, "mismatch True\nTrue\n", "")] * 2


def test_time_runs_out_on_all_ranks(tmp_path):
    body = """
try:
    while rank == 1 and not pathlib.Path(sys.argv[3] + "late").exists():
        time.sleep(0.01)
    comm.barrier(timeout_ms=200)
except unisono.TimeoutError as error:
    pathlib.Path(sys.argv[3] + "late").touch()
    print(isinstance(error, TimeoutError))
"""
    assert ends(start(tmp_path, 2, body)) == [(0, "True\n", "")] * 2


def test_an_error_in_a_with_block_ends_the_others(tmp_path):
    body = """
with comm:
    if rank == 0:
        raise SystemExit("enough")
    try:
        comm.barrier()
    except unisono.AbortedError as error:
        print("enough" in str(error))
"""
    first, second = ends(start(tmp_path, 2, body))
    assert first[0] == 1 and second == (0, "True\n", "")


def test_a_forked_child_leaves_its_parents_group_alone(tmp_path):
    body = """
child = os.fork()
if child == 0:
    comm.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert comm.all_reduce(np.ones(2))[0] == 2
print("good")
"""
    assert ends(start(tmp_path, 2, body)) == [(0, "good\n", "")] * 2


WAITS = {
    "all_reduce": "comm.all_reduce(np.ones(4))",
    "wait": "comm.all_reduce_async(np.ones(4)).wait()",
    "plan": "comm.all_reduce_plan(np.ones(4)).start()",
    "recv": "comm.recv(np.ones(4), 1)",
}


@pytest.mark.parametrize("waits", WAITS)
def test_ctrl_c_ends_a_wait_and_tells_the_others(tmp_path, waits):
    body = f"""
comm.barrier()
try:
    print("ready", flush=True)
    if rank == 1:
        sys.stdin.readline()
    {WAITS[waits]}
except KeyboardInterrupt:
    print("interrupted")
except unisono.AbortedError as error:
    print("rank 0 was interrupted" in str(error))
"""
    first, second = start(tmp_path, 2, body)
    for process in (first, second):
        assert process.stdout.readline() == "ready\n"
    time.sleep(1)
    first.send_signal(signal.SIGINT)
    assert first.communicate(timeout=600) == ("interrupted\n", "")  # rank 1 does not come before
    assert second.communicate("come\n", timeout=600) == ("True\n", "")


def test_ctrl_c_ends_waiting_for_ranks_that_do_not_come(tmp_path):
    head = HEAD.replace("comm =", "try:\n    print('ready', flush=True)\n    comm =")
    body = "except KeyboardInterrupt:\n    print('interrupted')\n"
    (first, second) = start(tmp_path, 2, body, head)
    second.kill()
    second.communicate()
    assert first.stdout.readline() == "ready\n"
    time.sleep(1)
    pressed = time.monotonic()
    first.send_signal(signal.SIGINT)
    assert first.communicate(timeout=600) == ("interrupted\n", "")
    assert time.monotonic() - pressed < 20  # and not the 30 s that it would wait


def test_a_handler_of_its_own_lets_an_operation_go_on(tmp_path):
    body = """
caught = []
signal.signal(signal.SIGINT, lambda *unused: caught.append("caught"))
comm.barrier()
print("ready", flush=True)
if rank == 1:
    sys.stdin.readline()
print(comm.all_reduce(np.ones(1))[0], *caught)
"""
    first, second = start(tmp_path, 2, body)
    for process in (first, second):
        assert process.stdout.readline() == "ready\n"
    time.sleep(1)
    first.send_signal(signal.SIGINT)
    time.sleep(0.3)  # longer than it takes to notice one that is to end the wait
    assert second.communicate("come\n", timeout=600) == ("2.0\n", "")
    assert first.communicate(timeout=600) == ("2.0 caught\n", "")


def test_ctrl_c_ends_threads(tmp_path):
    program = SIGINT_IS_HEARD + """
import unisono
def body(comm):
    if comm.rank == 0:
        print("ready", flush=True)
        comm.barrier()
try:
    unisono.run_threads(2, lambda comm: body(comm) or comm.recv(bytearray(1), 1 - comm.rank))
except KeyboardInterrupt:
    print("interrupted")
"""
    # The ranks wait for each other, which they would report.
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "UNISONO_DEADLOCK": "off"},
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=600) == ("interrupted\n", "")


def test_errors_can_be_pickled():
    error = unisono.TimeoutError("timeout: x", 1, 2, "barrier", 3, 4)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.peer, again.step) == (unisono.TimeoutError, "timeout: x", 2, 4)


def test_importing_is_cheap_and_needs_nothing():
    code = (
        "import sys, unisono; assert 'unisono._core' not in sys.modules\n"
        "assert 'connect' in dir(unisono)\n"
        "c = unisono.connect(rank=0, size=1); print(bytes(c.all_reduce(bytearray(b'ab'))))\n"
        "assert 'numpy' not in sys.modules and 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("b'ab'\n", "")


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'all_cheer'"):
        unisono.all_cheer  # noqa: B018
    assert np is not None
