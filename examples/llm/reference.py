#!/usr/bin/env python3
"""Answers the prompts of answers.cc with Hugging Face transformers: reference.py FILE.gguf ANSWERS

Needs torch, transformers and gguf. What it writes is what `llm --compare ANSWERS` reads, so that one
process and every layout can be held to an implementation that others wrote. Models whose chat begins
with <|im_start|> are asked, as llm asks them.
"""
import ast
import pathlib
import re
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

TOKENS = 64
SOURCE = pathlib.Path(__file__).with_name("answers.cc")


def answer(model, ids):
    past, words = None, []
    for _ in range(TOKENS):
        out = model(ids, past_key_values=past, use_cache=True)
        past = out.past_key_values
        best = out.logits[0, -1].topk(2)
        words.append(f"{int(best.indices[0])}:{float(best.values[0] - best.values[1]):g}")
        ids = best.indices[:1].unsqueeze(0)
    return " ".join(words)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    file = pathlib.Path(sys.argv[1]).resolve()
    where = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    prompts = re.findall(r'^    ("(?:[^"\\]|\\.)*")[,}]', SOURCE.read_text(), re.MULTILINE)
    with torch.no_grad(), open(sys.argv[2], "w") as out:
        for prompt in map(ast.literal_eval, prompts):
            chat = f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
            ids = tokenizer(chat, return_tensors="pt", add_special_tokens=False).input_ids
            print(answer(model, ids), file=out, flush=True)


main()
