#!/usr/bin/env python3
"""The engine itself, over unisono and over its own communicators: table.py [ROW...], or all rows.

Greedy tokens of 20 prompts under a layout must be those of one process; where they differ, the gap
between the two likeliest tokens tells whether rounding decided. Each row forks its ranks from this
process, which has loaded vLLM once. Needs the environment that scripts/test-vllm makes.
The last line counts the rows.
"""

import argparse
import json
import os
import signal
import socket
import sys
import tempfile
import time
import traceback
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", VLLM_ENABLE_V1_MULTIPROCESSING="0", TOKENIZERS_PARALLELISM="false")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
os.environ["VLLM_PLUGINS"] = ""  # each row says whether it uses unisono

import torch  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import models  # noqa: E402
from compare import PLACES, compare, gaps_of  # noqa: E402

PROMPTS = [
    {"prompt_token_ids": [(7 * number + 13 * i * i + 3) % models.WORDS for i in range(4 + number % 9)]}
    for number in range(20)
]
LIMIT_S = 600

EXPERTS = {"enable_expert_parallel": True}
# Traced whole by Dynamo, as for vllm serve, but not compiled by inductor. vLLM needs it for pipelines on
# CPUs: without, it leaves out the warm-up that makes the memory for incoming activations.
TRACED = {"enforce_eager": False, "compilation_config": {"mode": 2, "backend": "eager"}}
# name: (model, ranks, options of vLLM); "stock" has none of unisono.
ROWS = {
    "llama": ("llama", 1, {}),
    "llama tp=2": ("llama", 2, {"tensor_parallel_size": 2}),
    "llama pp=2": ("llama", 2, {"pipeline_parallel_size": 2, **TRACED}),
    "llama tp=2 pp=2": ("llama", 4, {"tensor_parallel_size": 2, "pipeline_parallel_size": 2, **TRACED}),
    "llama tp=4": ("llama", 4, {"tensor_parallel_size": 4}),
    "llama tp=2 traced": ("llama", 2, {"tensor_parallel_size": 2, **TRACED}),
    "qwen3_moe": ("qwen3_moe", 1, {}),
    "qwen3_moe tp=2": ("qwen3_moe", 2, {"tensor_parallel_size": 2}),
    "qwen3_moe tp=2 ep": ("qwen3_moe", 2, {"tensor_parallel_size": 2, **EXPERTS}),
    "qwen3_moe dp=2": ("qwen3_moe", 2, {"data_parallel_size": 2}),
    "qwen3_moe dp=2 ep": ("qwen3_moe", 2, {"data_parallel_size": 2, **EXPERTS}),
    "qwen3_moe dp=2 tp=2 ep": ("qwen3_moe", 4, {"data_parallel_size": 2, "tensor_parallel_size": 2, **EXPERTS}),
    "qwen3_moe dp=2 ep traced": ("qwen3_moe", 2, {"data_parallel_size": 2, **EXPERTS, **TRACED}),
    "stock llama tp=2": ("llama", 2, {"tensor_parallel_size": 2}),
    "stock qwen3_moe tp=2 ep": ("qwen3_moe", 2, {"tensor_parallel_size": 2, **EXPERTS}),
    "stock qwen3_moe dp=2 ep": ("qwen3_moe", 2, {"data_parallel_size": 2, **EXPERTS}),
}  # fmt: skip
KILLED = "a rank is killed"


def engine(model, ranks, options):
    from vllm import LLM

    return LLM(
        model, dtype="float32", skip_tokenizer_init=True, max_model_len=128, max_num_seqs=32, seed=0,
        enable_prefix_caching=False, distributed_executor_backend="external_launcher" if ranks > 1 else "uni",
        kv_cache_memory_bytes=64 << 20, **{"enforce_eager": True, **options},
    )  # fmt: skip


