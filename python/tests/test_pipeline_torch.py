"""The CSV files of PyTorch's own generators are read, proved, and written without loss."""

import csv

import pytest
import unisono
from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.stage import _PipelineStageBase

SHAPES = [(2, 4), (2, 8), (3, 9), (4, 8), (4, 16)]  # ranks and microbatches
LOOPED = ["ScheduleLoopedBFS", "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble"]
V_SHAPED = ["ScheduleZBVZeroBubble", "ScheduleDualPipeV"]


class Stage(_PipelineStageBase):
    """The members of a stage on rank 0 that the generators use."""

    def __init__(self, index, ranks, rank_of):
        self.stage_index, self.num_stages = index, len(rank_of)
        self.group, self.group_size, self.group_rank = None, ranks, 0
        self.submod, self.has_backward = None, True
        self.stage_index_to_group_rank = dict(enumerate(rank_of))

    def _prepare_forward_infra(self, *args, **options): ...

    def _prepare_backward_infra(self, *args, **options): ...

    def _create_grad_recv_info(self, *args, **options): ...


def with_one_stage(name, ranks, microbatches):
    schedule = getattr(schedules, name)(
        Stage(0, ranks, range(ranks)), microbatches, loss_fn=lambda output, target: output
    )
    return schedule._get_pipeline_order()


def with_two_stages(name, ranks, microbatches):
    v = name in V_SHAPED
    rank_of = [s if s < ranks else 2 * ranks - 1 - s if v else s - ranks for s in range(2 * ranks)]
    stages = [Stage(s, ranks, rank_of) for s in range(2 * ranks) if rank_of[s] == 0]
    return getattr(schedules, name)(stages, microbatches, loss_fn=lambda output, target: output)


def text_of(order):
    return "".join(",".join("" if a is None else str(a) for a in order[rank]) + "\n" for rank in sorted(order))


def cells(text):
    return [[cell for cell in row if cell] for row in csv.reader(text.splitlines())]


@pytest.mark.parametrize("ranks, microbatches", SHAPES)
@pytest.mark.parametrize("kind", ["compute_only", "compute_comms"])
@pytest.mark.parametrize("name", LOOPED + V_SHAPED)
def test_what_torch_writes_is_right(name, kind, ranks, microbatches, tmp_path):
    path = tmp_path / "torch.csv"
    with_two_stages(name, ranks, microbatches)._dump_csv(str(path), kind)
    schedule = unisono.pipeline.load(path)
    assert (schedule.ranks, schedule.stages, schedule.microbatches) == (ranks, 2 * ranks, microbatches)
    if kind == "compute_comms":  # no action is lost; the parts of an overlap are listed behind it
        written = [
            sum(1 + (cell.count(";") + 1 if cell.startswith("(") else 0) for cell in row)
            for row in cells(path.read_text())
        ]
        assert [len(schedule.actions_of(rank)) for rank in range(ranks)] == written
    # Messages that no receive waits for yet: one, unless all microbatches pass a stage before any
    # microbatch passes the next stage on the same two ranks, and the file has no receives to place
    # earlier.
    assert schedule.capacity == 1 or (name, ranks, kind) == ("ScheduleLoopedBFS", 2, "compute_only")


@pytest.mark.parametrize("ranks, microbatches", SHAPES)
def test_gpipe_is_right(ranks, microbatches):
    order = with_one_stage("ScheduleGPipe", ranks, microbatches)
    assert unisono.pipeline.parse(text_of(order)).microbatches == microbatches


# PyTorch counts microbatches from 1 on the last rank: F of microbatch 0 is missing there, and a
# nonexistent microbatch appears. PyTorch trains by other code, and its own check of orders refuses
# this order too.
@pytest.mark.parametrize("ranks, microbatches", SHAPES)
def test_the_order_of_1f1b_is_wrong_in_torch(ranks, microbatches):
    order = with_one_stage("Schedule1F1B", ranks, microbatches)
    last = [str(action) for action in order[ranks - 1] if action is not None]
    forward = [action for action in last if "F" in action]
    assert forward == [f"{ranks - 1}F{i}" for i in range(1, microbatches + 1)]
    with pytest.raises(AssertionError, match="without first running Forward"):
        schedules._validate_schedule(order, ranks, ranks, microbatches)
    with pytest.raises(unisono.UsageError, match="is invalid"):
        unisono.pipeline.parse(text_of(order))
    # With microbatches counted from 0 on the last rank, the order is right.
    repaired = text_of(order).splitlines()
    row = ["" if a is None else str(a) for a in order[ranks - 1]]
    stage = ranks - 1
    names = {f"{stage}F{i + 1}": f"{stage}F{i}" for i in range(microbatches)}
    repaired[-1] = ",".join(names.get(cell, cell) for cell in row)
    assert unisono.pipeline.parse("\n".join(repaired)).microbatches == microbatches
