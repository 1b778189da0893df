"""Small models of random weights, whose files vLLM loads as any other's: models.py FOLDER."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

WORDS = 512
SHAPE = {
    "vocab_size": WORDS, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4,
    "intermediate_size": 512, "max_position_embeddings": 512, "tie_word_embeddings": False,
    "initializer_range": 0.08,  # wide, so that the likeliest tokens differ clearly
}  # fmt: skip


def write(folder):
    torch.manual_seed(7)
    LlamaForCausalLM(LlamaConfig(**SHAPE)).save_pretrained(f"{folder}/llama")
    experts = {"num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 128, "norm_topk_prob": True}
    Qwen3MoeForCausalLM(Qwen3MoeConfig(head_dim=64, **experts, **SHAPE)).save_pretrained(f"{folder}/qwen3_moe")


if __name__ == "__main__":
    write(sys.argv[1])
