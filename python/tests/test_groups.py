"""Several process groups: overlapping, many, created by their members alone, used by several threads."""

import os
import threading

import jobs
import pytest
import torch
import torch.distributed as dist


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def threads():
    return len(os.listdir("/proc/self/task"))


def overlapping():
    rank = dist.get_rank()
    pairs = [dist.new_group([a, b]) for a in range(4) for b in range(a + 1, 4)]
    members = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    wrong = []
    works = []
    for (a, b), group in zip(members, pairs):
        if rank in (a, b):
            x = torch.tensor([float(rank)])
            works.append((dist.all_reduce(x, group=group, async_op=True), x, a + b))
    for work, x, want in reversed(works):  # any order
        work.wait()
        if x.item() != want:
            wrong.append((x.item(), want))
    reverse = dist.new_group([3, 1, 0], sort_ranks=False) if "sort_ranks" in new_group_options() else None
    if reverse is not None and rank != 2:
        out = [torch.zeros(1) for _ in range(3)]
        dist.all_gather(out, torch.tensor([float(rank)]), group=reverse)
        if [int(x) for x in out] != [dist.get_global_rank(reverse, i) for i in range(3)]:
            wrong.append(out)
    return wrong


def new_group_options():
    import inspect

    return inspect.signature(dist.new_group).parameters


def test_overlapping_groups_wait_in_any_order():
    assert jobs.run(4, overlapping) == [[], [], [], []]


def many(count):
    dist.all_reduce(torch.ones(3), async_op=True).wait()
    before = descriptors(), threads()
    groups = [dist.new_group([0, 1]) for _ in range(count)]
    works = []
    # Each rank uses another order, with all operations pending at once.
    for group in groups if dist.get_rank() == 0 else reversed(groups):
        x = torch.ones(3)
        works.append((dist.all_reduce(x, group=group, async_op=True), x))
    for work, x in works:
        work.get_future().wait()
        assert x.tolist() == [2.0] * 3
    after = descriptors(), threads()
    for group in groups:
        dist.destroy_process_group(group)
    return after[0] - before[0], after[1] - before[1]


def test_many_groups_cost_no_descriptors_and_two_threads_in_all():
    for extra_descriptors, extra_threads in jobs.run(2, many, 100):
        assert extra_descriptors == 0
        assert extra_threads <= 2


def members_only():
    rank = dist.get_rank()
    if rank == 3:
        return True  # knows nothing of it
    group = dist.new_group([0, 1, 2], use_local_synchronization=True)
    x = torch.ones(2)
    dist.all_reduce(x, group=group)
    return x.tolist() == [3.0, 3.0]


def test_only_the_members_make_a_group():
    assert jobs.run(4, members_only) == [True] * 4


