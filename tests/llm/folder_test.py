#!/usr/bin/env python3
"""Tests that examples/llm reads folders of safetensors as it reads GGUF, and refuses damaged files.

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
        check_tokens(args, folder, made, wrong)
        damages = list(damaged(folder, made))
        for what, model, sentence in damages:
            done = subprocess.run([args.llm, "--model", model, "--prompt", "hello"], capture_output=True, text=True,
                                  errors="replace")
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
    for done in (run(args.llm, "--model", folder / "model.gguf", "--save", saved),
                 shown := run(args.llm, "--model", folder / "model.gguf", "--show-tokens", TEXT)):
        if done.returncode != 0:
            wrong.append(f"model.gguf: exit status {done.returncode}, said {done.stderr!r}")
    tokens = shown.stdout
    if len(tokens.split()) < 20:
        wrong.append(f"a text has the tokens {tokens!r}")
    for dtype, files in (("F32", 1), ("BF16", 1), ("BF16", 3)):
        model = folder / f"{dtype}-{files}"
        made_up.write_folder(model, made, dtype, files)
        for start in ([], [args.program, "run", "-q", "-n", "2", "--"]):
            done = run(*start, args.llm, "--model", model, "--compare", saved)
            if done.returncode != 0 or "same tokens" not in done.stdout:
                wrong.append(f"{model.name}: {done.stdout}{done.stderr}")
        done = run(args.llm, "--model", model, "--show-tokens", TEXT)
        if done.returncode != 0 or done.stdout != tokens:
            wrong.append(f"{model.name}: tokens {done.stdout!r} {done.stderr!r}, not {tokens!r}")


def check_tokens(args, folder, made, wrong):
    """Tokenizers that examples/llm supports, and the tokens of a text."""
    start, end = (made_up.WORDS.index(word) for word in made_up.CONTROL)
    last = len(made_up.WORDS) - 1
    h, e = made_up.WORDS.index("h"), made_up.WORDS.index("e")

    def added(*names):  # numbers are unique: these replace the end of the vocabulary
        def change(tokenizer):
            model = tokenizer["model"]
            for i, name in enumerate(names):
                word = made_up.WORDS[last - i]
                model["vocab"].pop(word)
                model["merges"] = [pair for pair in model["merges"] if "".join(pair).replace(" ", "") != word]
                tokenizer["added_tokens"].append({"id": last - i, "content": name})
        return change

    def processed(*parts):
        return lambda t: t.update(post_processor={"type": "Sequence", "processors": list(parts)})

    def fewer(tokenizer):
        tokenizer["model"]["vocab"].pop(made_up.WORDS[-1])
        tokenizer["model"]["merges"].pop()

    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": made_up.CONTROL[0], "type_id": 0}},
                                                         {"Sequence": {"id": "A", "type_id": 0}}]}
    cases = {
        "added tokens without brackets": (added("h["), "h[he", [last, h, e]),
        "the longest added token": (added("<h", "<h<|im_end|>"), "<h<|im_end|><he", [last - 1, last, e]),
        "an added token with a bracket inside": (added("<h>e>"), "<h>e><|im_end|>", [last, end]),
        "a template behind ByteLevel": (processed({"type": "ByteLevel"}, template), "he", [start, h, e]),
        "fewer words than the model": (fewer, "he", [h, e]),
        "no dropout": (lambda t: t["model"].update(dropout=0.0, end_of_word_suffix="", continuing_subword_prefix=None,
                                                   ignore_merges=False), "he", [h, e]),
    }
    for i, (what, (change, text, tokens)) in enumerate(cases.items()):
        model = folder / f"tokens-{i}"
        made_up.write_folder(model, made, "BF16")
        tokenizer = made_up.tokenizer()
        change(tokenizer)
        (model / "tokenizer.json").write_text(json.dumps(tokenizer))
        done = subprocess.run([args.llm, "--model", model, "--show-tokens", text], capture_output=True, text=True)
        if done.returncode != 0 or done.stdout.split() != [str(token) for token in tokens]:
            wrong.append(f"{what}: tokens {done.stdout!r} {done.stderr!r}, not {tokens}")


def damaged(folder, made):
    """Yields (damage, model, a part of the required message)."""
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

    yield with_bytes("cut in its data", lambda b: b[:-10], "outside the file")
    yield with_bytes("cut in its header", lambda b: b[:100], "ends in the middle of its header")
    yield with_bytes("cut in its length", lambda b: b[:5], "is not a safetensors file: it has 5 bytes")
    yield with_bytes("empty", lambda b: b"", "is empty")
    yield with_bytes("longer", lambda b: b + b"12", "has 2 bytes after its last tensor")
    yield with_bytes("header too long", lambda b: struct.pack("<Q", 1 << 40) + b[8:], "more than the 100000000")
    yield with_header("no JSON", lambda h, d: b"{not json", "header that is not valid JSON at byte")
    yield with_header("a list", lambda h, d: [1], "header that is not a JSON object")
    yield with_header("nested", lambda h, d: b"[" * 200000, "header that is nested too deep")
    yield with_header("unknown type", entry(dtype="Q9"), "of the unknown type 'Q9'")
    yield with_header("another type", entry(dtype="I16"), "in a type that is not supported here")
    yield with_header("too wide a type", entry(dtype="F32"), "of a shape that does not match its bytes")
    yield with_header("a shape that overflows", entry(shape=[1 << 33, 1 << 33]), "of a shape that does not match its bytes")
    yield with_header("a negative shape", entry(shape=[-1, 72]), "not a whole number")
    yield with_header("no shape", entry(shape=None), "without a dtype, a shape or two offsets")
    yield with_header("offsets backwards", entry(data_offsets=[8, 4]), "outside the file")
    yield with_header("overlapping", shifted, "overlapping another tensor")
    yield with_header("missing tensor", lambda h, d: {k: v for k, v in h.items() if k != "lm_head.weight"},
                      "after bytes that belong to no tensor")
    yield with_json("smaller", "config.json", lambda c: c.update(vocab_size=1000),
                    "of 264 x 72, where the model needs 1000 x 72")
    for key, value, tensor in (("vocab_size", 260, "model.embed_tokens"), ("hidden_size", 64, "model.embed_tokens"),
                               ("num_key_value_heads", 1, "model.layers.0.self_attn.k_proj"),
                               ("intermediate_size", 48, "model.layers.0.mlp.gate_proj")):
        yield with_json(f"{key} of less than there is", "config.json", lambda c: c.update({key: value}),
                        f"has '{tensor}.weight' of ")
    yield with_json("heads of no features", "config.json", lambda c: c.update(hidden_size=8, head_dim=None),
                    "has a smaller 'hidden_size' than 'num_attention_heads'")
    yield with_json("no layers", "config.json", lambda c: c.update(num_hidden_layers=0),
                    "has no 'num_hidden_layers' of 1 or more")
    yield with_json("too many layers", "config.json", lambda c: c.update(num_hidden_layers=4),
                    "has no tensor 'model.layers.3.input_layernorm.weight'")
    yield with_json("other model", "config.json", lambda c: c.update(model_type="gpt2"), "is of the model type 'gpt2'")
    yield with_json("other rotary embedding", "config.json", lambda c: c.update(rope_scaling={"rope_type": "yarn"}),
                    'rotary embedding of the type "yarn"')
    model = fresh()
    (model / "config.json").write_text('{"model_type": "llama", "hidden_size": }')
    yield "config.json that is no JSON", model, "config.json is not valid JSON at byte 40"
    yield with_json("biases", "config.json", lambda c: c.update(attention_bias=True), "has 'attention_bias'")
    index = "model.safetensors.index.json"
    model = fresh(2)
    shards = [model / f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    shards[1].write_bytes(shards[0].read_bytes())
    yield "the tensors of a file twice", model, "a second time"
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
    byte_level = {"type": "ByteLevel", "add_prefix_space": False}
    digits = {"type": "Digits", "individual_digits": True}
    for what, cuts, said in (("no cut behind digits", [digits], "does not cut text by 'ByteLevel'"),
                             ("digits too late", [byte_level, digits], "cuts text by 'Digits'"),
                             ("digits together", [{"type": "Digits"}, byte_level], "cuts text by 'Digits'")):
        yield with_json(what, "tokenizer.json",
                        lambda t: t.update(pre_tokenizer={"type": "Sequence", "pretokenizers": cuts}),
                        f"no tokenizer that {said}")
    for key, value in (("ignore_merges", True), ("byte_fallback", True), ("continuing_subword_prefix", "##"),
                       ("end_of_word_suffix", "</w>"), ("dropout", 0.1)):
        yield with_json(key, "tokenizer.json", lambda t: t["model"].update({key: value}), f"'{key}'")
    for key in ("single_word", "lstrip", "rstrip"):
        yield with_json(key, "tokenizer.json", lambda t: t["added_tokens"][0].update({key: True}),
                        f"whose added token '{made_up.CONTROL[0]}' has '{key}'")
    yield with_json("an added token of nothing", "tokenizer.json", lambda t: t["added_tokens"][0].update(content=""),
                    "an added token that has no text")
    yield with_json("an added token of two numbers", "tokenizer.json",
                    lambda t: t["model"]["vocab"].update({made_up.CONTROL[0]: len(made_up.WORDS)}), "has two numbers")
    yield with_json("one number of two words", "tokenizer.json", lambda t: t["model"]["vocab"].update(x=0),
                    "are both token 0")
    yield with_json("a number beyond all words", "tokenizer.json", lambda t: t["model"]["vocab"].update(x=1 << 20),
                    "has no number, or one beyond the vocabulary")
    yield with_json("another post-processor", "tokenizer.json",
                    lambda t: t.update(post_processor={"type": "RobertaProcessing"}),
                    "no tokenizer with the post-processor 'RobertaProcessing'")
    text, word = {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<|im_end|>"}}
    for what, single, said in (("unknown", [{"SpecialToken": {"id": "<s>"}}, text], "has '<s>', which is not a token"),
                               ("late", [text, word], "puts '<|im_end|>' after a text")):
        yield with_json(f"a template's {what} word", "tokenizer.json",
                        lambda t: t.update(post_processor={"type": "TemplateProcessing", "single": single}),
                        f"no tokenizer whose template {said}")
    for part, list_of in (("pre_tokenizer", "pretokenizers"), ("post_processor", "processors")):
        rest = json.dumps({k: v for k, v in made_up.tokenizer().items() if k != part})
        for depth, said in ((20, f"no tokenizer with '{list_of}' nested deeper than 16"), (100000, "is nested too deep")):
            model = fresh()
            nested = '{"type": "Sequence", "%s": [' % list_of * depth + "]}" * depth
            (model / "tokenizer.json").write_text(f'{rest[:-1]}, "{part}": {nested}}}')
            yield f"nested {part} {depth}", model, said
    yield with_json("more words than the model", "tokenizer.json", lambda t: t["model"]["vocab"].update(x=264),
                    "has 264 tokens, but its tokenizer returns token 264")
    yield with_json("a token too far", "tokenizer.json", lambda t: t["model"]["vocab"].update(x=1 << 40),
                    "no tokenizer whose token 'x' has no number")
    yield with_json("wrong merges", "tokenizer.json", lambda t: t["model"].update(merges=[["a"]]),
                    "no tokenizer with merges that are not pairs")


if __name__ == "__main__":
    sys.exit(main())
