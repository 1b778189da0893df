"""Pipeline parallelism: verified schedules, and a runner that executes them.

    schedule = unisono.pipeline.by_name("zb-h1", ranks=4, microbatches=8)
    hidden = ("float32", (4, 8))
    runner = unisono.pipeline.Pipeline(
        comm, schedule, {comm.rank: (None, hidden)}, forward=forward,
        backward_input=backward_input, backward_weight=backward_weight)
    runner.run_step()

The callbacks get views of memory that the runner owns, or None if there is no input or output.
numpy.asarray(view) and torch.frombuffer(view, ...) share this memory. Callbacks must not keep the
views.
"""

import atexit
import contextlib
import weakref

from unisono._core import PipelineRunner, PipelineSchedule
from unisono._errors import UsageError

__all__ = ["Pipeline", "PipelineSchedule", "by_name", "load", "parse"]

by_name = PipelineSchedule.by_name
parse = PipelineSchedule.parse

_MOST_BYTES = 64 << 20

_open = weakref.WeakSet()


def load(path):
    """Returns the schedule in a file of at most 64 MiB (unisono.pipeline/1, or PyTorch's CSV)."""
    with open(path, "rb") as file:
        return parse(file.read(_MOST_BYTES + 1))  # one byte more is refused


class Pipeline(PipelineRunner):
    """Runs a schedule on the ranks of a communicator. Collective.

    stages: maps each stage of this rank to (input, output). The input and the output are (dtype,
    shape) or None. The output is required if there is a next stage. The input must equal the output
    of the previous stage; None copies that output's dtype and shape.

    Callbacks, if the schedule needs them:
      forward(stage, microbatch, input, output)
      backward(stage, microbatch, input, output_gradient, input_gradient): computes both gradients
      backward_input(...), with the arguments of backward
      backward_weight(stage, microbatch, input, output_gradient)
      reduce_grad(stage), unshard(stage), reshard(stage)
      overlap(parts): must call each of the parts once

    An exception in a callback ends the world on all ranks. timeout_ms limits the wait for one
    message. The TimeoutError names the late action and the rank of this action.
    """

    def __init__(self, comm, schedule, stages, **callbacks_and_options):
        super().__init__(comm, schedule, stages, **callbacks_and_options)
        _open.add(self)


# Runs before the communicators are closed, because a rank leaves its world only when nothing refers
# to it.
@atexit.register
def _close_all():
    for runner in list(_open):
        with contextlib.suppress(UsageError):  # a thread that nobody joins may still be in a step
            runner.close()
