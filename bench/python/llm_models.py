"""Creates the models of llm.py as folders that transformers can read. Downloads nothing."""

import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

SMOLLM2 = Path(__file__).parents[2] / "build" / "models" / "smollm2.gguf"
PROMPT = 32  # tokens


def _llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8,
            num_attention_heads=16, num_key_value_heads=8, max_position_embeddings=1024,
            tie_word_embeddings=False,
        )
    )  # fmt: skip


def _qwen3_moe():
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    return Qwen3MoeForCausalLM(
        Qwen3MoeConfig(
            vocab_size=32000, hidden_size=512, intermediate_size=1024, moe_intermediate_size=256,
            num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4, head_dim=64,
            num_experts=32, num_experts_per_tok=4, norm_topk_prob=True, max_position_embeddings=1024,
        )
    )  # fmt: skip


def _smollm2():
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

    if not SMOLLM2.exists():
        raise SystemExit(f"llm: {SMOLLM2} is not there; scripts/fetch-model smollm2 fetches it")
    # transformers treats a model from GGUF as quantised and cannot save it, so its weights are
    # copied to a new model.
    read = AutoModelForCausalLM.from_pretrained(
        SMOLLM2.parent, gguf_file=SMOLLM2.name, dtype=torch.float32
    )
    config = read.config.to_dict()
    config.pop("quantization_config", None)
    model = LlamaForCausalLM(LlamaConfig(**config))
    model.load_state_dict(read.state_dict())
    return model


MODELS = {"llama": _llama, "qwen3_moe": _qwen3_moe, "smollm2": _smollm2}


def save(name, folder, dtype):
    """Writes a model's folder. Random weights are the same in each run; smollm2 has trained weights."""
    import torch

    torch.manual_seed(5)
    MODELS[name]().to(getattr(torch, dtype)).save_pretrained(folder)


def misfit(folder, layout, ranks):
    """Returns why transformers cannot distribute the model like this, or None."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder)
    heads = (config.num_attention_heads, config.num_key_value_heads)
    if layout == "tp" and any(count % ranks for count in heads):
        return f"its {heads[0]} heads and {heads[1]} of keys do not divide by {ranks} ranks"
    return None


def load(folder, layout, ranks, dtype):
    """Loads a model. `layout`: "alone", "tp", "pp", "ep", or "ep-" followed by the method of expert
    exchange."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.distributed import DistributedConfig

    options = {}
    kind, _, way = layout.partition("-")
    if kind == "tp":
        options["distributed_config"] = DistributedConfig(tp_plan="auto")
    elif kind == "pp":
        options["distributed_config"] = DistributedConfig(pp_size=ranks)
    elif kind == "ep":
        if way == "unisono":
            import unisono.torch.transformers  # noqa: F401  (registers it)
        options["distributed_config"] = DistributedConfig(
            tp_size=ranks, ep_size=ranks, ep_implementation=way or "auto"
        )
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), **options)
    return model.eval()