def prompts_of(rank, ranks, options):
    """Data-parallel replicas share the prompts."""
    replicas = options.get("data_parallel_size", 1)
    return range(rank // (ranks // replicas), len(PROMPTS), replicas)


def generate(made, numbers):
    from vllm import SamplingParams

    wanted = SamplingParams(temperature=0, max_tokens=PLACES, ignore_eos=True, detokenize=False, logprobs=2)
    begin = time.monotonic()
    answers = made.generate([PROMPTS[number] for number in numbers], wanted, use_tqdm=False)
    duration = time.monotonic() - begin
    found = {}
    for number, answer in zip(numbers, answers):
        places = [[one.logprob for one in place.values()] for place in answer.outputs[0].logprobs]
        found[number] = list(answer.outputs[0].token_ids), gaps_of(places)
    return found, duration


def groups():
    from vllm.distributed import parallel_state

    known = (group() for group in parallel_state._groups.values())
    return [group for group in known if group is not None and group.device_communicator is not None]


def report(model, rank, ranks, options):
    made = engine(model, ranks, options)
    communicators = [group.device_communicator for group in groups()]
    managers = [one.all2all_manager for one in communicators if hasattr(one.all2all_manager, "calls")]
    for manager in managers:
        manager.calls.rows_sent = 0
    found, duration = generate(made, prompts_of(rank, ranks, options))
    sent = sum(manager.calls.rows_sent for manager in managers)
    classes = {type(one).__name__ for one in communicators}
    return {"found": found, "s": duration, "classes": sorted(classes), "rows_sent": sent}


def serve_until_killed(model, rank, ranks, options):
    """The last rank kills itself between two tokens; the others report when and why they fail."""
    made = engine(model, ranks, options)
    communicator = groups()[0].device_communicator
    if rank == ranks - 1:
        count = [0]

        def all_reduce(tensor, call=communicator.all_reduce):
            count[0] += 1
            if count[0] == 20:
                os.write(1, f"{time.time()}\n".encode())
                os.kill(os.getpid(), signal.SIGKILL)
            return call(tensor)

        communicator.all_reduce = all_reduce
    try:
        generate(made, range(20))
    except Exception as error:
        return {"at": time.time(), "error": type(error).__name__, "text": str(error)}
    return {"error": None}


def fork(body, name, ranks, folder):
    """Returns [(exit code, result or None, log)] of body(rank) on forked ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = Path(folder) / name.replace(" ", "-")
    place.mkdir(exist_ok=True)
    pids = []
    for rank in range(ranks):
        pid = os.fork()
        if pid == 0:
            run_rank(body, rank, ranks, port, place)
        pids.append(pid)
    codes, end = [], time.monotonic() + LIMIT_S
    for pid in pids:
        while (done := os.waitpid(pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        codes.append(os.waitstatus_to_exitcode(done[1]))
    results = []
    for rank, code in enumerate(codes):
        file = place / f"{rank}.json"
        results.append((code, json.loads(file.read_text()) if file.exists() else None, place / f"{rank}.log"))
    return results


def run_rank(body, rank, ranks, port, place):
    code = 1
    try:
        log = os.open(place / f"{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.update(
            RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
        )
        (place / f"{rank}.json").write_text(json.dumps(body(rank)))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run(name, folder):
    model, ranks, options = ROWS[name]

    def body(rank):
        os.environ["VLLM_PLUGINS"] = "" if name.startswith("stock") else "unisono"
        return report(f"{folder}/models/{model}", rank, ranks, options)

    return fork(body, name, ranks, folder)


def last_words(log):
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "Killed" in line]
    return (errors or lines or ["nothing"])[-1][:300]


def judge(name, results, alone):
    """Returns (right or not, message)."""
    failed = [(code, last_words(log)) for code, result, log in results if result is None]
    if failed:
        return name.startswith("stock"), f"ends with {failed[0][0]}: {failed[0][1]}"
    found = {}
    for _, result, _ in results:
        for number, tokens in result["found"].items():
            if found.setdefault(number, tokens)[0] != tokens[0]:
                return False, f"ranks have different tokens for prompt {number}"
    classes = sorted({one for _, result, _ in results for one in result["classes"]})
    if len(results) > 1 and classes != ["CpuCommunicator" if name.startswith("stock") else "UnisonoCommunicator"]:
        return False, f"the communicators are {classes}"
    sent = sum(result["rows_sent"] for _, result, _ in results)
    say = f"{max(result['s'] for _, result, _ in results):.1f} s" + (f", {sent} rows sent to experts and back" if sent else "")
    if alone is None:
        return True, say
    right, equal = compare(found, alone)
    return right, f"{equal}; {say}"


def kill_a_rank(folder):
    before = set(os.listdir("/dev/shm"))

    def body(rank):
        os.environ["VLLM_PLUGINS"] = "unisono"
        return serve_until_killed(f"{folder}/models/llama", rank, 2, {"tensor_parallel_size": 2})

    results = fork(body, KILLED, 2, folder)
    killed_at = float([line for line in results[-1][2].read_text().splitlines() if line.replace(".", "").isdigit()][-1])
    # vLLM's own queues have names of Python, and a killed process leaves its queue there.
    left = sorted(name for name in set(os.listdir("/dev/shm")) - before if not name.startswith("psm_"))
    code, result, log = results[0]
    if result is None or result["error"] is None:
        return False, f"the survivor ended with {code}: {last_words(log)}"
    late = result["at"] - killed_at
    text = result["text"].splitlines()[0]
    return late < 1 and "rank 1" in text and not left, f"after {late:.2f} s: {result['error']}: {text}; left in /dev/shm: {left}"


def prepare(folder):
    """Writes the models, and loads vLLM once for all forked ranks."""
    models.write(f"{folder}/models")
    import vllm.model_executor.models.llama  # noqa: F401
    import vllm.model_executor.models.qwen3_moe  # noqa: F401
    import vllm.v1.worker.cpu_worker  # noqa: F401
    from vllm import LLM  # noqa: F401

    torch.set_num_threads(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="; ".join([*ROWS, KILLED]))
    parser.add_argument("--folder", help="for models, results and logs")
    options = parser.parse_args()
    unknown = [row for row in options.rows if row not in (*ROWS, KILLED)]
    if unknown:
        parser.error(f"there is no row {unknown[0]!r}; there are: {'; '.join([*ROWS, KILLED])}")
    folder = options.folder or tempfile.mkdtemp(prefix="unisono-vllm-")
    prepare(folder)
    alone, passed, failed = {}, 0, 0
    for name in options.rows or [*ROWS, KILLED]:
        if name == KILLED:
            right, say = kill_a_rank(folder)
        else:
            model, ranks, _ = ROWS[name]
            if ranks > 1 and model not in alone:
                alone[model] = run(model, folder)[0][1]["found"]
            results = run(name, folder)
            right, say = judge(name, results, alone[model] if ranks > 1 else None)
            if ranks == 1 and results[0][1] is not None:
                alone[model] = results[0][1]["found"]
        passed, failed = passed + right, failed + (not right)
        print(f"{'ok   ' if right else 'WRONG'} {name}: {say}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
