"""unisono.pipeline: schedules, and training under them."""

import json
import re

import numpy as np
import pytest
import unisono
from test_core_processes import ends, start

SIZES = (4, 3, 5, 2, 4, 3, 2, 6, 4)


def weights(stages):
    """One matrix for each stage; integers, so that sums do not depend on the order."""
    return [
        np.arange(SIZES[i] * SIZES[i + 1], dtype=np.int64).reshape(SIZES[i], SIZES[i + 1]) % 5 - 2
        for i in range(stages)
    ]


def data(microbatch):
    return np.arange(8, dtype=np.int64).reshape(2, 4) % 3 + microbatch


def alone(stages, microbatches):
    """Gradients of half the squared output."""
    ws = weights(stages)
    gradients = [np.zeros_like(w) for w in ws]
    for microbatch in range(microbatches):
        values = [data(microbatch)]
        for w in ws:
            values.append(values[-1] @ w)
        gradient = values[-1]
        for i in reversed(range(stages)):
            gradients[i] += values[i].T @ gradient
            gradient = gradient @ ws[i].T
    return gradients


class Model:
    def __init__(self, stages):
        self.weights = weights(stages)
        self.gradients = [np.zeros_like(w) for w in self.weights]
        self.last = stages - 1
        self.loss = {}

    def forward(self, stage, microbatch, x, output):
        x = data(microbatch) if x is None else np.asarray(x)
        y = x @ self.weights[stage]
        if stage == self.last:
            assert output is None
            self.loss[microbatch] = y
        else:
            assert output.shape == y.shape and not output.readonly
            np.asarray(output)[...] = y

    def backward_input(self, stage, microbatch, x, gradient, x_gradient):
        gradient = self.loss[microbatch] if gradient is None else np.asarray(gradient)
        if x_gradient is not None:
            np.asarray(x_gradient)[...] = gradient @ self.weights[stage].T

    def backward_weight(self, stage, microbatch, x, gradient):
        x = data(microbatch) if x is None else np.asarray(x)
        gradient = self.loss[microbatch] if gradient is None else np.asarray(gradient)
        self.gradients[stage] += x.T @ gradient

    def backward(self, stage, microbatch, x, gradient, x_gradient):
        self.backward_input(stage, microbatch, x, gradient, x_gradient)
        self.backward_weight(stage, microbatch, x, gradient)


def shapes(stage, last):
    before = None if stage == 0 else ("int64", (2, SIZES[stage]))
    return before, None if stage == last else ("int64", (2, SIZES[stage + 1]))


def runner_of(comm, schedule, model, **options):
    stages = {s: shapes(s, schedule.stages - 1) for s in schedule.stages_of(comm.rank)}
    return unisono.pipeline.Pipeline(
        comm, schedule, stages, forward=model.forward, backward=model.backward,
        backward_input=model.backward_input, backward_weight=model.backward_weight, **options)  # fmt: skip


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved", "zb-h1", "zbv", "v-half", "dualpipev"])
def test_gradients_are_those_of_one_process(name):
    schedule = unisono.pipeline.by_name(name, ranks=4, microbatches=8)
    wanted = alone(schedule.stages, 8)

    def body(comm):
        model = Model(schedule.stages)
        runner = runner_of(comm, schedule, model, record=True)
        runner.run_step()
        for stage in schedule.stages_of(comm.rank):
            assert (model.gradients[stage] == wanted[stage]).all()
        times = json.loads(runner.times_json())
        assert times["makespan"] > 0 and len(times["ranks"]) == len(times["predicted"]) == 4
        assert [a["action"] for a in times["ranks"][2]] == schedule.actions_of(2)
        assert times["pipeline"]["format"] == "unisono.pipeline/1"
        assert runner.most_bytes_held > 0

    unisono.run_threads(4, body)


