"""Layouts of whole models: the same answers as `unisono plan-model` gives."""

import pytest
from unisono import model

LLAMA_8B = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
}  # fmt: skip


def test_training_is_ranked():
    made = model.plan_training("llama3-8b", "dgx_h100", batch=64, sequence=4096, top=3)
    layouts = made["layouts"]
    assert len(layouts) == 3
    assert [row["step_s"] for row in layouts] == sorted(row["step_s"] for row in layouts)
    for row in layouts:
        assert row["tp"] * row["pp"] * row["cp"] * row["uly"] * row["dp"] == 8
        assert sum(row["seconds"].values()) == pytest.approx(row["step_s"])
        assert sum(row["bytes"].values()) <= 80e9
    assert made["tried"] == made["fitting"] + sum(made["refused"].values())
    assert made["reason"]


def test_a_config_is_a_model():
    by_name = model.plan_training("llama3-8b", "dgx_h100", batch=64, sequence=4096, top=1)
    by_config = model.plan_training(LLAMA_8B, "dgx_h100", batch=64, sequence=4096, top=1)
    assert by_name["layouts"] == by_config["layouts"]


def test_serving_keeps_its_limits():
    free = model.plan_serving("llama3-70b", "hgx_h200", precision="f8", top=1)
    bound = model.plan_serving("llama3-70b", "hgx_h200", precision="f8", token_s=0.02, top=1)
    assert bound["layouts"][0]["token_s"] <= 0.02
    assert bound["layouts"][0]["tokens_per_s_device"] <= free["layouts"][0]["tokens_per_s_device"]


def test_nothing_fits():
    made = model.plan_training("llama3-405b", "dgx_h100", batch=8)
    assert made["layouts"] == []
    assert made["least_missing_bytes"] > 1e9


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"model": "llama9"}, "llama3-70b"),
        ({"model": {"model_type": "mamba2"}}, "mamba2"),
        ({"on": "ethernet_cluster"}, "device"),
        ({"device": "tpu"}, "tpu"),
        ({"precision": "f2"}, "f2"),
        ({"batch": 0}, "batch"),
    ],
)
def test_mistakes_are_named(arguments, word):
    with pytest.raises(ValueError, match=word):
        model.plan_training(**({"model": "llama3-8b", "on": "dgx_h100"} | arguments))
