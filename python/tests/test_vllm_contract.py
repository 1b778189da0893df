"""Our classes compared with those of the installed vLLM: each call that it names, with its parameters."""

import inspect
import threading

import pytest
import torch

pytest.importorskip("vllm.distributed", reason="vLLM is not installed: make vllm")

from vllm.distributed.device_communicators import all2all, base_device_communicator as base  # noqa: E402
from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator  # noqa: E402

from unisono.vllm import communicator, here, patches  # noqa: E402

OURS = communicator.UnisonoCommunicator
# Calls of a communicator that move data or own something.
CALLS = sorted(
    {name for cls in (base.DeviceCommunicatorBase, CpuCommunicator) for name, _ in inspect.getmembers(cls, inspect.isfunction)}
    - communicator.KEPT - {"_all_group_ranks_share_shm_group_name"}
)  # fmt: skip


def accepts(function, wanted):
    """Returns whether each call that fits `wanted` fits `function`: names, order, and optional parameters."""
    ours = list(inspect.signature(function).parameters.values())
    theirs = list(inspect.signature(wanted).parameters.values())
    names = [one.name for one in ours]
    return names[: len(theirs)] == [one.name for one in theirs] and all(
        (mine.default is inspect.Parameter.empty) == (one.default is inspect.Parameter.empty) and
        (mine.default == one.default or one.default is inspect.Parameter.empty)
        for mine, one in zip(ours, theirs)
    )  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_each_call_is_ours(name):
    function = getattr(OURS, name)
    assert function.__module__.startswith("unisono."), f"{name} is vLLM's own: over torch.distributed"
    assert accepts(function, getattr(CpuCommunicator, name)), inspect.signature(getattr(CpuCommunicator, name))


def test_nothing_falls_back():
    assert communicator.falls_back(OURS) == []

    class Less(OURS):
        all_reduce = base.DeviceCommunicatorBase.all_reduce

    assert communicator.falls_back(Less) == ["all_reduce"]


@pytest.mark.parametrize("name", ("combine", "combine_into_output", "dispatch", "dispatch_router_logits"))
def test_the_manager_has_the_calls(name):
    function = getattr(communicator.UnisonoAll2AllManager, name)
    assert function.__module__.startswith("unisono.")
    assert accepts(function, getattr(all2all.AgRsAll2AllManager, name))
    assert accepts(communicator.UnisonoCommunicator.__init__, CpuCommunicator.__init__)


def test_every_place_is_there():
    from vllm.platforms.cpu import CpuPlatform

    patches.apply(CpuPlatform)
    patches.apply(CpuPlatform)  # vLLM calls it in each process, and may call it again
    assert CpuPlatform.get_device_communicator_cls().endswith("UnisonoCommunicator")
    assert [what for what, change in patches._CHANGES.items() if not patches._made(change)] == []
    assert communicator.logger.name.startswith("vllm.")  # or vLLM would not show its messages


def test_kernels_get_their_own_experts():
    from vllm.model_executor.layers.fused_moe.experts import cpu_moe

    patches._respect_expert_maps()
    assert hasattr(cpu_moe.CPUUnquantizedExperts.apply, "_unisono")
    assert not patches._ignores(lambda expert_map: expert_map, "expert_map")
    assert patches._ignores(lambda expert_map: None, "expert_map")
    assert not patches._ignores(lambda other: None, "expert_map")


def test_the_plugin_is_asked_for(monkeypatch):
    """If the plug-in is installed but not enabled, it changes nothing."""
    import unisono.vllm

    monkeypatch.setattr(patches, "apply", lambda platform: pytest.fail("was not asked for"))
    for value in (None, "", "other", "unisono2"):
        monkeypatch.delenv("VLLM_PLUGINS", raising=False)
        if value is not None:
            monkeypatch.setenv("VLLM_PLUGINS", value)
        unisono.vllm.register()
    applied = []
    monkeypatch.setattr(patches, "apply", applied.append)
    monkeypatch.setenv("VLLM_PLUGINS", "other,unisono")
    unisono.vllm.register()
    assert [platform.__name__ for platform in applied] == ["CpuPlatform"]


class Worker:
    """Kept as in the executor."""

    def __init__(self, rank, exitcode):
        self.rank = rank
        self.proc = type("Process", (), {"pid": 100 + rank, "exitcode": exitcode})


def test_a_dead_worker_is_named_at_once(monkeypatch):
    from vllm.v1.executor.multiproc_executor import MultiprocExecutor

    patches._name_lost_ranks()
    said = []
    monkeypatch.setattr(patches.logger, "error", lambda *args: said.append(args))
    executor = object.__new__(MultiprocExecutor)
    executor.shutting_down, executor.workers = True, [Worker(1, -9)]
    executor.shutdown()
    assert said == []  # it was told to end
    monkeypatch.setattr(MultiprocExecutor, "_ensure_worker_termination", staticmethod(lambda workers: None))
    executor.shutting_down = False
    executor.workers[0].death_writer = executor.workers[0].worker_response_mq = None
    executor.shutdown()
    assert said == [("unisono: %s", "peer_lost: rank 1 (pid 101) is gone: killed by SIGKILL")]


