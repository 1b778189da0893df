"""torchrun on two nodes, which are network namespaces: no route elsewhere, no names, no shared memory."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from namespaces import two_nodes  # noqa: F401  (a fixture)

# Much longer than needed: six processes that each import torch.
LIMIT_S = 420

# torchrun starts Python with -u: print() writes in pieces, which would mix with another rank's
# output.
PROGRAM = f"""
    import faulthandler
    import sys

    faulthandler.dump_traceback_later({LIMIT_S - 60})  # where it hangs, if it does

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("unisono")
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.full((100_000,), float(rank))
    dist.all_reduce(x)
    assert x[-1].item() == sum(range(size))
    across = dist.new_group([0, size - 1])
    if rank in (0, size - 1):
        dist.all_reduce(x, group=across)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(64, 64))
    model(torch.randn(8, 64)).sum().backward()
    said = [None] * size
    dist.all_gather_object(said, rank)
    assert said == list(range(size))
    from unisono.torch import MoEDispatcher

    dispatcher = MoEDispatcher(experts=2 * size, k=2)  # its ranks meet over the group
    assert dispatcher.comm.hosts == 2
    tokens = (torch.arange(12.0).reshape(3, 4) + rank).requires_grad_()
    chosen = torch.tensor([[rank, (rank + 3) % (2 * size)]] * 3)
    here = dispatcher.exchange.route(chosen).experts_here
    out = dispatcher(tokens, chosen, torch.ones(3, 2), lambda local, rows: rows * (here[local] + 1))
    out.sum().backward()
    factor = float((chosen[0] + 1).sum())
    assert torch.equal(out, tokens * factor) and torch.equal(tokens.grad, torch.full((3, 4), factor))
    sys.stdout.write(f"rank {{rank}} of {{size}} is right\\n")
    dist.destroy_process_group()
"""


class Agents:
    """Runs torchrun on each node; returns their output and exit codes."""

    def __init__(self, nodes, program, environment, folder):
        self.begin = time.monotonic()
        self.files = [folder / f"node{node}.log" for node in range(2)]
        self.processes = []
        for node, file in enumerate(self.files):
            words = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", f"--node-rank={node}",
                     "--nproc-per-node=2", f"--master-addr={nodes.addresses[0]}",
                     "--master-port=29500", str(program)]  # fmt: skip
            # A file, because a pipe that is not read would block the writer.
            with open(file, "w") as log:
                self.processes.append(subprocess.Popen(
                    nodes.command(node, *words), stdout=log, stderr=log, env=environment))  # fmt: skip

    def wait(self):
        """If one has failed, the other has some time to report: torchrun waits for minutes."""
        end = self.begin + LIMIT_S
        while any(process.poll() is None for process in self.processes):
            if any(process.poll() for process in self.processes):
                end = min(end, time.monotonic() + 30)
            if time.monotonic() > end:
                self.stop()
            time.sleep(0.1)

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)  # it ends its ranks
        for process in self.processes:
            try:
                process.wait(timeout=600)
            except subprocess.TimeoutExpired:
                process.kill()

    def report(self):
        text = f"{time.monotonic() - self.begin:.0f} s, load {os.getloadavg()}, 1.0 is one processor"
        for node, (process, file) in enumerate(zip(self.processes, self.files)):
            text += f"\n--- node {node}: torchrun ended with {process.poll()}; it and its ranks said\n"
            text += file.read_text(errors="replace")[-20_000:]
        return text


@pytest.mark.parametrize(
    "secure", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["plain", "tls"]
)
def test_torchrun(two_nodes, secure, tmp_path):  # noqa: F811
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    # Removes the caller's settings for torchrun and c10d: this is a separate job.
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("TORCH", "PET_", "MASTER_", "RANK", "WORLD_SIZE"))}  # fmt: skip
    environment = {**kept, "OMP_NUM_THREADS": "1"}
    if secure:
        environment.update(UNISONO_TLS="1", UNISONO_TOKEN="0123456789abcdef")
    agents = Agents(two_nodes, program, environment, tmp_path)
    agents.wait()
    assert [process.returncode for process in agents.processes] == [0, 0], agents.report()
    for rank in range(4):
        said = agents.files[rank // 2].read_text()
        assert f"rank {rank} of 4 is right\n" in said, agents.report()
