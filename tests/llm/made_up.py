"""A small Llama with random weights, written as a folder of safetensors and as a GGUF file.

Both hold the same numbers: GGUF wants the rows of queries and keys in another order, since pairs of
its rotary embedding are neighbours and do not lie half a head apart.
"""

import array
import json
import random
import struct

CONFIG = {"model_type": "llama", "num_hidden_layers": 3, "hidden_size": 72, "num_attention_heads": 9,
          "num_key_value_heads": 3, "head_dim": 8, "intermediate_size": 96, "rms_norm_eps": 1e-5, "rope_theta": 5e4,
          "tie_word_embeddings": False, "eos_token_id": 257, "hidden_act": "silu"}
MERGES = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("i", "n"), ("Ġ", "a"), ("e", "r")]
CONTROL = ["<|im_start|>", "<|im_end|>"]


def byte_symbols():
    """Returns by byte the character that represents it."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


WORDS = byte_symbols() + CONTROL + [a + b for a, b in MERGES]


def bf16(value):
    """Returns a number rounded to bf16, and its two bytes."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0], struct.pack("<H", bits)


def tensors(seed):
    """Returns shape and numbers by safetensors name, in order."""
    draw = random.Random(seed)
    width, hidden, dim = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["head_dim"]
    queries, keys = CONFIG["num_attention_heads"] * dim, CONFIG["num_key_value_heads"] * dim
    made = {}

    def put(name, *shape, scale=0.2):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        made[name] = (shape, [bf16(1 + draw.uniform(-0.3, 0.3) if len(shape) == 1 else draw.uniform(-scale, scale))[0]
                              for _ in range(count)])

    put("model.embed_tokens.weight", len(WORDS), width, scale=1)
    put("model.norm.weight", width)
    put("lm_head.weight", len(WORDS), width)
    for layer in range(CONFIG["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            put(prefix + norm + ".weight", width)
        for name, *shape in (("self_attn.q_proj", queries, width), ("self_attn.k_proj", keys, width),
                             ("self_attn.v_proj", keys, width), ("self_attn.o_proj", width, queries),
                             ("mlp.gate_proj", hidden, width), ("mlp.up_proj", hidden, width),
                             ("mlp.down_proj", width, hidden)):
            put(prefix + name + ".weight", *shape)
    return made


def safetensors(made, dtype):
    """Returns the bytes of a file, and its header."""
    header, parts, at = {}, [], 0
    for name, (shape, values) in made.items():
        parts.append(array.array("f", values).tobytes() if dtype == "F32" else b"".join(bf16(v)[1] for v in values))
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    return packed(header, b"".join(parts)), header


def packed(header, data):
    text = (header if isinstance(header, bytes) else json.dumps(header).encode())
    return struct.pack("<Q", len(text)) + text + data


def tokenizer():
    return {"version": "1.0", "normalizer": None,
            "added_tokens": [{"id": WORDS.index(word), "content": word, "special": True} for word in CONTROL],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]},
            "post_processor": None,
            "model": {"type": "BPE", "vocab": {word: i for i, word in enumerate(WORDS) if word not in CONTROL},
                      "merges": [list(merge) for merge in MERGES]}}


def write_folder(folder, made, dtype, files=1):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": len(WORDS)}))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    names = list(made)
    if files == 1:
        (folder / "model.safetensors").write_bytes(safetensors(made, dtype)[0])
        return
    where = {}
    for i in range(files):
        name = f"model-{i + 1:05}-of-{files:05}.safetensors"
        mine = {one: made[one] for one in names[i::files]}
        where.update({one: name for one in mine})
        (folder / name).write_bytes(safetensors(mine, dtype)[0])
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))


def neighbours(values, heads, columns):
    """Returns the rows of queries or keys in the order of GGUF."""
    rows = [values[i:i + columns] for i in range(0, len(values), columns)]
    dim = len(rows) // heads
    order = [head * dim + half * (dim // 2) + i for head in range(heads) for i in range(dim // 2) for half in (0, 1)]
    return [value for row in order for value in rows[row]]


def write_gguf(path, made):
    def text(value):
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def meta(key, kind, data):
        return text(key) + struct.pack("<I", kind) + data

    def strings(values):
        return struct.pack("<IQ", 8, len(values)) + b"".join(text(value) for value in values)

    u32 = {"llama.block_count": "num_hidden_layers", "llama.embedding_length": "hidden_size",
           "llama.attention.head_count": "num_attention_heads", "llama.attention.key_length": "head_dim",
           "llama.attention.head_count_kv": "num_key_value_heads", "llama.feed_forward_length": "intermediate_size",
           "tokenizer.ggml.eos_token_id": "eos_token_id"}
    kinds = [3 if word in CONTROL else 1 for word in WORDS]
    metas = [meta("general.architecture", 8, text("llama")), meta("tokenizer.ggml.model", 8, text("gpt2")),
             meta("tokenizer.ggml.pre", 8, text("smollm")), meta("tokenizer.ggml.tokens", 9, strings(WORDS)),
             meta("tokenizer.ggml.merges", 9, strings([f"{a} {b}" for a, b in MERGES])),
             meta("tokenizer.ggml.token_type", 9, struct.pack(f"<IQ{len(kinds)}i", 5, len(kinds), *kinds)),
             meta("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", CONFIG["rms_norm_eps"])),
             meta("llama.rope.freq_base", 6, struct.pack("<f", CONFIG["rope_theta"]))]
    metas += [meta(key, 4, struct.pack("<I", CONFIG[name])) for key, name in u32.items()]
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
             "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
             "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
    infos, data = [], b""
    for name, (shape, values) in made.items():
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        name = name.replace("model.layers.", "blk.")
        for key, heads in (("attn_q.", "num_attention_heads"), ("attn_k.", "num_key_value_heads")):
            if key in name:
                values = neighbours(values, CONFIG[heads], shape[1])
        infos.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), 0, len(data)))
        data += array.array("f", values).tobytes()
        data += bytes(-len(data) % 32)
    head = struct.pack("<IIQQ", 0x46554747, 3, len(infos), len(metas)) + b"".join(metas + infos)
    path.write_bytes(head + bytes(-len(head) % 32) + data)
