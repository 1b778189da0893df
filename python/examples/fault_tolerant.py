"""torchft: data parallelism whose replicas may die and come back at any step.

torchft_lighthouse --min_replicas 2 --bind 0.0.0.0:29510 &
TORCHFT_LIGHTHOUSE=http://localhost:29510 python python/examples/fault_tolerant.py 0   # and 1, 2, ...
"""

import sys
from datetime import timedelta

import common
import torch
import torch.distributed as dist


def main(replica, lighthouse=None, process_group=None, done=lambda step: step >= 20):
    """The weights after so many steps, each of which at least two replicas made together."""
    from torchft import Manager, Optimizer

    from unisono.torch.torchft import ProcessGroupUnisono

    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    model = common.new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def load(state):
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    manager = Manager(
        pg=(process_group or ProcessGroupUnisono)(timeout=timedelta(seconds=5)), min_replica_size=2,
        load_state_dict=load, state_dict=lambda: {"model": model.state_dict(), "optimizer": optimizer.state_dict()},
        replica_id=f"replica-{replica}", lighthouse_addr=lighthouse, hostname="localhost",
        store_addr="localhost", store_port=store.port, rank=0, world_size=1, timeout=timedelta(seconds=30),
    )  # fmt: skip
    managed = Optimizer(manager, optimizer)
    while not done(manager.current_step()):
        managed.zero_grad()  # agrees on who is there; a new replica loads the weights of the others
        tokens, following = common.batch(manager.current_step(), int(replica) % 2, 2)
        common.loss_of(model(tokens), following).backward()
        for work in [manager.allreduce(parameter.grad) for parameter in model.parameters()]:
            work.wait()  # the mean; after a death it keeps what was there, and the step is skipped
        managed.step()  # skipped by all if a replica died meanwhile
    manager.shutdown(wait=False)
    return {name: value.clone() for name, value in model.state_dict().items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(f"fault_tolerant: {len(main(*sys.argv[1:]))} tensors")
