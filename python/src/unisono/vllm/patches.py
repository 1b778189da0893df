"""All changes that the plug-in makes to vLLM. They affect only this process."""

import dis
import functools
import inspect
import os
import shutil
import signal

import torch
from vllm.logger import init_logger

from unisono.vllm import LOGGER, here
from unisono.vllm.experts import with_expert_map

logger = init_logger(LOGGER)


def apply(platform):
    """Makes unisono the communicator of this platform, with all changes. May be called again."""
    platform.get_device_communicator_cls = classmethod(
        lambda cls: "unisono.vllm.communicator.UnisonoCommunicator"
    )
    _define_operations()
    missing = [what for what, change in _CHANGES.items() if not _made(change)]
    if missing:
        logger.warning("unisono: this vLLM has no place for: %s", "; ".join(missing))


def _made(change):
    try:
        change()
    except (ImportError, AttributeError) as error:
        logger.debug("unisono: %s: %s", change.__name__, error)
        return False
    return True


def _once(owner, name, wrap):
    """Replaces a function of a class by wrap(function), unless it has already been replaced."""
    original = owner.__dict__[name] if name in owner.__dict__ else getattr(owner, name)
    if not hasattr(original, "_unisono"):
        changed = functools.wraps(original)(wrap(original))
        changed._unisono = True
        setattr(owner, name, changed)


def _name_layers():
    """Labels calls with their layer, if Python code runs for each layer."""
    from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner
    from vllm.model_executor.layers.linear import ColumnParallelLinear, RowParallelLinear
    from vllm.model_executor.layers.logits_processor import LogitsProcessor
    from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

    def within(attribute, otherwise=""):
        def wrap(original):
            def forward(self, *args, **kwargs):
                if torch.compiler.is_compiling():
                    return original(self, *args, **kwargs)
                with here.layer(getattr(self, attribute, "") or otherwise):
                    return original(self, *args, **kwargs)

            return forward

        return wrap

    for cls in (ColumnParallelLinear, RowParallelLinear):
        _once(cls, "forward", within("prefix"))
    _once(VocabParallelEmbedding, "forward", within("prefix", "embedding"))
    _once(LogitsProcessor, "forward", within("prefix", "logits"))
    _once(MoERunner, "_forward_impl", within("layer_name"))


def _tell_experts():
    """Passes the placement of experts to the manager. vLLM's dispatch call does not pass it."""
    from vllm.model_executor.layers.fused_moe.prepare_finalize import naive_dp_ep

    def wrap(original):
        signature = inspect.signature(original)

        def prepare(*args, **kwargs):
            with here.experts(signature.bind(*args, **kwargs).arguments["expert_map"]):
                return original(*args, **kwargs)

        return prepare

    _once(naive_dp_ep.MoEPrepareAndFinalizeNaiveDPEPModular, "prepare", wrap)


def _respect_expert_maps():
    """Passes local expert numbers to CPU kernels.

    The kernels use the numbers that they get as indices of this rank's weights, but vLLM passes
    global numbers.
    """
    from vllm.model_executor.layers.fused_moe.experts import cpu_moe

    def wrap(original):
        signature = inspect.signature(original)

        def run(*args, **kwargs):
            call = signature.bind(*args, **kwargs)
            given = call.arguments
            expert_map = given["expert_map"]
            if expert_map is None:
                return original(*args, **kwargs)

            def compute(output, rows, weights, ids, scale):
                given.update(
                    output=output, hidden_states=rows, topk_weights=weights, topk_ids=ids, a1q_scale=scale,
                    expert_map=None,
                )  # fmt: skip
                original(*call.args, **call.kwargs)

            with_expert_map(
                compute, given["output"], given["hidden_states"], given["topk_weights"], given["topk_ids"],
                expert_map, given["a1q_scale"],
            )  # fmt: skip
            return None

        return run

    for _, cls in inspect.getmembers(cpu_moe, inspect.isclass):
        function = cls.__dict__.get("apply")
        if function is not None and _ignores(function, "expert_map"):
            _once(cls, "apply", wrap)


def _ignores(function, parameter):
    """Returns True if the function has a parameter of this name and never reads this parameter."""
    return parameter in inspect.signature(function).parameters and not any(
        one.argval == parameter for one in dis.get_instructions(function) if one.opname.startswith("LOAD_")
    )


def _hide_experts():
    """Makes compiled graphs call a layer of experts as a whole, because the number of received rows
    varies at run time."""
    from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner

    def wrap(original):
        def select(self):
            if not self.moe_config.moe_parallel_config.use_ep:
                return original(self)
            shared = self._shared_experts is not None
            return torch.ops.vllm.moe_forward_shared if shared else torch.ops.vllm.moe_forward

        return select

    _once(MoERunner, "_select_forward", wrap)


