"""The examples, on 2 and 4 ranks, compared with one process."""

import checkpoint
import common
import ddp
import fsdp
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

TOLERANCE = 2e-3  # of the loss; sums in another order, amplified by AdamW's division


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


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_checkpoint(ranks, tmp_path):
    results = jobs.run(ranks, call, checkpoint.main, {"folder": str(tmp_path)})
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
