#!/usr/bin/env python3
"""Servers as a user starts them, asked over HTTP: serve.py [ROW...], or all rows.

`vllm serve` with the executor that it chooses: one process for HTTP, one for the engine, one per rank. Greedy
tokens of 20 prompts must be those of a server of one process. Models are those that models.py writes.
The last line counts the rows.
"""

import argparse
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from compare import PLACES, compare, gaps_of  # noqa: E402

PROMPTS = [
    f"{beginning} {end}" for end in ("is", "was not")
    for beginning in (
        "The capital of France", "Water", "The first computer", "A good book", "The largest planet", "My favourite song",
        "The number seven", "An honest answer", "The old bridge", "The best way to learn",
    )
]  # fmt: skip
LIMIT_S = 900  # bounds a hang: processes import vLLM one after the other, on a machine that may be busy

# In 64 MiB, as a container has them unless told otherwise.
SMALL_SHM = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"', "sh"]
# vLLM needs it for pipelines on CPUs: without, it leaves out the warm-up that makes the memory for activations.
TRACED = ["--compilation-config", '{"mode": 2, "backend": "eager"}']
EAGER = ["--enforce-eager"]
TP = ["--tensor-parallel-size", "2", *EAGER]
# name: (model, options, command before vllm)
ROWS = {
    "tp=2": ("served_llama", TP, []),
    "pp=2": ("served_llama", ["--pipeline-parallel-size", "2", *TRACED], []),
    "dp=2 ep": ("served_qwen3_moe", ["--data-parallel-size", "2", "--enable-expert-parallel", *EAGER], []),
    "tp=2, 64 MiB of /dev/shm": ("served_llama", TP, SMALL_SHM),
    "tp=3, real weights": ("smollm2", ["--tensor-parallel-size", "3", *EAGER], []),
}  # SmolLM2 has 9 heads, which 2 ranks cannot share
TWO_SERVERS = "two servers on one host"
KILLED = {f"rank {rank} is killed": rank for rank in (0, 1)}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    """`vllm serve`, and the lines that it writes, with the time of each."""

    def __init__(self, place, model, options, before=(), plugins="unisono"):
        self.port, self.lines = free_port(), []
        command = [
            *before, str(Path(sys.executable).parent / "vllm"), "serve", model, "--port", str(self.port),
            "--dtype", "float32", "--max-model-len", "256", "--max-num-seqs", "32", "--seed", "0",
            "--no-enable-prefix-caching", "--kv-cache-memory-bytes", str(64 << 20), *options,
        ]  # fmt: skip
        environment = {
            "OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "TOKENIZERS_PARALLELISM": "false",
            "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_PLUGINS": plugins,
        }  # fmt: skip
        self.log = Path(place)
        self.process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        with self.log.open("w") as log:
            for line in self.process.stdout:
                self.lines.append((time.monotonic(), line.rstrip()))
                log.write(line)
                log.flush()

    def ask(self, path, body=None):
        """(status, text); None if nobody listens yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        try:
            if body is None:
                connection.request("GET", path)
            else:
                connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except ConnectionRefusedError:
            return None
        finally:
            connection.close()

    def wait_until_ready(self):
        end = time.monotonic() + LIMIT_S
        while (said := self.ask("/health")) is None or said[0] != 200:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"no server: {self.last_words()}; {self.log} has the rest")
            time.sleep(0.5)
        return self

    def complete(self):
        """{number: (tokens, gaps)} of all prompts, sent together."""
        wanted = {"temperature": 0, "max_tokens": PLACES, "ignore_eos": True, "logprobs": 2, "return_token_ids": True}
        status, text = self.ask("/v1/completions", {"prompt": PROMPTS, **wanted})
        if status != 200:
            raise RuntimeError(f"HTTP {status}: {text[:300]}")
        found = {}
        for choice in json.loads(text)["choices"]:
            places = [place.values() for place in choice["logprobs"]["top_logprobs"]]
            found[choice["index"]] = choice["token_ids"], gaps_of(places)
        return found

    def start_answer(self):
        """Returns once the first token of a long answer has come; the rest may come."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        body = {"prompt": PROMPTS[0], "max_tokens": 240, "ignore_eos": True, "stream": True}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        connection.getresponse().readline()
        return connection

    def pid(self, worker):
        said = (re.search(rf"\({worker} pid=(\d+)\)", line) for _, line in list(self.lines))
        return int(next(found[1] for found in said if found))

    def last_words(self):
        lines = [line for _, line in list(self.lines) if line]
        errors = [line for line in lines if "Error" in line or "peer_lost" in line]
        return (errors or lines or ["nothing"])[-1][:300]

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.end()

    def end(self):
        """The exit code, once it has ended."""
        try:
            code = self.process.wait(LIMIT_S)
        finally:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)  # only what its own session still has
            except ProcessLookupError:
                pass
        self._reader.join()
        return code


