"""Layouts of whole models: the same results as `unisono plan-model`."""

import pytest
import unisono
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
    free = model.plan_serving("llama3-70b", "hgx_h200", precision="f8", tpot=0, top=1)
    bound = model.plan_serving("llama3-70b", "hgx_h200", precision="f8", tpot=0.02, top=1)
    assert bound["layouts"][0]["token_s"] <= 0.02
    assert bound["layouts"][0]["tokens_per_s_device"] <= free["layouts"][0]["tokens_per_s_device"]


def test_prompts_may_have_devices_of_their_own():
    asked = {"model": "deepseek-v3", "on": "dgx_h100:nodes=4", "precision": "f8", "input": 2000, "top": 1}
    together = model.plan_serving(**asked)["layouts"][0]
    pools = model.plan_serving(**asked, pools=True)["layouts"][0]
    assert "prompts" not in together
    prompts = pools["prompts"]
    assert prompts["instances"] > 0
    assert prompts["prompt_s"] > 0
    assert pools["seconds"]["prompts"] == 0
    assert pools["tokens_per_s_device"] >= together["tokens_per_s_device"]


def test_requests_that_arrive_at_random_have_quantiles():
    asked = {"model": "llama3-70b", "on": "hgx_h200", "precision": "f8", "input": 512, "output": 128, "top": 1}
    made = model.plan_serving(**asked, rate=2, ttft=2)["layouts"][0]
    for times in (made["waits"]["first_token_s"], made["waits"]["token_s"]):
        assert 0 < times["p50"] <= times["p90"] <= times["p99"]
    assert made["waits"]["first_token_s"]["p90"] <= 2
    assert made["most_requests_per_s"] > 2
    flooded = model.plan_serving(**asked, rate=1e6)
    assert flooded["layouts"] == []


def test_one_layout_alone():
    one = model.plan_serving("llama3-70b", "hgx_h200", layout={"tp": 4})["layouts"]
    assert [(row["tp"], row["instances"]) for row in one] == [(4, 2)]
    one = model.plan_training("llama3-8b", "dgx_h100", batch=64, layout={"tp": 2, "recompute": "full"})
    assert [(row["tp"], row["dp"], row["recompute"]) for row in one["layouts"]] == [(2, 4, "full")]
    one = model.plan_training("llama3-405b", "dgx_h100", batch=8, layout={"tp": 8, "micro_batch": 1})
    assert one["layouts"] == []
    assert one["least_missing_bytes"] > 1e9
    assert one["refused"] == {"memory": 1}
    with pytest.raises(ValueError, match="axis"):
        model.plan_training("llama3-8b", "dgx_h100", layout={})
    for wrong in ({"rate": float("inf")}, {"imbalance": float("inf")}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            model.plan_serving("llama3-70b", "hgx_h200", **wrong)
    with pytest.raises(unisono.UsageError, match="xp=2"):
        model.plan_serving("llama3-70b", "hgx_h200", layout={"xp": 2})
    with pytest.raises(ValueError, match="heads"):
        model.plan_serving("llama3-70b", "hgx_h200", layout={"tp": 3})


def test_speculation_and_cached_prefixes_help():
    asked = {"model": "llama3-70b", "on": "hgx_h200", "concurrency": 4, "layout": {"tp": 8}}
    plain = model.plan_serving(**asked)["layouts"][0]
    drafted = model.plan_serving(**asked, speculate=(3, 0.8))["layouts"][0]
    cached = model.plan_serving(**asked, prefix_hits=0.9)["layouts"][0]
    assert drafted["token_s"] < plain["token_s"] / 2
    assert cached["first_token_s"] < plain["first_token_s"]
    with pytest.raises(ValueError, match="speculate"):
        model.plan_serving(**asked, speculate=(0.5, 0.8))


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