def _name_lost_ranks():
    """Makes the engine log the name of a dead rank at once, and give the name in its last error.

    Ranks that wait for the dead rank also name it, but between two steps no rank waits. Without
    this change the engine's last error is "Executor failed.", "cancelled" or a rank's error,
    depending on the order of vLLM's threads.
    """
    from vllm.v1.engine import core
    from vllm.v1.executor.multiproc_executor import MultiprocExecutor

    def wrap_shutdown(original):
        def shutdown(self):
            sentence = lost_rank(getattr(self, "workers", None) or ())
            if sentence is not None and not getattr(self, "shutting_down", False):
                logger.error("unisono: %s", sentence)
            return original(self)

        return shutdown

    def wrap_loop(original):
        def run_busy_loop(self, *args, **kwargs):
            try:
                return original(self, *args, **kwargs)
            except Exception as error:
                sentence = lost_rank(getattr(self.model_executor, "workers", None) or ())
                if sentence is None or "peer_lost" in str(error):
                    raise
                raise RuntimeError(sentence) from error

        return run_busy_loop

    _once(MultiprocExecutor, "shutdown", wrap_shutdown)
    for cls in (core.EngineCoreProc, core.DPEngineCoreProc):
        _once(cls, "run_busy_loop", wrap_loop)


def lost_rank(workers):
    """Returns a text about the worker process that died. Returns None if all workers still run,
    ended normally or received SIGTERM."""
    for worker in workers:
        code = worker.proc.exitcode
        if code not in (None, 0, -signal.SIGTERM):
            names = {one.value: one.name for one in signal.Signals}
            how = f"killed by {names.get(-code, f'signal {-code}')}" if code < 0 else f"ended with status {code}"
            return f"peer_lost: rank {worker.rank} (pid {worker.proc.pid}) is gone: {how}"
    return None


# A queue uses at most 1/QUEUE_SHARE of the free memory in /dev/shm. The executor has one queue for
# itself and one for each rank.
QUEUE_SHARE = 16
LEAST_CHUNK = 4096


def _fit_queues():
    """Makes the queues between vLLM's processes fit into a small /dev/shm, such as a container's 64 MiB.

    By default the queues need 160 MiB, and another 240 MiB per rank. Messages longer than a chunk
    always use a socket.
    """
    from vllm.distributed.device_communicators.shm_broadcast import SHM_PATH, ShmRingBuffer

    def wrap(original):
        def __init__(self, n_reader, max_chunk_bytes, max_chunks, name=None):
            if name is None and os.path.isdir(SHM_PATH):
                chunk = shutil.disk_usage(SHM_PATH).free // QUEUE_SHARE // max_chunks // LEAST_CHUNK * LEAST_CHUNK
                max_chunk_bytes = min(max_chunk_bytes, max(chunk, LEAST_CHUNK))
            original(self, n_reader, max_chunk_bytes, max_chunks, name)

        return __init__

    _once(ShmRingBuffer, "__init__", wrap)


_CHANGES = {
    "queues in a small /dev/shm": _fit_queues,
    "the name of a lost rank": _name_lost_ranks,
    "labels by layer": _name_layers,
    "expert parallelism by exchange of tokens": _tell_experts,
    "expert parallelism in CPU kernels": _respect_expert_maps,
    "expert parallelism in compiled graphs": _hide_experts,
}


@functools.cache
def _define_operations():
    """Registers the operations that compiled graphs call. They identify their group by its name."""
    library = torch.library.Library("unisono", "FRAGMENT")
    library.define("all_reduce_(Tensor(a!) x, str group) -> ()")
    library.define("all_gather(Tensor x, int dim, int ranks, str group) -> Tensor")
    library.define("reduce_scatter(Tensor x, int dim, int ranks, str group) -> Tensor")

    def all_reduce_(x, group):
        here.group(group).all_reduce(x)

    def all_gather(x, dim, ranks, group):
        return here.group(group).all_gather(x, dim)

    def reduce_scatter(x, dim, ranks, group):
        return here.group(group).reduce_scatter(x, dim)

    def gathered(x, dim, ranks, group):
        return x.new_empty([size * ranks if i == dim else size for i, size in enumerate(x.shape)])

    def scattered(x, dim, ranks, group):
        return x.new_empty([size // ranks if i == dim else size for i, size in enumerate(x.shape)])

    for name, run, shape in (
        ("all_reduce_", all_reduce_, lambda x, group: None),
        ("all_gather", all_gather, gathered),
        ("reduce_scatter", reduce_scatter, scattered),
    ):
        library.impl(name, run, "CPU")
        library._register_fake(name, shape)
    return library  # must outlive its operations
