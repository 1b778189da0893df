#!/usr/bin/env python3
"""Tests that examples/llm computes the vectors of texts under every number of ranks, and refuses invalid files.

A made-up encoder is computed by made_up_encoder.py, too, and must have the same tokens and vectors.

Usage: encoder_test.py --program UNISONO --llm LLM
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import made_up
import made_up_encoder as encoder

TEXTS = ["The sea, the sea!", "Unknownable  seas\tand\u00a0unseen\u200b things", "CAFÉ cafe\u0301 Äλж Ж — 海風。", "가 각",
         "don't 12-34 ?", "x" * 101 + " " + "x" * 30, ""]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--llm", required=True)
    args = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = encoder.tensors(3)
        encoder.write_folder(folder / "model", made)
        check_tokens(args, folder, made, wrong)
        check_vectors(args, folder, made, wrong)
        check_similarity(args, folder, made, wrong)
        refused = list(damaged(folder, made))
        for what, model, words, status, sentence in refused:
            done = run(args.llm, "--model", model, *words)
            said = done.stderr.strip()
            if done.returncode != status or sentence not in said or (status == 1 and "\n" in said):
                wrong.append(f"{what}: exit status {done.returncode}, said {said!r}, not {sentence!r}")
    print("\n".join(wrong))
    print(f"{len(refused)} refused, {len(wrong)} mistakes")
    return 1 if wrong else 0


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, errors="replace")


def on_ranks(args, ranks):
    """Returns a command that starts this many ranks of tp; for one rank, the program alone."""
    return [args.llm] if ranks == 1 else [args.program, "run", "-q", "-n", str(ranks), "--", args.llm]


def check_tokens(args, folder, made, wrong):
    cased = folder / "cased"
    encoder.write_folder(cased, made)
    said = encoder.tokenizer()
    said["normalizer"]["lowercase"] = False
    (cased / "tokenizer.json").write_text(json.dumps(said))
    for model, is_uncased in ((folder / "model", True), (cased, False)):
        for text in TEXTS[:-1]:
            want = encoder.tokens(text, is_uncased)
            done = run(args.llm, "--model", model, "--show-tokens", text)
            if done.stdout.split() != [str(token) for token in want]:
                wrong.append(f"{model.name}, {text!r}: tokens {done.stdout!r} {done.stderr!r}, not {want}")
    mask, sea = encoder.WORDS.index("[MASK]"), encoder.WORDS.index("sea")
    done = run(args.llm, "--model", folder / "model", "--show-tokens", "sea[MASK]sea")
    if done.stdout.split()[1:-1] != [str(sea), str(mask), str(sea)]:
        wrong.append(f"a special token in a text: {done.stdout!r} {done.stderr!r}")


def check_vectors(args, folder, made, wrong):
    saved, ours = folder / "saved.txt", folder / "ours.txt"
    texts = [word for text in TEXTS for word in ("--embed", text)]
    want = [encoder.vector(made, encoder.tokens(text)) for text in TEXTS]
    saved.write_text("".join(" ".join(f"{value:.9g}" for value in vector) + "\n" for vector in want))
    with_head = folder / "with-head"  # its names have the prefix of a model with a head
    encoder.write_folder(with_head, {"bert." + name: tensor for name, tensor in made.items()}, "BF16")
    for model in (folder / "model", with_head):
        for ranks in (1, 2, 3, 4, 5, 6, 12):
            done = run(*on_ranks(args, ranks), "--model", model, "--layout", f"tp={ranks}", *texts, "--compare", saved)
            if done.returncode != 0 or f"tp={ranks} " not in done.stdout or "same vectors" not in done.stdout:
                wrong.append(f"{model.name}, tp={ranks}: {done.stdout}{done.stderr}")
    done = run(args.llm, "--model", folder / "model", *texts, "--save", ours)
    got = [[float(value) for value in line.split()] for line in ours.read_text().splitlines()]
    apart = max(abs(a - b) for x, y in zip(got, want) for a, b in zip(x, y))
    if done.returncode != 0 or len(got) != len(want) or not apart < 1e-5:
        wrong.append(f"--save: {len(got)} vectors, {apart} apart, {done.stderr}")
    want[2][5] += 0.01
    saved.write_text("".join(" ".join(map(str, vector)) + "\n" for vector in want))
    done = run(args.llm, "--model", folder / "model", *texts, "--compare", saved)
    if done.returncode != 1 or "WRONG" not in done.stdout:
        wrong.append(f"another vector is not told: {done.stdout}{done.stderr}")


def check_similarity(args, folder, made, wrong):
    texts = TEXTS[:3]
    first, *others = (encoder.vector(made, encoder.tokens(text)) for text in texts)
    done = run(*on_ranks(args, 3), "--model", folder / "model", *(word for text in texts for word in ("--embed", text)))
    want = [sum(map(float.__mul__, first, other)) for other in others]
    if len(done.stdout.split()) != 2 or any(abs(float(a) - b) > 1e-4 for a, b in zip(done.stdout.split(), want)):
        wrong.append(f"similarity {done.stdout!r} {done.stderr!r}, not {want}")
    done = run(args.llm, "--model", folder / "model", "--embed", texts[0])
    if any(abs(float(a) - b) > 1e-5 for a, b in zip(done.stdout.split(), first)) or len(done.stdout.split()) != 48:
        wrong.append(f"one text: {done.stdout!r} {done.stderr!r}")


def damaged(folder, made):
    """Yields (damage, model, command line, exit status, a part of the required message)."""
    count = 0

    def fresh(tensors=made):
        nonlocal count
        count += 1
        encoder.write_folder(folder / f"damaged-{count}", tensors)
        return folder / f"damaged-{count}"

    def with_json(what, name, change, sentence):
        model = fresh()
        value = json.loads((model / name).read_text())
        change(value)
        (model / name).write_text(json.dumps(value))
        return what, model, ("--embed", "a"), 1, sentence

    for key, value, said in (("hidden_act", "relu", "another 'hidden_act' than gelu"),
                             ("position_embedding_type", "relative_key", "another 'position_embedding_type'"),
                             ("is_decoder", True, "'is_decoder'"),
                             ("num_attention_heads", 7, "that 'num_attention_heads' does not divide"),
                             ("max_position_embeddings", 61, "embeddings.position_embeddings.weight' of 60 x 48"),
                             ("num_hidden_layers", 3, "no tensor 'encoder.layer.2.attention.self.query.weight'"),
                             ("intermediate_size", 71, "intermediate.dense.weight' of 70 x 48"),
                             ("vocab_size", 8, "embeddings.word_embeddings.weight' of "),
                             ("type_vocab_size", 1, "token_type_embeddings.weight' of 2 x 48")):
        yield with_json(key, "config.json", lambda c: c.update({key: value}), said)
    yield with_json("more words", "tokenizer.json", lambda t: t["model"]["vocab"].update(new=len(encoder.WORDS)),
                    f"tokens, but its tokenizer returns token {len(encoder.WORDS)}")
    yield from damaged_tokenizers(with_json)
    for name in list(made)[3:5]:
        less = {other: tensor for other, tensor in made.items() if other != name}
        yield "without " + name, fresh(less), ("--embed", "a"), 1, f"has no tensor '{name}'"
    model = fresh()
    (model / "tokenizer.json").unlink()
    yield "no tokenizer", model, ("--embed", "a"), 1, "has no tokenizer.json, which an encoder needs"
    for kind, said in (("cls_token", "has 'pooling_mode_cls_token'"), ("mean_tokens", "missing cannot be read")):
        model = fresh()
        (model / "1_Pooling").mkdir()
        (model / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_" + kind: True}))
        yield "pooling by " + kind, model, ("--embed", "a", "--compare", "missing"), 1, said
    whole = folder / "model"
    yield "a long text", whole, ("--embed", "a " * 59), 1, "has 61 tokens; this model reads 1 to 60"
    yield "a question", whole, ("--prompt", "a"), 2, "is an encoder, which cannot answer; use --embed"
    yield "another task", whole, ("--embed", "a", "--prompt", "a"), 2, "one of --prompt, --embed, --save"
    yield "no text", whole, ("--embed",), 2, "cannot use '--embed'"
    made_up.write_folder(folder / "decoder", made_up.tensors(1), "F32")
    yield "a decoder", folder / "decoder", ("--embed", "a"), 2, "is not an encoder, which --embed needs"


def damaged_tokenizers(with_json):
    def tokenizer(what, change, sentence):
        return with_json(what, "tokenizer.json", change, "no tokenizer " + sentence)

    for key, value in (("clean_text", False), ("handle_chinese_chars", False)):
        yield tokenizer(key, lambda t: t["normalizer"].update({key: value}), f"whose normalizer is without '{key}'")
    yield tokenizer("accents", lambda t: t["normalizer"].update(strip_accents=False),
                    "that does not fold both case and accents")
    for part in ("normalizer", "pre_tokenizer"):
        yield tokenizer("no " + part, lambda t: t.update({part: None}), "of word pieces without BERT's")
    for key, value, said in (("continuing_subword_prefix", "@@", "whose pieces inside of words do not begin with '##'"),
                             ("max_input_chars_per_word", 50, "in which 'max_input_chars_per_word' is not 100"),
                             ("unk_token", "<unk>", "without a token for unknown words")):
        yield tokenizer(key, lambda t: t["model"].update({key: value}), said)


if __name__ == "__main__":
    sys.exit(main())
