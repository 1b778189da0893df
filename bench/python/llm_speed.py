#!/usr/bin/env python3
"""Compares examples/llm in one process and on ranks with llama.cpp, on equal weights and processors:

    build/venv/bin/pip install xllamacpp==2026.10.11549 gguf
    build/venv/bin/python bench/python/llm_speed.py

Each answer runs in its own process, one after the other, in a different order each round. An answer is a
prompt of --prompt tokens followed by the --tokens likeliest tokens. Times do not include reading weights.
Both programs read one file, in which the weights of --model are unpacked to --precision. llama.cpp comes with
xllamacpp; without it, the row of llama.cpp is omitted. "of" is the rate relative to the first row. Rates are
tokens per second: the median over the rounds, followed by the least and the greatest.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def unpack(source, made, precision):
    """Copies the GGUF file, converting all matrices to one type."""
    import gguf

    reader = gguf.GGUFReader(source)
    kinds = {"f32": gguf.GGMLQuantizationType.F32, "bf16": gguf.GGMLQuantizationType.BF16}
    writer = gguf.GGUFWriter(made, reader.get_field("general.architecture").contents())
    for name, field in reader.fields.items():
        if name not in ("general.architecture", "general.file_type") and not name.startswith("GGUF."):
            is_array = field.types[0] == gguf.GGUFValueType.ARRAY
            writer.add_key_value(name, field.contents(), field.types[0], field.types[-1] if is_array else None)
    for tensor in reader.tensors:
        kind = kinds["f32" if len(tensor.shape) == 1 else precision]
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def llama_cpp_main(model, text, options):
    """Prints the number of prompt tokens, their rate, the rate of the other tokens, and the answer."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = params.n_batch = params.n_ubatch = options.prompt + options.tokens
    params.n_parallel, params.warmup = 1, True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    server = xllamacpp.Server(params)
    said = server.handle_completions(
        {"prompt": text, "n_predict": options.tokens, "temperature": 0, "cache_prompt": False}
    )
    times = said["timings"]
    rest = (times["predicted_n"] - 1) / times["predicted_ms"] * 1e3  # without the first token
    print(times["prompt_n"], times["prompt_per_second"], rest)
    print(said["choices"][0]["text"])


class Way:
    """A method as a command line, with its measurements."""

    def __init__(self, name, command):
        self.name, self.command = name, [str(word) for word in command]
        self.prompt, self.rest, self.shares, self.said, self.tokens = [], [], [], "", 0

    def run(self, processors):
        done = subprocess.run(self.command, capture_output=True, text=True, errors="replace",
                              preexec_fn=lambda: os.sched_setaffinity(0, processors))  # fmt: skip
        if done.returncode != 0:
            sys.exit(f"{self.name}: {done.stderr}")
        if found := re.search(r"# prompt: (\d+) tokens, ([\d.]+) tokens/s", done.stderr):
            self.tokens, rate = int(found[1]), float(found[2])
            self.rest.append(float(re.search(r"# answer: .* tokens, ([\d.]+) tokens/s", done.stderr)[1]))
            if share := re.search(r"# answer: .* ([\d.]+) % moving, ([\d.]+) % waiting", done.stderr):
                self.shares.append((float(share[1]), float(share[2])))
            self.said = done.stdout
        else:
            numbers, self.said = done.stdout.split("\n", 1)
            self.tokens, rate, rest = int(numbers.split()[0]), *map(float, numbers.split()[1:])
            self.rest.append(rest)
        self.prompt.append(rate)

    def row(self, first):
        def rate(mine, theirs):
            middle = statistics.median(mine)
            return f"{middle:8.1f} ({min(mine):.1f}-{max(mine):.1f}) {middle / statistics.median(theirs):6.2f}"

        moving, waiting = (statistics.median(part) for part in zip(*self.shares)) if self.shares else (0, 0)
        same = "same" if self.said.strip() == first.said.strip() else "another"
        print(f"{self.name:24} {rate(self.prompt, first.prompt):>32} {rate(self.rest, first.rest):>32}"
              f"{moving:8.1f} %{waiting:8.1f} %   {same}", flush=True)  # fmt: skip


def ways(options, model, text):
    program = options.build / "examples/llm/llm"
    ask = ["--model", model, "--precision", options.precision, "--raw", "--tokens", options.tokens, "--prompt", text]
    found = [Way("one process", [program, *ask])]
    if options.threads > 1:
        start = [options.build / "tools/unisono/unisono", "run", "-q", "-n", options.threads, "--"]
        found.append(Way(f"tp={options.threads}", [*start, program, *ask]))
    try:
        import xllamacpp
    except ImportError:
        print("xllamacpp is not installed: the row of llama.cpp is left out")
    else:
        start = [sys.executable, __file__, "--llama-cpp", text, "--threads", options.threads, "--prompt", options.prompt,
                 "--tokens", options.tokens, "--model"]  # fmt: skip
        found.append(Way(f"llama.cpp ({xllamacpp.__version__})", [*start, model]))
        if options.packed:
            found.append(Way("llama.cpp, as packed", [*start, options.model]))
    return found


def prompt_text(program, model, tokens):
    """Returns the beginning of the licence with the requested number of tokens."""
    words = (ROOT / "LICENSE").read_text().split()
    few, many = 0, len(words)
    while many - few > 1:
        middle = (few + many) // 2
        shown = subprocess.run([program, "--model", model, "--show-tokens", " ".join(words[:middle])],
                               capture_output=True, text=True, check=True)  # fmt: skip
        few, many = (middle, many) if len(shown.stdout.split()) <= tokens else (few, middle)
    return " ".join(words[:few])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=ROOT / "build/models/smollm2.gguf")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--packed", action="store_true", help="also llama.cpp on the file as it is")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512, help="tokens")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--llama-cpp", metavar="TEXT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.llama_cpp is not None:
        return llama_cpp_main(str(options.model), options.llama_cpp, options)
    with tempfile.TemporaryDirectory(prefix="unisono-llm-") as folder:
        model = Path(folder) / f"{options.precision}.gguf"
        unpack(options.model, model, options.precision)
        processors = sorted(os.sched_getaffinity(0))[: options.threads]
        all_ways = ways(options, model, prompt_text(options.build / "examples/llm/llm", model, options.prompt))
        for number in range(options.rounds):
            for way in all_ways if number % 2 == 0 else reversed(all_ways):
                way.run(processors)
    print(f"{options.model.name}, {options.precision}, {all_ways[0].tokens} tokens and {options.tokens} behind them, "
          f"{options.rounds} rounds, processors: {options.threads}")  # fmt: skip
    print(f"{'way':24} {'prompt':>25} {'of':>6} {'answer':>25} {'of':>6}{'moving':>10}{'waiting':>10}   answer")
    for way in all_ways:
        way.row(all_ways[0])


if __name__ == "__main__":
    raise SystemExit(main())
