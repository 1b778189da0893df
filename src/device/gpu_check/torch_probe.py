"""DDP on two processes of one GPU, gradients averaged by the kernels; the same weights as one process."""

import ctypes
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH = 30, 64


def model():
    torch.manual_seed(1)
    layers = []
    for _ in range(4):
        layers += [torch.nn.Linear(512, 512), torch.nn.GELU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(512, 10)).cuda()


def batch(step):
    g = torch.Generator().manual_seed(step)
    return torch.randn(BATCH, 512, generator=g).cuda(), torch.randint(10, (BATCH,), generator=g).cuda()


def train(net, part, parts):
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for step in range(STEPS):
        x, y = batch(step)
        n = BATCH // parts
        loss = torch.nn.functional.cross_entropy(net(x[part * n : part * n + n]), y[part * n : part * n + n])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return float(loss)


def flat(net):
    return torch.cat([p.detach().flatten().cpu() for p in net.parameters()])


def rank_main(rank, ranks, folder, hook):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.cuda.set_device(0)
    net = DistributedDataParallel(model(), device_ids=[0], bucket_cap_mb=1)
    if hook:
        torch.zeros(1).cuda()
        probe = ctypes.CDLL(os.environ["PROBE"])
        probe.probe_average.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        probe.probe_open(rank, ranks, (folder + "/meeting").encode())

        def average(state, bucket):
            data = bucket.buffer()
            probe.probe_average(data.data_ptr(), data.numel(), torch.cuda.current_stream().cuda_stream)
            done = torch.futures.Future(devices=[torch.device("cuda", 0)])
            done.set_result(data)
            return done

        net.register_comm_hook(None, average)
    begin = time.time()
    loss = train(net, rank, ranks)
    torch.cuda.synchronize()
    torch.save((flat(net.module), loss, time.time() - begin), f"{folder}/rank{rank}-{hook}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    print(torch.__version__, torch.cuda.get_device_name(0) if len(sys.argv) > 1 else "", flush=True)
    folder = tempfile.mkdtemp()
    for hook in (True, False):
        mp.spawn(rank_main, args=(2, folder, hook), nprocs=2)
    alone = model()
    loss = train(alone, 0, 1)
    weights = flat(alone)
    for hook in (True, False):
        a, la, ta = torch.load(f"{folder}/rank0-{hook}")
        b, lb, tb = torch.load(f"{folder}/rank1-{hook}")
        print(
            f"{'kernels' if hook else 'gloo'}: ranks have the same bits: {torch.equal(a, b)}; greatest difference to one process "
            f"{(a - weights).abs().max():.2e} (weights up to {weights.abs().max():.2f}); {STEPS} steps in {ta:.2f} s"
        )
    if not torch.equal(*(torch.load(f"{folder}/rank{r}-True")[0] for r in (0, 1))):
        sys.exit(1)
