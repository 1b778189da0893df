"""Schedules, plans and simulations from Python."""

import json
from pathlib import Path

import pytest
import unisono
from unisono import model
from unisono import schedule as schedules


def test_every_algorithm_of_the_catalogue_is_right():
    for algorithm in schedules.catalog():
        for ranks in (2, 4, 5):
            if not algorithm.can_serve(ranks):
                assert algorithm.limits
                continue
            schedule = schedules.build(f"{algorithm.collective}/{algorithm.name}", ranks)
            assert schedule.verify() == [] and schedules.verify_claims(schedule) == []
            assert (schedule.verify_in_place() == []) >= algorithm.in_place


def test_what_a_schedule_says():
    ring = schedules.build("all_reduce/ring", 4)
    assert (ring.collective, ring.algorithm, ring.ranks, ring.chunks, ring.steps) == (
        "all_reduce", "ring", 4, 4, 6)  # fmt: skip
    assert ring.phases == [("reduce_scatter", 0), ("all_gather", 3)]
    first = ring.moves[0]
    assert (first.step, first.from_, first.to, first.source, first.reduces) == (0, 0, 1, "output", True)
    assert "step 1/6" in ring.show(step=1) and "[0···]" in ring.show(step=1)
    assert "step 6/6" in ring.show() and str(ring).startswith("all_reduce/ring ranks=4")
    again = schedules.Schedule.from_json(ring.to_json())
    assert str(again) == str(ring)


def test_a_wrong_schedule_is_found_and_its_line_named():
    builder = schedules.Builder("all_reduce", ranks=2, chunks=1)
    builder.phase("once")
    builder.step()
    builder.move(0, 1, 0, reduce=True)
    line = Path(__file__).read_text().splitlines().index("    builder.move(0, 1, 0, reduce=True)") + 1
    schedule = builder.build()
    findings = schedule.verify()
    assert findings and findings[0].kind == "data_flow" and findings[0].rank == 0
    assert schedule.moves[0].line == line and schedule.file == __file__
    with pytest.raises(ValueError, match="has built its schedule"):
        builder.step()
    with pytest.raises(ValueError, match="is not in the catalogue"):
        schedules.verify_claims(schedule)