def test_the_last_error_names_the_lost_rank(monkeypatch):
    from vllm.v1.engine import core

    assert patches.lost_rank([]) is None
    assert patches.lost_rank([Worker(0, None), Worker(1, 0), Worker(2, -15)]) is None  # asked to end, or not ended
    assert patches.lost_rank([Worker(0, -15), Worker(1, -9)]) == "peer_lost: rank 1 (pid 101) is gone: killed by SIGKILL"
    assert patches.lost_rank([Worker(3, 7)]) == "peer_lost: rank 3 (pid 103) is gone: ended with status 7"

    for cls in (core.EngineCoreProc, core.DPEngineCoreProc):

        class Engine(cls):
            enable_fault_tolerance = False

            def __init__(self, workers, error):
                self.model_executor, self.error = type("Executor", (), {"workers": workers}), error

            def _handle_shutdown(self):
                raise self.error

        patches._name_lost_ranks()
        monkeypatch.setattr(cls, "__del__", lambda self: None, raising=False)
        with pytest.raises(RuntimeError, match="peer_lost: rank 1 .*SIGKILL"):
            Engine([Worker(0, None), Worker(1, -9)], RuntimeError("Executor failed.")).run_busy_loop()
        for workers, said in ([Worker(0, None)], "Executor failed."), ([Worker(1, -9)], "a sentence with peer_lost"):
            with pytest.raises(RuntimeError, match=said):
                Engine(workers, RuntimeError(said)).run_busy_loop()


def test_calls_are_named_by_layer():
    from vllm.model_executor.layers import linear, logits_processor, vocab_parallel_embedding

    patches._name_layers()
    for cls in (linear.ColumnParallelLinear, linear.RowParallelLinear, vocab_parallel_embedding.VocabParallelEmbedding):
        assert hasattr(cls.forward, "_unisono"), cls

    class Logits(logits_processor.LogitsProcessor):
        logits_as_input, soft_cap, scale = False, None, 1.0

        def __init__(self):
            pass

        def _get_logits(self, *args):
            return here.layer_name()

    assert Logits.forward(object.__new__(Logits), None, None) == "logits"

    class Embedding(vocab_parallel_embedding.VocabParallelEmbedding):
        tp_size, prefix = 1, ""  # Llama gives it none
        quant_method = type("Method", (), {"embedding": staticmethod(lambda *args: here.layer_name())})

        def __init__(self):
            pass

    embedding = object.__new__(Embedding)
    assert Embedding.forward(embedding, torch.zeros(1)) == "embedding"
    Embedding.prefix = "model.embed_tokens"
    assert Embedding.forward(embedding, torch.zeros(1)) == "embed_tokens"
    assert here.layer_name() == ""


def test_queues_fit_into_a_small_shm(monkeypatch):
    """And longer messages still arrive."""
    from vllm.distributed.device_communicators import shm_broadcast

    patches._fit_queues()
    usage = shm_broadcast.shutil.disk_usage(shm_broadcast.SHM_PATH)
    monkeypatch.setattr(shm_broadcast.shutil, "disk_usage", lambda path: usage._replace(free=64 << 20))
    writer = shm_broadcast.MessageQueue(1, 1)
    assert 300 << 10 < writer.buffer.max_chunk_bytes <= (64 << 20) / 16 / 10
    reader = shm_broadcast.MessageQueue.create_from_handle(writer.export_handle(), 0)
    assert reader.buffer.max_chunk_bytes == writer.buffer.max_chunk_bytes
    waits = threading.Thread(target=reader.wait_until_ready)
    waits.start()
    writer.wait_until_ready()
    waits.join()
    for message in (b"short", bytes(range(256)) * 8000):
        writer.enqueue(message)
        assert reader.dequeue(timeout=300) == message
    monkeypatch.setattr(shm_broadcast.shutil, "disk_usage", lambda path: usage._replace(free=64 << 30))
    assert shm_broadcast.ShmRingBuffer(1, 1 << 16, 10).max_chunk_bytes == 1 << 16
    for free in (0, 1 << 20):  # vLLM then reports how much there is
        monkeypatch.setattr(shm_broadcast.shutil, "disk_usage", lambda path, free=free: usage._replace(free=free))
        if free == 0:
            with pytest.raises(RuntimeError, match="0 MiB free"):
                shm_broadcast.ShmRingBuffer(1, 1 << 20, 10)
        else:
            assert shm_broadcast.ShmRingBuffer(1, 1 << 20, 10).max_chunk_bytes == 4096
