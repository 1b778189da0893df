#!/usr/bin/env python3
"""Servers as a user starts them, asked over HTTP: serve.py [ROW...], or all rows.

`python -m unisono.vllm serve` with the executor that it chooses: one process for HTTP, one for the engine, one per rank. Greedy
tokens of 20 prompts must be those of a server of one process. Some rows then kill a rank while it answers.
Models are those that models.py writes.
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
from contextlib import ExitStack
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
LIMIT_S = 900  # bounds a hang: processes import vLLM one after the other

# With 64 MiB, the default of containers.
SMALL_SHM = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"', "sh"]
# vLLM needs it for pipelines on CPUs: without, it leaves out the warm-up that makes the memory for activations.
TRACED = ["--compilation-config", '{"mode": 2, "backend": "eager"}']
EAGER = ["--enforce-eager"]
TP = ["--tensor-parallel-size", "2", *EAGER]
# name: (model, options, command before vllm, the worker that is killed after the answers or None)
ROWS = {
    "tp=2 on two servers": ("served_llama", TP, [], "Worker_TP1"),
    "tp=2 in 64 MiB of /dev/shm": ("served_llama", TP, SMALL_SHM, "Worker_TP0"),
    "pp=2": ("served_llama", ["--pipeline-parallel-size", "2", *TRACED], [], None),
    "dp=2 ep": ("served_qwen3_moe", ["--data-parallel-size", "2", "--enable-expert-parallel", *EAGER], [], None),
    # 9 heads, which 2 ranks cannot share
    "tp=3 with real weights": ("smollm2", ["--tensor-parallel-size", "3", *EAGER], [], None),
}
TWO_SERVERS = "tp=2 on two servers"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    """Runs `vllm serve`, and keeps its output lines with their times."""

    def __init__(self, place, model, options, before=()):
        self.port, self.lines = free_port(), []
        command = [
            *before, sys.executable, "-m", "unisono.vllm", "serve", model, "--port", str(self.port),
            "--dtype", "float32", "--max-model-len", "256", "--max-num-seqs", "32", "--seed", "0",
            "--no-enable-prefix-caching", "--kv-cache-memory-bytes", str(64 << 20), *options,
        ]  # fmt: skip
        environment = {
            "OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "TOKENIZERS_PARALLELISM": "false",
            "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1",
        }  # fmt: skip
        self.log = Path(place)
        self.process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with self.log.open("w") as log:
            for line in self.process.stdout:
                self.lines.append((time.monotonic(), line.rstrip()))
                log.write(line)
                log.flush()

    def ask(self, path, body=None):
        """Returns (status, text); None if the server does not listen yet."""
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
        """Returns {number: (tokens, gaps)} of all prompts, sent together."""
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
        """Returns when the first token of a long answer has arrived; the rest may follow."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        body = {"prompt": PROMPTS[0], "max_tokens": 240, "ignore_eos": True, "stream": True}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        connection.getresponse().readline()
        return connection

    def pid(self, worker):
        for _, line in list(self.lines):
            if found := re.search(rf"\({worker} pid=(\d+)\)", line):
                return int(found[1])
        raise RuntimeError(f"no line of {self.log} names the process of {worker}")

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
            self._reader.join(60)  # until all its processes have ended: the last removes what they left in /dev/shm
        finally:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)  # only what its own session still has
            except ProcessLookupError:
                pass
        self._reader.join()
        return code


def start(folder, name, row):
    model, options, before, _ = row
    file = re.sub("[^a-z0-9]+", "-", name)
    return Server(f"{folder}/{file}.log", f"{folder}/models/{model}", options, before)


def answers(folder, name, row):
    server = start(folder, name, row)
    try:
        return server.wait_until_ready().complete()
    finally:
        server.stop()


def shared_memory():
    """Lists the files of Python's and vLLM's processes, or of unisono's, in /dev/shm."""
    return {name for name in os.listdir("/dev/shm") if name.startswith(("psm_", "sem.", "unisono"))}


def check(folder, name, alone):
    """Returns (right or not, message)."""
    row, shm = ROWS[name], shared_memory()
    with ExitStack() as started:
        servers = []
        for number in range(2 if name == TWO_SERVERS else 1):
            servers.append(start(folder, f"{name} {number}", row))
            started.callback(servers[-1].stop)
        for server in servers:
            server.wait_until_ready()
        with ThreadPoolExecutor() as together:
            found = list(together.map(Server.complete, servers))
        judged = [compare(one, alone) for one in found]
        if row[3] is not None:
            judged.append(kill_a_rank(servers[0], row[3]))
        for server in servers[1:]:  # which has not noticed
            right, say = compare(server.complete(), alone)
            judged.append((right, f"the other server still answers: {say}"))
    if not row[2]:  # else it had a /dev/shm of its own, which ended with it
        left = sorted(shared_memory() - shm)
        judged.append((not left, f"left in /dev/shm: {', '.join(left) or 'nothing'}"))
    return all(right for right, _ in judged), "; ".join(say for _, say in judged)


def kill_a_rank(server, worker):
    """Kills a rank while the server answers: the others name it, and the server ends with that sentence."""
    answer = server.start_answer()
    rank = worker.removeprefix("Worker_TP")
    os.kill(server.pid(worker), signal.SIGKILL)
    killed_at = time.monotonic()
    code = server.end()
    answer.close()
    sentence = f"peer_lost: rank {rank} "
    named = [(at - killed_at, line) for at, line in server.lines if sentence in line]
    if not named:
        return False, f"{worker} is killed: ends with {code}, and nobody names it: {server.last_words()}"
    after, line = named[0]
    said = re.search(sentence + r"[^'\\,]*", line)[0]
    by_engine = any("EngineCore" in line for _, line in named)  # its error ends the server
    return by_engine, (
        f"{worker} is killed: after {after:.2f} s {said}; "
        f"the server ends with {code}{' and that sentence' if by_engine else ', but without that sentence'}"
    )


def main():
    names = list(ROWS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="; ".join(names))
    parser.add_argument("--folder", help="with the models in models/; for logs")
    options = parser.parse_args()
    unknown = [row for row in options.rows if row not in names]
    if unknown:
        parser.error(f"there is no row {unknown[0]!r}; there are: {'; '.join(names)}")
    folder = options.folder or tempfile.mkdtemp(prefix="unisono-vllm-")
    alone, passed, failed = {}, 0, 0

    for name in options.rows or names:
        begin, model = time.monotonic(), ROWS[name][0]
        if ROWS[name][2] and subprocess.run([*ROWS[name][2], "true"], capture_output=True).returncode != 0:
            print(f"      serve {name}: left out, because it needs root and a mount namespace")
            continue
        try:
            if model not in alone:
                alone[model] = answers(folder, f"one {model}", (model, EAGER, [], None))
            right, say = check(folder, name, alone[model])
        except (RuntimeError, OSError, subprocess.SubprocessError, http.client.HTTPException) as error:
            right, say = False, str(error)
        passed, failed = passed + right, failed + (not right)
        print(f"{'ok   ' if right else 'WRONG'} serve {name}: {say} ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
