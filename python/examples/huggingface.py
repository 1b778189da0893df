"""A Hugging Face model under tensor parallelism (tp_plan="auto"); a tiny one, made here:

torchrun --nproc-per-node 2 python/examples/huggingface.py
"""

import os
import sys
import tempfile

import common
import torch
import torch.distributed as dist

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is downloaded


def save_model(folder):
    """What a download would bring."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=64,
        tie_word_embeddings=False,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


def load_model(folder, **options):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **options)


def outcome(model):
    """The loss and the logits of a batch, and what the model goes on writing by itself."""
    tokens, _ = common.batch(0)
    model.eval()
    with torch.no_grad():
        out = model(input_ids=tokens, labels=tokens)
        written = model.generate(
            tokens[:1, :8], max_new_tokens=8, do_sample=False, pad_token_id=0, eos_token_id=None
        )
    return out.loss.item(), out.logits.clone(), written[0].tolist()


def shared_model(folder=None):
    """The folder of a model that rank 0 has written for all ranks."""
    if folder is None:
        shared = [tempfile.mkdtemp(prefix="unisono-example-")]
        dist.broadcast_object_list(shared, src=0)
        folder = shared[0]
    if dist.get_rank() == 0:
        save_model(folder)
    dist.barrier()
    return folder


def main(folder=None):
    """Every rank loads its part of the weights; all of them get the whole outcome."""
    return outcome(load_model(shared_model(folder), tp_plan="auto"))  # uses the group that is there


def alone(folder):
    save_model(folder)
    return outcome(load_model(folder))


if __name__ == "__main__":
    common.run(lambda: main(*sys.argv[1:])[0])