def test_schedules():
    schedule = unisono.pipeline.parse("0F0,0B0\n1F0,1B0")
    assert (schedule.ranks, schedule.stages, schedule.microbatches) == (2, 2, 1)
    assert schedule.actions_of(0) == ["0F0", "0SEND_F0", "0RECV_B0", "0B0"]
    assert schedule.rank_of(1) == 1 and schedule.stages_of(1) == [1]
    assert unisono.pipeline.parse(schedule.text()).text() == schedule.text()
    with pytest.raises(unisono.UsageError, match="rank 0 never does 0B0"):
        unisono.pipeline.parse("0F0\n1F0,1B0")
    with pytest.raises(unisono.UsageError, match="there is no pipeline schedule 'pipedream'"):
        unisono.pipeline.by_name("pipedream", ranks=2, microbatches=4)


def test_dualpipe_has_two_sequences_of_stages():
    schedule = unisono.pipeline.by_name("dualpipe", ranks=2, microbatches=4)
    assert schedule.chains() == [[0, 1], [2, 3]] and [schedule.rank_of(s) for s in range(4)] == [0, 1, 1, 0]
    with pytest.raises(unisono.UsageError, match="the pipeline schedule has no rank 2\nit has 0 to 1"):
        schedule.stages_of(2)


@pytest.mark.parametrize("content, message", [
    (b"\xff\xfe0F0", 'cell 1: "??0F0" is not an action'),
    (b"", "a pipeline has 1 to 16384 stages"),
    (b"," * ((64 << 20) + 1), "more than 64 MiB"),
])  # fmt: skip
def test_files_that_are_no_pipelines(content, message, tmp_path):
    path = tmp_path / "theirs.csv"
    path.write_bytes(content)
    with pytest.raises(unisono.UsageError, match=re.escape(message)):
        unisono.pipeline.load(path)


@pytest.mark.parametrize("call", ["run_step", "times_json", "close"])
def test_a_callback_cannot_use_the_pipeline_that_calls_it(call):
    schedule = unisono.pipeline.by_name("naive", ranks=1, microbatches=1)

    def body(comm):
        said = []

        def forward(*_):
            with pytest.raises(unisono.UsageError, match="a step is in progress"):
                getattr(runner, call)()
            said.append(call)

        runner = unisono.pipeline.Pipeline(
            comm, schedule, {0: (None, None)}, forward=forward, backward=lambda *_: None, record=True)  # fmt: skip
        runner.run_step()
        runner.run_step()
        assert said == [call, call]

    unisono.run_threads(1, body)


def test_what_a_callback_raises_is_raised_and_ends_the_others(tmp_path):
    body = """
schedule = unisono.pipeline.by_name("1f1b", ranks=2, microbatches=4)
def forward(stage, microbatch, x, output):
    if (stage, microbatch) == (1, 2):
        raise KeyError("no such expert")
runner = unisono.pipeline.Pipeline(
    comm, schedule, {rank: (None, None if rank else ("bf16", (4, 8)))}, forward=forward,
    backward=lambda *tensors: None)
try:
    runner.run_step()
except KeyError as error:
    print("mine:", error)
except unisono.AbortedError as error:
    print("theirs:", error)
"""
    first, second = ends(start(tmp_path, 2, body))
    assert first[0] == 0 and "rank 1 of the pipeline failed in 1F2: KeyError: 'no such expert'" in first[1], first
    assert second[:2] == (0, "mine: 'no such expert'\n"), second


def test_shapes_that_differ(tmp_path):
    body = """
schedule = unisono.pipeline.by_name("gpipe", ranks=2, microbatches=1)
stages = {rank: (("float32", (4, 6)), None) if rank else (None, ("float32", (4, 8)))}
try:
    unisono.pipeline.Pipeline(comm, schedule, stages, forward=print, backward=print)
except unisono.MismatchError as error:
    print(str(error).splitlines()[0])
"""
    said = "stage 0 on rank 0 gives f32[4, 8], but stage 1 on rank 1 takes f32[4, 6]"
    for end in ends(start(tmp_path, 2, body)):
        assert end[0] == 0 and said in end[1], end
