"""PyTorch's flight recorder contains the groups of unisono in its Python dumps."""

import json
import pickle
from datetime import timedelta

import jobs
import torch
import torch.distributed as dist
from test_installation import python
from torch._C import _distributed_c10d as c10d


def dumped():
    return pickle.loads(c10d._dump_fr_trace())


def many_calls():
    rank, other = dist.get_rank(), 1 - dist.get_rank()
    x = torch.ones(2, 3)
    dist.all_reduce(x)
    dist.broadcast(x, 0, async_op=True).wait()
    dist.all_gather([torch.empty(2, 3), torch.empty(2, 3)], x)
    dist.all_gather_into_tensor(torch.empty(4, 3), x)
    dist.reduce_scatter(torch.empty(2, 3), [x, x])
    dist.reduce_scatter_tensor(torch.empty(1, 3), x)
    dist.all_to_all_single(torch.empty(2, 3), x)
    dist.gather(x, [torch.empty(2, 3), torch.empty(2, 3)] if rank == 0 else None)
    dist.barrier()
    if rank == 0:
        dist.send(x, other)
        dist.recv(x, other)
    else:
        dist.recv(x)  # from any rank
        dist.send(x, other)
    half = dist.new_group([0, 1], group_desc="second")
    dist.all_reduce(torch.ones(5, dtype=torch.int64), group=half)
    dist.barrier()
    return dumped(), json.loads(c10d._dump_fr_trace_json())


def test_each_call_has_an_entry():
    dumps = jobs.run(2, many_calls)
    for rank, (dump, _) in enumerate(dumps):
        entries = dump["entries"]
        names = [entry["profiling_name"] for entry in entries]
        first, second = ("send 0->1", "recv 0<-1") if rank == 0 else ("recv 1<--1", "send 1->0")
        calls = "all_reduce broadcast all_gather _all_gather_base reduce_scatter _reduce_scatter_base all_to_all gather barrier"
        mine = [f"gloo:{name}" for name in [*calls.split(), first, second]]
        assert names[: len(mine)] == mine
        assert [entry["record_id"] for entry in entries] == list(range(len(entries)))
        assert {entry["state"] for entry in entries} == {"completed"}
        assert all(entry["retired"] for entry in entries)
        assert all(entry["time_discovered_completed_ns"] >= entry["time_created_ns"] for entry in entries)
        assert any(frame["name"] == "many_calls" for frame in entries[0]["frames"])
        assert entries[0]["input_sizes"] == [[2, 3]] and entries[0]["input_dtypes"] == ["Float"]
        assert entries[2]["output_sizes"] == [[2, 2, 3]]
        assert [entry["is_p2p"] for entry in entries[8:11]] == [False, True, True]
        of_second = [entry for entry in entries if entry["process_group"][1] == "second"]
        assert [entry["profiling_name"] for entry in of_second] == ["gloo:all_reduce"]
        assert of_second[0]["pg_id"] != entries[0]["pg_id"]
        assert dump["comm_lib_version"].startswith("unisono ")
        ranks = {group["desc"]: group["ranks"] for group in dump["pg_config"].values()}
        assert ranks["second"].replace(" ", "") == "[0,1]"


def analysed(dumps):
    """Returns the output of PyTorch's own tool for the dumps of all ranks."""
    from torch.distributed.flight_recorder.components.builder import build_db
    from torch.distributed.flight_recorder.components.config_manager import JobConfig

    arguments = JobConfig().parse_args([])
    arguments.allow_incomplete_ranks = True
    details = {
        f"rank{rank}.json": {"rank": rank, "host_name": "here", **dump} for rank, dump in enumerate(dumps)
    }
    return build_db(details, arguments, dumps[0]["version"])


def test_pytorchs_analysis_finds_nothing_wrong():
    dumps = jobs.run(2, many_calls)
    for form in (0, 1):
        found = analysed([both[form] for both in dumps])
        assert len(found.groups) == 2
        assert len(found.collectives) >= 11
        assert not [call for call in found.collectives if call.type_of_mismatch or call.missing_ranks]


def late():
    dist.barrier()
    if dist.get_rank() == 1:
        jobs.hear("over")
        return dumped()
    work = dist.all_reduce(torch.ones(2), async_op=True)
    under_way = dumped()
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    group._set_default_timeout(timedelta(milliseconds=100))
    failed = 0
    try:
        work.wait(timedelta(milliseconds=50))
    except dist.DistBackendError:
        failed += 1
    jobs.say("over")
    active = pickle.loads(c10d._dump_fr_trace(onlyActive=True))["entries"]
    return under_way, active, failed


def test_what_is_under_way_is_not_completed():
    (under_way, active, failed), of_late = jobs.run(2, late)
    assert failed == 1
    assert [entry["state"] for entry in under_way["entries"]] == ["completed", "started"]
    assert [entry["profiling_name"] for entry in active] == ["gloo:all_reduce"]
    found = analysed([under_way, of_late]).collectives
    assert [call.missing_ranks for call in found if call.collective_name == "gloo:all_reduce"] == [{1}]


BOTH = """
import json, torch, torch.distributed as dist
store = dist.HashStore()
dist.init_process_group('gloo', store=store, rank=0, world_size=1)
dist.all_reduce(torch.ones(2))
ours = dist.new_group([0], backend='unisono')
dist.all_reduce(torch.ones(3), group=ours)
dist.barrier()
found = json.loads(torch._C._distributed_c10d._dump_fr_trace_json())
entries = found.get('entries', [])
print([entry['profiling_name'] for entry in entries], len({entry['pg_id'] for entry in entries}),
      sorted(found['pg_status']))
dist.destroy_process_group()
"""


def test_groups_of_gloo_are_in_the_same_dump():
    assert python(BOTH, TORCH_FR_BUFFER_SIZE="100")[1] == (
        "['gloo:all_reduce', 'gloo:all_reduce', 'gloo:barrier'] 2 ['0', '1']"
    )


def test_it_can_be_switched_off():
    assert python(BOTH, TORCH_FR_BUFFER_SIZE="0")[1] == "[] 0 []"
