"""The parallel layer: distributes a model over ranks, for arrays of any library.

    mesh = unisono.parallel.Mesh(comm, "dp=2,tp=4")
    tp = mesh.axis("tp")
    unisono.parallel.redistribute(tp, part, Shard(0), Replicate(), out=whole)

Arrays are numpy arrays, torch tensors, or other objects with the buffer protocol or __dlpack__. A
call fills the output argument and returns it. Data of regions, embeddings, logits and attention is
packed and has the type float32, bfloat16, float16 or float8. Losses and log_sum are float32, and
token numbers are int32. Sums are formed in float32 and rounded once. All ranks of a communicator
make the same calls in the same order. docs/guides/python.md has examples, and
include/unisono/parallel/ documents each call.
"""

import atexit
import weakref

from unisono import _core

_parallel = _core._parallel

__all__ = [
    "ContextAxes", "GradientBuckets", "Mesh", "MeshShape", "Parameter", "Partial", "Placement",
    "Replicate", "Shard", "ShardedState", "causal_work", "conjugate", "context_attention",
    "context_attention_backward", "context_positions", "enter_region",
    "enter_region_backward", "head_map", "head_share", "leave_region", "leave_region_backward",
    "list_checkpoint", "load_checkpoint", "merge_decoded", "redistribute", "sample",
    "save_checkpoint", "shard_range", "top_candidates", "vocabulary_cross_entropy",
    "vocabulary_embedding", "vocabulary_embedding_backward",
]  # fmt: skip

_open = weakref.WeakSet()

MeshShape = _parallel.MeshShape
Parameter = _parallel.Parameter
Placement = _parallel.Placement
Replicate = _parallel.Replicate
Shard = _parallel.Shard
Partial = _parallel.Partial
conjugate = _parallel.conjugate
shard_range = _parallel.shard_range
head_share = _parallel.head_share
head_map = _parallel.head_map
enter_region = _parallel.enter_region
enter_region_backward = _parallel.enter_region_backward
leave_region = _parallel.leave_region
leave_region_backward = _parallel.leave_region_backward
vocabulary_embedding = _parallel.vocabulary_embedding
vocabulary_embedding_backward = _parallel.vocabulary_embedding_backward
vocabulary_cross_entropy = _parallel.vocabulary_cross_entropy
top_candidates = _parallel.top_candidates
sample = _parallel.sample
ContextAxes = _parallel.ContextAxes
context_positions = _parallel.context_positions
causal_work = _parallel.causal_work
context_attention = _parallel.context_attention
context_attention_backward = _parallel.context_attention_backward
merge_decoded = _parallel.merge_decoded
list_checkpoint = _parallel.list_checkpoint
redistribute = _parallel.redistribute


class Mesh(_parallel.Mesh):
    """Ranks arranged along named axes: Mesh(comm, "dp=2,tp=4"). The last axis varies fastest.

    axis("tp") is the communicator of this rank's group along one axis. axis("dp,tp") is the
    communicator along several axes.
    """

    def __init__(self, comm, text):
        super().__init__(comm, text)
        _open.add(self)


class GradientBuckets(_parallel.GradientBuckets):
    """Sums gradients over ranks during the backward pass.

    First call add(name, count) for each gradient. Every step then makes these calls:
      begin()
      add_to(index, values) and ready(index) for each gradient
      finish()
      copy_to(index, out) for each gradient
    Sums are float32. Values may also be bfloat16, float16 or float8. timeout_ms: the longest time
    between two calls of ready(); 0: no limit. The error on all ranks names the late gradient.
    """

    def __init__(self, comm, **options):
        super().__init__(comm, **options)
        _open.add(self)


class ShardedState(_parallel.ShardedState):
    """Parameters, gradients and AdamW states, sharded over ranks (ZeRO 1, 2 and 3).

    units: a list of lists of Parameter. A unit, such as a layer, is one flat array that is gathered
    and reduced as a whole. Every step makes these calls:
      parameters(unit, out) before each use of a unit, and release(unit) after it
      add_to_gradients(unit, values) and gradients_ready(unit) in the backward pass
      step(), which returns the norm of all gradients
    """

    def __init__(self, comm, units, **options):
        super().__init__(comm, units, **options)
        _open.add(self)


def _rows(tensors):
    rows = []
    for name, row in tensors.items():
        shape, part, first, dtype = (*row, None, None)[:4]
        rows.append((name, list(shape), part, dtype, list(first or ())))
    return rows


def save_checkpoint(comm, folder, tensors):
    """Saves a folder of safetensors files with an index that Hugging Face's libraries can read.

    tensors: {name: (whole shape, this rank's part, index of the part's first element)}, such as
    {"w": ((8, 4), part, (4, 0))}. The index may be left out if all its numbers are 0. A rank
    without a part passes None for the part and the index, followed by the dtype: ((8, 4), None,
    None, "float32"). All ranks name the same tensors in the same order. The previous contents of
    the folder stay intact until the new contents are complete.
    """
    _parallel.save_checkpoint(comm, folder, _rows(tensors))


def load_checkpoint(folder, tensors, comm=None):
    """Fills parts from a checkpoint that was saved under any layout.

    Without `comm`, every rank loads its own parts, without communication; `tensors` is as for
    save_checkpoint(). With `comm`, the call is collective. One rank reads each byte from the disk, and a
    Reshard brings it to all ranks that need it. tensors: {name: (layout, this rank's part)}, with the layouts
    of unisono.reshard, such as {"w": ("dp=2,tp=2: tp=shard(0)", part)}. A rank outside the mesh passes None as
    the part. All ranks name the same tensors in the same order.
    """
    if comm is None:
        _parallel.load_checkpoint(folder, _rows(tensors))
    else:
        _parallel.load_checkpoint_together(comm, folder, [(name, *row) for name, row in tensors.items()])


# Runs before the communicators are closed, because a rank leaves its world only when nothing refers
# to it.
@atexit.register
def _close_all():
    for thing in list(_open):
        thing.close()
