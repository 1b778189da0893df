"""Small models in files that vLLM loads like any other: models.py FOLDER [GGUF-FILE].

Of random weights: llama and qwen3_moe. With the GGUF file of SmolLM2 also: smollm2, with its own weights,
and served_llama and served_qwen3_moe, of random weights and with the tokenizer of SmolLM2.
"""

import os
import sys

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

WORDS = 512
SHAPE = {
    "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4,
    "intermediate_size": 512, "max_position_embeddings": 512, "tie_word_embeddings": False,
    "initializer_range": 0.08,  # wide, so that the likeliest tokens differ clearly
}  # fmt: skip
EXPERTS = {"num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 128, "norm_topk_prob": True}


def write(folder, gguf=None):
    if not os.path.exists(f"{folder}/qwen3_moe/model.safetensors"):
        _random(folder, "", WORDS)
    if gguf is not None and not os.path.exists(f"{folder}/served_qwen3_moe/tokenizer.json"):
        tokenizer = _smollm2(folder, gguf)
        for model in _random(folder, "served_", len(tokenizer)):
            tokenizer.save_pretrained(model)


def _random(folder, prefix, words):
    torch.manual_seed(7)
    shape = {"vocab_size": words, **SHAPE}
    LlamaForCausalLM(LlamaConfig(**shape)).save_pretrained(f"{folder}/{prefix}llama")
    Qwen3MoeForCausalLM(Qwen3MoeConfig(head_dim=64, **EXPERTS, **shape)).save_pretrained(f"{folder}/{prefix}qwen3_moe")
    return f"{folder}/{prefix}llama", f"{folder}/{prefix}qwen3_moe"


def _smollm2(folder, gguf):
    """Writes the weights of a GGUF file as safetensors, in f32, and returns its tokenizer."""
    place = {"pretrained_model_name_or_path": os.path.dirname(gguf), "gguf_file": os.path.basename(gguf)}
    tokenizer = AutoTokenizer.from_pretrained(**place)
    weights = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32).state_dict()
    plain = LlamaForCausalLM(AutoConfig.from_pretrained(**place))  # the other counts as quantized: it cannot be saved
    plain.load_state_dict(weights)
    plain.save_pretrained(f"{folder}/smollm2")
    tokenizer.save_pretrained(f"{folder}/smollm2")
    return tokenizer


if __name__ == "__main__":
    write(*sys.argv[1:])
