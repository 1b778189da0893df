"""The examples, on 2 and 4 ranks, compared with one process."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import accelerated
import checkpoint
import common
import compiled_ddp
import ddp
import fault_tolerant
import fsdp
import fsdp_tensor_parallel
import huggingface
import huggingface_experts
import jobs
import moe
import pipeline
import pytest
import ring_attention
import tensor_parallel
import torch
import torch.distributed.checkpoint  # noqa: F401  (before the server of the ranks starts)
import ulysses
import zero

TOLERANCE = 2e-3  # of the loss: sums have another order, which AdamW's division amplifies


def compare(results, steps, **options):
    torch.set_num_threads(1)
    want = common.train(common.new_model(**options), steps)
    assert want[-1] < want[0]
    for losses in results:
        assert losses == pytest.approx(want, abs=TOLERANCE)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "example, options",
    [
        (ddp.main, {}),
        (zero.main, {}),
        (fsdp.main, {}),
        (tensor_parallel.main, {"sequence": False}),
        (tensor_parallel.main, {"sequence": True}),
    ],
    ids=["ddp", "zero", "fsdp", "tensor", "sequence"],
)
def test_training(example, options, ranks):
    compare(jobs.run(ranks, call, example, options), 6)


def test_hybrid_sharding():
    compare(jobs.run(4, call, fsdp.main, {"replicas": 2}), 6)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["gpipe", "1f1b", "interleaved"])
def test_pipeline(kind, ranks):
    stages = pipeline.stages_of(kind, ranks)
    compare(jobs.run(ranks, call, pipeline.main, {"kind": kind}), 4, layers=stages)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_mixture_of_experts(ranks):
    for got, want in zip(jobs.run(ranks, call, moe.main, {}), moe.alone(ranks)):
        for a, b in zip(got, want):
            torch.testing.assert_close(a, torch.zeros_like(a) if b is None else b)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_checkpoint(ranks, asynchronous, tmp_path):
    options = {"folder": str(tmp_path), "asynchronous": asynchronous}
    results = jobs.run(ranks, call, checkpoint.main, options)
    model = common.new_model()
    torch.set_num_threads(1)
    common.train(model, 2)
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(results[0][name], tensor, atol=TOLERANCE, rtol=0.01)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_ring_attention(ranks):
    want = torch.nn.functional.scaled_dot_product_attention(*ring_attention.inputs())
    got = torch.cat(jobs.run(ranks, call, ring_attention.main, {}), dim=2)
    torch.testing.assert_close(got, want)


def call(example, options):
    return example(**options)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_ulysses(ranks):
    results = jobs.run(ranks, call, ulysses.main, {})
    for number, want in enumerate(ulysses.alone()):
        got = torch.cat([result[number] for result in results], dim=2)
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_experts_of_hugging_face(ranks, tmp_path):
    pytest.importorskip("transformers", reason="no transformers here; scripts/setup python installs it")
    (tmp_path / "alone").mkdir()
    logits, written, gradient = huggingface_experts.alone(str(tmp_path / "alone"))
    for got in jobs.run(ranks, call, huggingface_experts.main, {"folder": str(tmp_path)}):
        torch.testing.assert_close(got[0], logits, atol=1e-4, rtol=1e-4)
        assert got[1] == written
        torch.testing.assert_close(got[2], gradient, atol=1e-5, rtol=1e-4)
        assert 0 < got[3] < got[4]  # bytes: fewer than by all_reduce


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_hugging_face(ranks, tmp_path):
    pytest.importorskip("transformers", reason="no transformers here; scripts/setup python installs it")
    (tmp_path / "alone").mkdir()
    loss, logits, written = huggingface.alone(str(tmp_path / "alone"))
    for got in jobs.run(ranks, call, huggingface.main, {"folder": str(tmp_path)}):
        assert got[0] == pytest.approx(loss, abs=1e-5)
        torch.testing.assert_close(got[1], logits, atol=1e-4, rtol=1e-4)
        assert got[2] == written


def under_torchrun():
    """Sets the variables of torchrun, which accelerate requires."""
    os.environ.update(
        MASTER_ADDR="127.0.0.1", LOCAL_RANK=os.environ["RANK"], LOCAL_WORLD_SIZE=os.environ["WORLD_SIZE"]
    )


def torchrun(example, *arguments, options=()):
    """The output of two ranks."""
    program = Path(common.__file__).with_name(example)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *options,
         program, *arguments],
        capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-8000:]
    return done.stdout


def test_fsdp_with_tensor_parallelism():
    compare(jobs.run(4, call, fsdp_tensor_parallel.main, {}), 6)


@pytest.mark.parametrize("compiler", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiled_step(compiler):
    compare(jobs.run(2, call, compiled_ddp.main, {"compiler": compiler}), 6)


def test_accelerate():
    pytest.importorskip("accelerate", reason="no accelerate here; scripts/setup python installs it")
    compare(jobs.run(2, call, accelerated.main, {}, prepare=under_torchrun), 6)


def test_lightning():
    pytest.importorskip("pytorch_lightning", reason="no Lightning here; scripts/setup python installs it")
    said = torchrun("lightning_ddp.py")
    losses = [float(number) for number in re.search(r"lightning_ddp: \[(.*?)\]", said)[1].split(",")]
    compare([losses], 6)


def test_elastic_restart(tmp_path):
    said = torchrun("elastic.py", tmp_path, options=["--max-restarts", "1"])
    assert "elastic: [3, 4, 5]" in said, said
    assert (tmp_path / "step-6" / ".metadata").exists()


def replica(number, lighthouse, folder):
    """Trains, and checks every five steps whether to continue."""

    def done(step):
        if step % 5 == 0:
            Path(folder, f"at-{number}").write_text(str(step))
            while not (Path(folder, f"go-{step}").exists() or Path(folder, f"stop-{step}").exists()):
                time.sleep(0.01)
        return Path(folder, f"stop-{step}").exists()

    torch.set_num_threads(1)
    return fault_tolerant.main(number, lighthouse, done=done)


def go_on_until_all_are_there(folder, first):
    """The step at which all three replicas check. Until then the running replicas continue."""
    end = time.monotonic() + 100
    while time.monotonic() < end:
        reports = [folder / f"at-{number}" for number in range(3)]
        steps = [int(path.read_text() or 0) if path.exists() else -1 for path in reports]
        latest = max(steps)
        if latest >= first and steps.count(latest) == 3:
            return latest
        if latest >= 0 and steps.count(latest) >= 2:
            (folder / f"go-{latest}").touch()
        time.sleep(0.01)
    raise AssertionError(f"the replicas are at {steps}")


@pytest.mark.slow
def test_replicas_that_die_and_come_back(tmp_path):
    """Each of three replicas is killed once and starts again; all end with the same weights."""
    torchft = pytest.importorskip("torchft", reason="no torchft here; scripts/setup python installs it")
    lighthouse = torchft._torchft.LighthouseServer("127.0.0.1:0", 2, 100, 100, 1000)

    def begin(number):
        return jobs.Job(1, replica, number, lighthouse.address(), str(tmp_path), backend=None)

    replicas = [begin(number) for number in range(3)]
    step = go_on_until_all_are_there(tmp_path, 1)
    for number in range(3):
        (tmp_path / f"go-{step}").touch()
        replicas[number].processes[0].kill()
        replicas[number].close()
        (tmp_path / f"at-{number}").unlink()
        replicas[number] = begin(number)
        step = go_on_until_all_are_there(tmp_path, step + 1)
    (tmp_path / f"stop-{step}").touch()
    endings = [one.ending(0) for one in replicas]
    for one in replicas:
        one.close()
    lighthouse.shutdown()
    for ending in endings:
        assert ending is not None and ending.error is None, ending
        for name, tensor in ending.value.items():
            assert torch.equal(tensor, endings[0].value[name]), name
