#!/usr/bin/env python3
"""Does examples/llm read folders of safetensors as it reads GGUF, and refuse what is damaged?

One model is written in several ways; ten prompts must have the same tokens, and a text, too. Damaged
files must be refused with one sentence that says what is wrong.

Usage: folder_test.py --program UNISONO --llm LLM
"""

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import made_up

TEXT = "<|im_start|>In the 2024th year, others' banner é\n\n 12 <|im_end|>"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--llm", required=True)
    args = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = made_up.tensors(7)
        made_up.write_gguf(folder / "model.gguf", made)
        check_same(args, folder, made, wrong)
        damages = list(damaged(folder, made))
        for what, model, sentence in damages:
            done = subprocess.run([args.llm, "--model", model, "--prompt", "hello"], capture_output=True, text=True)
            said = done.stderr.strip()
            if done.returncode != 1 or sentence not in said or "\n" in said:
                wrong.append(f"{what}: exit status {done.returncode}, said {said!r}, not {sentence!r}")
    print("\n".join(wrong))
    print(f"{len(damages)} damaged models, {len(wrong)} mistakes")
    return 1 if wrong else 0


def check_same(args, folder, made, wrong):
    def run(*words):
        return subprocess.run(words, capture_output=True, text=True)

    saved = folder / "answers.txt"
    run(args.llm, "--model", folder / "model.gguf", "--save", saved)
    tokens = run(args.llm, "--model", folder / "model.gguf", "--show-tokens", TEXT).stdout
    if len(tokens.split()) < 20:
        wrong.append(f"a text has the tokens {tokens!r}")
    for dtype, files in (("F32", 1), ("BF16", 1), ("BF16", 3)):
        model = folder / f"{dtype}-{files}"
        made_up.write_folder(model, made, dtype, files)
        for start in ([], [args.program, "run", "-q", "-n", "2", "--"]):
            done = run(*start, args.llm, "--model", model, "--compare", saved)
            if done.returncode != 0 or "same tokens" not in done.stdout:
                wrong.append(f"{model.name}: {done.stdout}{done.stderr}")
        said = run(args.llm, "--model", model, "--show-tokens", TEXT).stdout
        if said != tokens:
            wrong.append(f"{model.name}: tokens {said!r}, not {tokens!r}")


def damaged(folder, made):
    """(what was done, the model, a part of what must be said)"""
    count = 0

    def fresh(files=1):
        nonlocal count
        count += 1
        model = folder / f"damaged-{count}"
        made_up.write_folder(model, made, "BF16", files)
        return model

    def with_header(what, change, sentence):
        model = fresh()
        whole, header = made_up.safetensors(made, "BF16")
        data = whole[8 + struct.unpack("<Q", whole[:8])[0]:]
        (model / "model.safetensors").write_bytes(made_up.packed(change(header, data), data))
        return what, model, sentence

    def with_bytes(what, change, sentence):
        model = fresh()
        file = model / "model.safetensors"
        file.write_bytes(change(file.read_bytes()))
        return what, model, sentence

    def with_json(what, name, change, sentence, files=1):
        model = fresh(files)
        value = json.loads((model / name).read_text())
        (model / name).write_text(json.dumps(change(value) or value))
        return what, model, sentence

    def entry(**values):
        return lambda header, _: {**header, "lm_head.weight": {**header["lm_head.weight"], **values}}

    def shifted(header, _):
        begin, end = header["model.norm.weight"]["data_offsets"]
        header["model.norm.weight"]["data_offsets"] = [begin - 2, end - 2]
        return header

    yield with_bytes("cut in its data", lambda b: b[:-10], "outside of the file")
    yield with_bytes("cut in its header", lambda b: b[:100], "ends in the middle of its header")
    yield with_bytes("cut in its length", lambda b: b[:5], "is no safetensors file: it has 5 bytes")
    yield with_bytes("empty", lambda b: b"", "is empty")
    yield with_bytes("longer", lambda b: b + b"12", "has 2 bytes behind its last tensor")
    yield with_bytes("header too long", lambda b: struct.pack("<Q", 1 << 40) + b[8:], "more than the 100000000")
    yield with_header("no JSON", lambda h, d: b"{not json", "header that is no JSON object")
    yield with_header("a list", lambda h, d: [1], "header that is no JSON object")
    yield with_header("nested", lambda h, d: b"[" * 200000, "header that is no JSON object")
    yield with_header("unknown type", entry(dtype="Q9"), "in the unknown type 'Q9'")
    yield with_header("another type", entry(dtype="I16"), "in a type that is not read here")
    yield with_header("too wide a type", entry(dtype="F32"), "of a shape that its bytes do not hold")
    yield with_header("a shape that overflows", entry(shape=[1 << 33, 1 << 33]), "of a shape that its bytes do not hold")
    yield with_header("a negative shape", entry(shape=[-1, 72]), "no whole number")
    yield with_header("no shape", entry(shape=None), "without a dtype, a shape or two offsets")
    yield with_header("offsets backwards", entry(data_offsets=[8, 4]), "outside of the file")
    yield with_header("overlapping", shifted, "overlapping another tensor")
    yield with_header("missing tensor", lambda h, d: {k: v for k, v in h.items() if k != "lm_head.weight"},
                      "behind bytes that belong to no tensor")
    yield with_json("smaller", "config.json", lambda c: c.update(vocab_size=1000), "less than the model needs")
    yield with_json("no layers", "config.json", lambda c: c.update(num_hidden_layers=0),
                    "has no 'num_hidden_layers' of 1 or more")
    yield with_json("too many layers", "config.json", lambda c: c.update(num_hidden_layers=4),
                    "has no tensor 'model.layers.3.input_layernorm.weight'")
    yield with_json("other model", "config.json", lambda c: c.update(model_type="bert"), 'is of the model type "bert"')
    yield with_json("other rotary embedding", "config.json", lambda c: c.update(rope_scaling={"rope_type": "yarn"}),
                    'rotary embedding of the type "yarn"')
    yield with_json("biases", "config.json", lambda c: c.update(attention_bias=True), "has 'attention_bias'")
    index = "model.safetensors.index.json"
    yield with_json("another folder's file", index, lambda i: i["weight_map"].update(x="../secret"),
                    "names no file of its folder for 'x'", 2)
    yield with_json("a file that is not there", index, lambda i: i["weight_map"].update(x="y.safetensors"),
                    "y.safetensors cannot be read", 2)
    yield with_json("a tensor that is not there", index,
                    lambda i: i["weight_map"].update(x="model-00001-of-00002.safetensors"), "names 'x', which", 2)
    yield with_json("another tokenizer", "tokenizer.json", lambda t: t["model"].update(type="Unigram"),
                    "no tokenizer but byte-level BPE")
    yield with_json("another cut", "tokenizer.json", lambda t: t.update(pre_tokenizer={"type": "Split"}),
                    "no tokenizer that cuts text by 'Split'")
    yield with_json("a token too far", "tokenizer.json", lambda t: t["model"]["vocab"].update(x=1 << 40),
                    "no tokenizer whose token 'x' has no number")
    yield with_json("wrong merges", "tokenizer.json", lambda t: t["model"].update(merges=[["a"]]),
                    "no tokenizer with merges that are no pairs")


if __name__ == "__main__":
    sys.exit(main())