def test_composition():
    half = schedules.build("all_reduce/recursive_doubling", 2)
    shape = {"collective": "all_reduce", "ranks": 4, "chunks": 1}
    within = [schedules.sub(half, members=m, begins=True, **shape) for m in ([0, 1], [2, 3])]
    across = [schedules.sub(half, members=m, **shape) for m in ([0, 2], [1, 3])]
    whole = schedules.then(schedules.beside(*within), schedules.beside(*across))
    assert whole.verify() == [] and whole.steps == 2


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: schedules.build("all_reduce/rnig", 4), "is not a COLLECTIVE/ALGORITHM; .* ring"),
        (lambda: schedules.build("all_cheer/ring", 4), "no collective 'all_cheer'; .* broadcast"),
        (lambda: schedules.build("all_reduce/ring:radix=3", 4), "radix"),
        (lambda: schedules.build("all_reduce/ring", 0), "give one or more ranks"),
        (lambda: schedules.build("all_reduce/ring", 5000), "at most 4096"),
        (lambda: schedules.build("broadcast/binomial", 4, 4), "root 4"),
        (lambda: schedules.Builder("all_reduce", 0, 1), "1 to 4096 ranks"),
        (lambda: schedules.Builder("all_reduce", 2, 1).move(0, 2, 0), "ranks are 0 to 1"),
        (lambda: schedules.Builder("all_reduce", 2, 1).move(0, 1, 1), "chunks are 0 to 0"),
        (lambda: schedules.Builder("all_reduce", 2, 1).move(0, 1, 0, source="lap"), "is not a place"),
        (lambda: schedules.build("all_reduce/ring", 2).show(step=9), "counted from 1"),
        (lambda: schedules.Schedule.from_json("{"), "the schedule"),
        (lambda: schedules.load("/nowhere/x.json"), "cannot read"),
        (lambda: model.topology("dgx_h100:nods=2"), "nods"),
        (lambda: model.topology('{"format": 1}'), "the topology"),
        (lambda: model.simulate("all_reduce/ring", "dgx_h100", contention="no"), "'auto', 'on'"),
        (lambda: model.simulate("all_reduce/ring", "dgx_h100", ranks=99), ""),
        (lambda: model.plan("all_reduce", 0, 8, model.Link(alpha_us=1, beta_gb_per_s=1)), "1 to"),
        (lambda: model.Link(alpha_us=-1, beta_gb_per_s=1), "below zero"),
    ],
)  # fmt: skip
def test_what_cannot_be(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_a_plan_is_that_of_the_cost_formulas():
    link = model.Link(alpha_us=5, beta_gb_per_s=12.5)
    plan = model.plan("all_reduce", 8, 64 << 20, link)
    ring = next(c for c in plan.candidates if c.algorithm == "ring")
    assert ring.messages == 14
    assert ring.time_us == pytest.approx(14 * 5 + 14 / 8 * (64 << 20) / 12.5e3)
    assert [c.time_us for c in plan.candidates] == sorted(c.time_us for c in plan.candidates)
    assert plan.bound_us <= plan.candidates[0].time_us
    assert len(plan.reasons) == len(plan.candidates) - 1 and plan.ranges[0][0] == 0
    assert "ring" in str(plan)


def test_a_simulation_is_that_of_the_model():
    link = model.Link(alpha_us=5, beta_gb_per_s=12.5)
    simulated = model.simulate("all_reduce/ring", link, ranks=8, bytes=64 << 20, records=1000)
    assert simulated.total_us == pytest.approx(14 * 5 + 14 / 8 * (64 << 20) / 12.5e3)
    assert simulated.messages == 14 * 8
    assert simulated.report()["schema"] == "unisono.simulation/1"
    assert len(json.loads(simulated.trace())["traceEvents"]) > 100
    schedule = schedules.build("all_reduce/ring", 8)
    assert model.simulate(schedule, link, bytes=64 << 20).total_us == pytest.approx(simulated.total_us)


def test_faults_and_workloads():
    assert "dgx_h100" in model.presets()
    machine = model.topology("fat_tree:hosts=16")
    assert machine.ranks == 16 and "16 ranks" in repr(machine)
    whole = model.simulate("all_reduce/ring", machine, bytes=1 << 24)
    half = model.simulate("all_reduce/ring", machine, bytes=1 << 24, degrade={"host3": 0.5})
    late = model.simulate("all_reduce/ring", machine, bytes=1 << 24, late_us={3: 1000})
    assert half.total_us > 1.5 * whole.total_us and late.total_us > whole.total_us + 500
    workload = {
        "format": "unisono.workload/1", "ranks": 4,
        "items": [{"name": "layer", "compute_us": 250},
                  {"collective": "all_reduce", "algorithm": "ring", "bytes": 4096}],
    }  # fmt: skip
    played = model.simulate(workload, machine)
    assert played.item_end_us[0] == 250 and played.item_end_us[1] == played.total_us
    again = model.topology(json.loads(machine.to_json()))
    assert again.devices == machine.devices and again.links == machine.links


def test_the_exchange_of_counts():
    pairwise = schedules.build("all_to_all_v/pairwise", 3)
    send = [[0, 5, 1], [3, 2, 40], [0, 0, 0]]
    exchange = pairwise.with_counts(send, element_bytes=4096)
    assert exchange.counts == send and pairwise.counts == [] and exchange.verify() == []
    assert "[···]" not in exchange.show() and "from 1" in exchange.show()
    assert schedules.Schedule.from_json(exchange.to_json()).counts == send
    receive = [[0, 3, 0], [5, 2, 0], [1, 41, 0]]
    (finding,) = pairwise.with_counts(send, receive).verify()
    assert "rank 1 sends 40 to rank 2, which expects 41" in str(finding)
    machine = model.topology("ethernet_cluster:hosts=3")
    even = pairwise.with_counts([[1] * 3] * 3, element_bytes=4096)
    slow, quick = (model.simulate(each, machine, bytes=0) for each in (exchange, even))
    assert slow.total_us > 1.5 * quick.total_us
    for wrong, why in (([[1]], "counts for 1 ranks"), ([[1, 2], [3]], "1 count in a table"),
                       ([[0, -1, 0]] * 3, "0 or more"), ([], "no counts")):  # fmt: skip
        with pytest.raises(ValueError, match=why):
            pairwise.with_counts(wrong)
    with pytest.raises(ValueError, match="does not support counts"):
        schedules.build("all_reduce/ring", 3).with_counts(send)


def test_a_measured_machine(tmp_path):
    points = {
        "collective": ["all_reduce"] * 4, "algorithm": [""] * 4, "ranks": [2] * 4,
        "bytes": [1024, 65536, 1048576, 16777216], "time_us": [10, 20, 100, 1500],
    }  # fmt: skip
    text = json.dumps({"format": "unisono.machine/1", "name": "mine", "points": points})
    machine = model.Machine.from_json(text)
    assert machine.name == "mine"
    assert machine.time_us("all_reduce", 2, 1048576) == pytest.approx(100, rel=0.3)
    with pytest.raises(ValueError, match="there are no measurements"):
        machine.time_us("all_reduce/ring", 2, 8)
    assert unisono.model is model
