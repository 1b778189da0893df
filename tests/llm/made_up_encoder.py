"""A small encoder of BERT's kind with random weights, as a folder of safetensors; and, written
without regard to examples/llm, the tokens and vectors that it gives."""

import json
import math
import random
import unicodedata

import made_up

CONFIG = {"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 48, "num_attention_heads": 12,
          "intermediate_size": 70, "max_position_embeddings": 60, "type_vocab_size": 2, "layer_norm_eps": 1e-6,
          "hidden_act": "gelu", "position_embedding_type": "absolute"}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789äλж가"
WORDS = [*SPECIAL, *LETTERS, *("##" + letter for letter in LETTERS), *".,!?'-—。海風", "ᄀ", "##ᅡ", "the", "##ing", "sea",
         "un", "##known", "##able", "café"]
assert len(set(WORDS)) == len(WORDS)


def tensors(seed):
    """Returns shape and numbers by name, in order."""
    draw = random.Random(seed)
    width, hidden = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    made = {}

    def put(name, *shape, scale):
        count = math.prod(shape)
        centre = 1 if name.endswith("LayerNorm.weight") else 0
        made[name] = (shape, [made_up.bf16(centre + draw.uniform(-scale, scale))[0] for _ in range(count)])

    def norm(name):
        put(name + ".LayerNorm.weight", width, scale=0.3)
        put(name + ".LayerNorm.bias", width, scale=0.3)

    for kind, rows in (("word", len(WORDS)), ("position", CONFIG["max_position_embeddings"]), ("token_type", 2)):
        put(f"embeddings.{kind}_embeddings.weight", rows, width, scale=1)
    norm("embeddings")
    for layer in range(CONFIG["num_hidden_layers"]):
        prefix = f"encoder.layer.{layer}."
        for name, *shape in (("attention.self.query", width, width), ("attention.self.key", width, width),
                             ("attention.self.value", width, width), ("attention.output.dense", width, width),
                             ("intermediate.dense", hidden, width), ("output.dense", width, hidden)):
            put(prefix + name + ".weight", *shape, scale=0.4)
            put(prefix + name + ".bias", shape[0], scale=0.5)
        norm(prefix + "attention.output")
        norm(prefix + "output")
    return made


def tokenizer():
    def around(*names):
        return [{"SpecialToken": {"id": name, "type_id": 0}} if name else {"Sequence": {"id": "A", "type_id": 0}}
                for name in names]

    return {"version": "1.0", "truncation": {"max_length": 8}, "padding": None,
            "added_tokens": [{"id": WORDS.index(word), "content": word, "special": True} for word in SPECIAL],
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                           "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing", "single": around("[CLS]", "", "[SEP]")},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": {word: i for i, word in enumerate(WORDS)}}}


def write_folder(folder, made, dtype="F32"):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": len(WORDS)}))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "model.safetensors").write_bytes(made_up.safetensors(made, dtype)[0])


def words(text, is_uncased):
    text = "".join(c for c in text if c in "\t\n\r" or unicodedata.category(c)[0] != "C")
    if is_uncased:
        text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn").lower()
    found, is_open = [], False
    for c in text:
        is_alone = unicodedata.category(c)[0] == "P" or "\u4e00" <= c <= "\u9fff"
        if not c.isspace() and (is_alone or not is_open):
            found.append("")
        if not c.isspace():
            found[-1] += c
        is_open = not c.isspace() and not is_alone
    return found


def tokens(text, is_uncased=True):
    """Returns the tokens of a text without names of special tokens."""
    ids = [WORDS.index("[CLS]")]
    for word in words(text, is_uncased):
        pieces, at = [], 0
        while at < len(word):
            known = [end for end in range(len(word), at, -1) if "##" * (at > 0) + word[at:end] in WORDS]
            if not known or len(word) > 100:
                pieces = ["[UNK]"]
                break
            pieces.append("##" * (at > 0) + word[at:known[0]])
            at = known[0]
        ids += [WORDS.index(piece) for piece in pieces]
    return [*ids, WORDS.index("[SEP]")]


def vector(made, ids):
    """Computes in Python's numbers, product by product."""

    def rows_of(name):
        (_, columns), values = made[name]
        return [values[i:i + columns] for i in range(0, len(values), columns)]

    def linear(name, x):
        weight, bias = rows_of(name + ".weight"), made[name + ".bias"][1]
        return [[sum(map(float.__mul__, row, w)) + b for w, b in zip(weight, bias)] for row in x]

    def norm(name, x):
        gain, bias = made[name + ".LayerNorm.weight"][1], made[name + ".LayerNorm.bias"][1]
        out = []
        for row in x:
            mean = sum(row) / len(row)
            scale = (sum((v - mean) ** 2 for v in row) / len(row) + CONFIG["layer_norm_eps"]) ** -0.5
            out.append([(v - mean) * scale * g + b for v, g, b in zip(row, gain, bias)])
        return out

    def added(x, y):
        return [list(map(float.__add__, a, b)) for a, b in zip(x, y)]

    word, place, kind = (rows_of(f"embeddings.{name}_embeddings.weight") for name in ("word", "position", "token_type"))
    x = norm("embeddings", added([word[i] for i in ids], added(place, [kind[0]] * len(ids))))
    for layer in range(CONFIG["num_hidden_layers"]):
        prefix = f"encoder.layer.{layer}."
        q, k, v = (linear(f"{prefix}attention.self.{name}", x) for name in ("query", "key", "value"))
        x = norm(prefix + "attention.output", added(x, linear(prefix + "attention.output.dense", attended(q, k, v))))
        inner = [[u * 0.5 * (1 + math.erf(u / math.sqrt(2))) for u in row]
                 for row in linear(prefix + "intermediate.dense", x)]
        x = norm(prefix + "output", added(x, linear(prefix + "output.dense", inner)))
    mean = [sum(column) for column in zip(*x)]
    length = math.hypot(*mean)
    return [value / length for value in mean]


def attended(q, k, v):
    dim = len(q[0]) // CONFIG["num_attention_heads"]
    out = [[] for _ in q]
    for head in range(0, len(q[0]), dim):
        mine = slice(head, head + dim)
        for row, query in zip(out, q):
            scores = [math.exp(sum(map(float.__mul__, query[mine], key[mine])) / math.sqrt(dim)) for key in k]
            row += [sum(s * value[i] for s, value in zip(scores, v)) / sum(scores) for i in range(head, head + dim)]
    return out
