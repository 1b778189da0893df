#!/usr/bin/env python3
"""Answers the prompts of answers.cc with Hugging Face transformers: reference.py MODEL FILE

MODEL is a GGUF file, or the folder of an encoder of BERT's kind, of which FILE has the vectors. Needs
torch and transformers, and gguf for GGUF files. What it writes is what `llm --compare FILE` reads, so
that one process and every layout can be held to an implementation that others wrote. Models whose chat
begins with <|im_start|> are asked, as llm asks them.
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
    """A line by prompt, of tokens and by how much they were likelier than the next ones."""
    where = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)

    def line(prompt):
        chat = f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
        return answer(model, tokenizer(chat, return_tensors="pt", add_special_tokens=False).input_ids)

    return line


def vectors(folder):
    """A line by prompt, of the numbers of its vector: the mean over its tokens, of length 1."""
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
