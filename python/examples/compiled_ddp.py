"""A data-parallel step under torch.compile, which cuts the graph at each bucket of gradients:

torchrun --nproc-per-node 2 python/examples/compiled_ddp.py
"""

import common
import ddp
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(steps=6, compiler="inductor"):
    """`compiler`: "inductor" needs a C++ compiler where it runs; "aot_eager" needs none."""
    model = torch.compile(DistributedDataParallel(common.new_model()), backend=compiler)
    return common.train(model, steps, dist.get_rank(), dist.get_world_size(), ddp.average)


if __name__ == "__main__":
    common.run(main)
