#!/usr/bin/env python3
"""Answers the prompts of answers.cc with Hugging Face transformers: reference.py MODEL FILE

MODEL is a GGUF file, or the folder of a BERT encoder, for which FILE gets the vectors. Needs torch and
transformers, and gguf for GGUF files. `llm --compare FILE` reads the output and compares one process or any
layout with an independent implementation. Models whose chat format begins with <|im_start|> get the prompts
as questions, as in llm.
"""
import ast
import pathlib
import re
import sys

import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

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


def answers(file):
    """Returns a line per prompt: tokens, with the difference between the two largest logits."""
    where = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)

    def line(prompt):
        chat = f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
        return answer(model, tokenizer(chat, return_tensors="pt", add_special_tokens=False).input_ids)

    return line


def vectors(folder):
    """Returns a line per prompt with the numbers of its vector: the mean over its tokens, of length 1."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32)

    def line(prompt):
        rows = model(**tokenizer(prompt, return_tensors="pt")).last_hidden_state[0]
        mean = torch.nn.functional.normalize(rows.mean(0), dim=0)
        return " ".join(f"{float(value):.9g}" for value in mean)

    return line


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    model = pathlib.Path(sys.argv[1]).resolve()
    prompts = re.findall(r'^    ("(?:[^"\\]|\\.)*")[,}]', SOURCE.read_text(), re.MULTILINE)
    with torch.no_grad(), open(sys.argv[2], "w") as out:
        line = vectors(model) if model.is_dir() else answers(model)
        for prompt in map(ast.literal_eval, prompts):
            print(line(prompt), file=out, flush=True)


main()