def without_a_world():
    """The default group uses gloo: the first unisono groups connect their own worlds."""
    rank = dist.get_rank()
    groups = [dist.new_group(ranks, backend="unisono") for ranks in ([0, 1], [2, 3], [0, 1, 2, 3])]
    again = dist.new_group([0, 1], backend="unisono")
    x = torch.ones(2)
    dist.all_reduce(x, group=groups[rank // 2])
    dist.all_reduce(x, group=groups[2])
    if rank < 2:
        dist.all_reduce(x, group=again)
    return x[0].item()


def test_groups_beside_a_default_group_of_gloo():
    assert jobs.run(4, without_a_world, backend="gloo") == [16.0, 16.0, 8.0, 8.0]


class Counting(dist.Store):
    """Counts the requests to a store; the last rank publishes its address after all others."""

    def __init__(self, inner, rank, ranks):
        super().__init__()
        self.inner, self.rank, self.ranks, self.asked = inner, rank, ranks, []

    def set(self, key, value):
        mine = f"unisono/{self.rank}"
        if self.rank == self.ranks - 1 and key.endswith(mine):
            self.inner.wait([key.removesuffix(mine) + f"unisono/{other}" for other in range(self.rank)])
        self.asked.append("set")
        self.inner.set(key, value)

    def check(self, keys):
        self.asked.append("check")
        return self.inner.check(keys)

    def multi_get(self, keys):
        self.asked.append("multi_get")
        return self.inner.multi_get(keys)

    def get(self, key):
        self.asked.append("get")
        return self.inner.get(key)

    def wait(self, keys, *timeout):
        self.asked.append("wait")
        self.inner.wait(keys, *timeout)

    def add(self, key, number):
        self.asked.append("add")
        return self.inner.add(key, number)


def counted(folder, count):
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = Counting(dist.FileStore(os.path.join(folder, "store"), ranks), rank, ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
    groups = [dist.new_group(backend="unisono")]
    store.asked.clear()
    groups += [dist.new_group(backend="unisono") for _ in range(count)]
    asked = list(store.asked)
    x = torch.ones(1)
    for group in groups:
        dist.all_reduce(x, group=group)
    dist.destroy_process_group()
    return asked, x.item()


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_group_under_a_default_group_of_gloo_asks_the_store_five_times(ranks, tmp_path):
    """Counts the requests of the last rank to arrive: the others retry until it has arrived."""
    endings = jobs.run(ranks, counted, str(tmp_path), 50, backend=None)
    assert [x for _, x in endings] == [float(ranks**51)] * ranks
    assert endings[-1][0] == ["add", "set", "check", "check", "multi_get"] * 50


def again_and_again(store_file):
    import time

    results, left = [], []
    for attempt in range(5):
        store = dist.FileStore(f"{store_file}-{attempt}", 2)
        rank = int(os.environ["RANK"])
        dist.init_process_group("unisono", store=store, rank=rank, world_size=2)
        x = torch.ones(1)
        dist.all_reduce(x)
        results.append(x.item())
        dist.destroy_process_group()
        time.sleep(0.01 * rank)
        left.append((threads(), descriptors()))
    return results, left


def test_a_process_may_join_and_leave_again_and_again(tmp_path):
    first, second = jobs.run(2, again_and_again, str(tmp_path / "store"), backend=None)
    assert first[0] == second[0] == [2.0] * 5
    for _, left in (first, second):
        assert left[-1] == left[0]  # nothing accumulates


def by_threads():
    groups = [dist.new_group([0, 1]) for _ in range(4)]
    wrong = []

    def use(group, number):
        for i in range(200):
            x = torch.full((1 + i * 7,), float(number))
            work = dist.all_reduce(x, group=group, async_op=i % 2 == 0)
            if work is not None:
                work.wait()
            if x[-1].item() != 2.0 * number:
                wrong.append((number, i))

    users = [threading.Thread(target=use, args=(group, i)) for i, group in enumerate(groups)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    return wrong


def test_threads_use_different_groups():
    assert jobs.run(2, by_threads) == [[], []]


def futures():
    x = torch.ones(4)
    steps = []

    def after(future):
        steps.append(future.value()[0].clone())
        # A callback on a future may start the next operation, and even wait for it.
        y = future.value()[0]
        return dist.all_reduce(y, async_op=True).get_future().wait()[0]

    work = dist.all_reduce(x, async_op=True)
    chained = work.get_future().then(after).then(lambda future: future.value() * 10)
    result = chained.wait()
    done = dist.all_reduce(torch.ones(1), async_op=True)
    done.wait()
    late = done.get_future().wait()[0].item()
    return steps[0].tolist(), result.tolist(), late, done.is_success(), done.result()[0].item()


def test_futures_chain_and_may_wait_for_others():
    for first, result, late, success, value in jobs.run(2, futures):
        assert first == [2.0] * 4 and result == [40.0] * 4
        assert late == value == 2.0 and success


def is_shared(tensor):
    """Returns whether its memory is a mapping that can be shared, not the heap."""
    address = tensor.data_ptr()
    with open("/proc/self/maps") as maps:
        for line in maps:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            if begin <= address < end:
                return "memfd:unisono" in line and line.split()[1].endswith("s")
    return False


def allocated():
    cpu = torch.device("cpu")
    group = dist.group.WORLD._get_backend(cpu)
    x = group.allocate_tensor(100_000, dtype=torch.float32, device=cpu)
    x.fill_(1.0)
    dist.all_reduce(x)
    view = x[10:20]
    del x
    assert group.supports_tensor_alloc(cpu) and is_shared(view) and not is_shared(torch.ones(9))
    for count in (-1, 1 << 61):
        try:
            group.allocate_tensor(count, dtype=torch.float64, device=cpu)
            return False
        except ValueError:
            pass
    assert group.allocate_tensor(0, dtype=torch.float32, device=cpu).numel() == 0
    return view.tolist() == [2.0] * 10


def test_tensors_in_registered_memory():
    assert jobs.run(2, allocated) == [True, True]


def profiled():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(torch.ones(3))
        dist.all_reduce(torch.ones(3), async_op=True).wait()
        dist.barrier()
    return [event.key for event in profile.key_averages() if event.key.startswith("unisono:")], sum(
        event.count for event in profile.key_averages() if event.key == "unisono:all_reduce"
    )


def test_the_profiler_shows_operations():
    for keys, count in jobs.run(2, profiled):
        assert set(keys) == {"unisono:all_reduce", "unisono:barrier"} and count == 2


def numbered():
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    before = group._get_sequence_number_for_group()
    dist.all_reduce(torch.ones(1))
    dist.barrier()
    return group._get_sequence_number_for_group() - before, group.name(), dist.get_backend()


def test_operations_are_numbered_and_the_backend_has_its_name():
    assert jobs.run(2, numbered) == [(2, "unisono", "unisono")] * 2


def made_and_destroyed(count):
    """Each group is used once and destroyed; the last one costs as much as the first."""
    dist.all_reduce(torch.ones(3), async_op=True).wait()
    before = None
    for number in range(count):
        group = dist.new_group([0, 1])
        x = torch.ones(2)
        dist.all_reduce(x, group=group, async_op=number % 2 == 0)
        if number % 2 == 0:
            dist.barrier(group=group)
        assert x.tolist() == [2.0, 2.0]
        dist.destroy_process_group(group)
        if number == 10:
            before = descriptors(), threads(), mappings()
    after = descriptors(), threads(), mappings()
    return [later - earlier for later, earlier in zip(after, before)]


def mappings():
    with open("/proc/self/maps") as maps:
        return len(list(maps))


@pytest.mark.parametrize("count", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_groups_made_and_destroyed_leave_nothing(count):
    for extra_descriptors, extra_threads, extra_mappings in jobs.run(2, made_and_destroyed, count):
        assert extra_descriptors == 0 and extra_threads <= 1
        assert extra_mappings < 20


def messages_beside_collectives():
    """One thread of a rank sends and receives while another calls collectives of the same group."""
    rank, wrong = dist.get_rank(), []

    def messages():
        for i in range(500):
            a, b = torch.full((50,), float(i)), torch.zeros(50)
            for work in [dist.isend(a, 1 - rank, tag=5), dist.irecv(b, 1 - rank, tag=5)]:
                work.wait()
            if b[0] != i:
                wrong.append(("message", i, b[0].item()))

    def collectives():
        for i in range(500):
            x = torch.ones(1 + i)
            dist.all_reduce(x)
            if x[-1] != 2:
                wrong.append(("all_reduce", i, x[-1].item()))

    users = [threading.Thread(target=body) for body in (messages, collectives)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    return wrong


def test_messages_beside_collectives():
    assert jobs.run(2, messages_beside_collectives) == [[], []]


def futures_of_one_moment():
    """A callback of one future waits for another future that ended at the same time."""
    import time

    for _ in range(100):
        works = [dist.all_reduce(torch.ones(8), async_op=True) for _ in range(2)]
        first, second = (work.get_future() for work in works)
        done = threading.Event()

        def wait_for_other(_, second=second, done=done):
            second.wait()
            done.set()

        first.then(wait_for_other)
        if not done.wait(5):
            return "hangs"
    time.sleep(0.01)
    return threads()


def test_futures_of_one_moment():
    assert all(isinstance(result, int) for result in jobs.run(2, futures_of_one_moment))
