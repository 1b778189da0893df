"""Qwen3-MoE of Hugging Face transformers with its experts spread over the ranks; a tiny one, made here:

torchrun --nproc-per-node 4 python/examples/huggingface_experts.py

Prints how many bytes a rank sends for the experts of a batch, by transformers' own all_reduce and by
unisono's dispatch and combine.
"""

import os
import tempfile

import common
import torch
import torch.distributed as dist

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is downloaded

HIDDEN, EXPERTS, CHOICES, LAYERS = 64, 16, 2, 2


def save_model(folder):
    """What a download would bring."""
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    torch.manual_seed(5)
    config = Qwen3MoeConfig(
        vocab_size=256, hidden_size=HIDDEN, intermediate_size=128, moe_intermediate_size=32,
        num_hidden_layers=LAYERS, num_attention_heads=8, num_key_value_heads=4, head_dim=8,
        num_experts=EXPERTS, num_experts_per_tok=CHOICES, norm_topk_prob=True,
        max_position_embeddings=64, tie_word_embeddings=False,
    )  # fmt: skip
    Qwen3MoeForCausalLM(config).save_pretrained(folder)


def load_model(folder, way=None):
    """`way`: how tokens reach the experts of other ranks; None: all experts are here."""
    from transformers import AutoModelForCausalLM

    options = {}
    if way is not None:
        import unisono.torch.transformers  # noqa: F401  (it registers "unisono")
        from transformers.distributed import DistributedConfig

        ranks = dist.get_world_size()
        options["distributed_config"] = DistributedConfig(tp_size=ranks, ep_size=ranks, ep_implementation=way)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **options).eval()


def outcome(model):
    """The logits of a batch, what the model goes on writing, and a gradient."""
    tokens, _ = common.batch(0)
    with torch.no_grad():
        logits = model(input_ids=tokens).logits
        written = model.generate(
            tokens[:1, :8], max_new_tokens=8, do_sample=False, pad_token_id=0, eos_token_id=None
        )
    embedded = model.get_input_embeddings()(tokens).detach().requires_grad_()
    model(inputs_embeds=embedded, labels=tokens).loss.backward()
    return logits, written[0].tolist(), embedded.grad


def rows_of_all_reduce(tokens, ranks):
    """Rows that a rank sends where a batch of tokens is all_reduced by a ring, the least for it."""
    return 2 * (ranks - 1) / ranks * tokens


def bytes_of_a_batch(model):
    """What this rank sends for the experts of one batch, and what all_reduces of it would."""
    implementations = implementations_of(model)
    before = sum(one.rows_sent for one in implementations)
    tokens, _ = common.batch(0)
    with torch.no_grad():
        model(input_ids=tokens)
    row = 4 * HIDDEN
    sent = sum(one.rows_sent for one in implementations) - before
    return sent * row, int(len(implementations) * rows_of_all_reduce(tokens.numel(), dist.get_world_size()) * row)


def implementations_of(model):
    """The unisono.torch.transformers.DispatchEP of each layer, which transformers keeps in a closure."""
    from unisono.torch.transformers import DispatchEP

    cells = [
        cell.cell_contents
        for layer in model.model.layers
        for cell in layer.mlp.experts.forward.__closure__
    ]
    return [cell for cell in cells if isinstance(cell, DispatchEP)]


def main(folder=None, way="unisono"):
    """The outcome, and the bytes of both ways where this one is unisono's."""
    shared = [folder]
    made = tempfile.TemporaryDirectory(prefix="unisono-example-") if folder is None else None
    if made is not None:
        shared = [made.name]
        dist.broadcast_object_list(shared, src=0)
    if dist.get_rank() == 0:
        save_model(shared[0])
    dist.barrier()
    model = load_model(shared[0], way)
    dist.barrier()  # all have read it
    if made is not None:
        made.cleanup()
    results = outcome(model)
    return (*results, *(bytes_of_a_batch(model) if way == "unisono" else ()))


def alone(folder):
    save_model(folder)
    return outcome(load_model(folder))


if __name__ == "__main__":
    common.run(lambda: "{3} bytes by dispatch and combine, {4} by all_reduce".format(*main()))