def answers(folder, name, row, plugins="unisono"):
    model, options, before = row
    server = Server(f"{folder}/{re.sub(r'[^a-z0-9]+', '-', name)}.log", f"{folder}/models/{model}", options, before, plugins)
    try:
        return server.wait_until_ready().complete()
    finally:
        server.stop()


def kill_a_rank(folder, name, rank):
    before = set(os.listdir("/dev/shm"))
    model, options, _ = ROWS["tp=2"]
    server = Server(f"{folder}/killed-{rank}.log", f"{folder}/models/{model}", options)
    try:
        server.wait_until_ready()
        answer = server.start_answer()
        os.kill(server.pid(f"Worker_TP{rank}"), signal.SIGKILL)
        killed_at = time.monotonic()
        code = server.end()
        answer.close()
    finally:
        server.stop()
    sentence = f"peer_lost: rank {rank} "
    named = [(at - killed_at, line) for at, line in server.lines if sentence in line]
    left = sorted(set(os.listdir("/dev/shm")) - before)
    if not named:
        return False, f"ends with {code}, and nobody names rank {rank}: {server.last_words()}"
    # The engine is the process that ends the server: its last error is the server's.
    last = [line for _, line in named if "EngineCore" in line]
    said = re.search(r"peer_lost: [^'\\,]*", named[0][1])[0]
    right = named[0][0] < 1 and bool(last) and code != 0 and not left
    return right, (
        f"after {named[0][0]:.2f} s: {said}; "
        f"the server ends with {code}{', and says so' if last else ', without that sentence'}; left in /dev/shm: {left}"
    )


def main():
    names = [*ROWS, TWO_SERVERS, *KILLED]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="; ".join(names))
    parser.add_argument("--folder", help="with the models in models/; for logs")
    options = parser.parse_args()
    unknown = [row for row in options.rows if row not in names]
    if unknown:
        parser.error(f"there is no row {unknown[0]!r}; there are: {'; '.join(names)}")
    folder = options.folder or tempfile.mkdtemp(prefix="unisono-vllm-")
    alone, passed, failed = {}, 0, 0

    def of_one_process(model):
        if model not in alone:
            alone[model] = answers(folder, f"one {model}", (model, EAGER, []), plugins="")
        return alone[model]

    for name in options.rows or names:
        begin = time.monotonic()
        try:
            if name in KILLED:
                right, say = kill_a_rank(folder, name, KILLED[name])
            elif name == TWO_SERVERS:
                wanted = of_one_process(ROWS["tp=2"][0])
                with ThreadPoolExecutor() as both:
                    found = list(both.map(lambda which: answers(folder, f"server {which}", ROWS["tp=2"]), "ab"))
                judged = [compare(one, wanted) for one in found]
                right, say = all(one for one, _ in judged), "; ".join(f"{which}: {one[1]}" for which, one in zip("ab", judged))
            else:
                wanted = of_one_process(ROWS[name][0])
                right, say = compare(answers(folder, name, ROWS[name]), wanted)
        except (RuntimeError, OSError, http.client.HTTPException) as error:
            right, say = False, str(error)
        passed, failed = passed + right, failed + (not right)
        print(f"{'ok   ' if right else 'WRONG'} serve {name}: {say} ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
