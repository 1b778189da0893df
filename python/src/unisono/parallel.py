"""The parallel layer: how a model is laid over ranks, for arrays of any library.

    mesh = unisono.parallel.Mesh(comm, "dp=2,tp=4")
    tp = mesh.axis("tp")
    unisono.parallel.redistribute(tp, part, Shard(0), Replicate(), out=whole)

Arrays are numpy's, PyTorch's, or whatever has the buffer protocol or __dlpack__. What a call fills is
given to it and returned. Regions, embeddings, logits and attention are packed, of float32, bfloat16,
float16 or float8; losses and log_sum are float32, and token numbers int32. Sums are formed in float32
and rounded once. All ranks of a communicator make the same calls in the same order.
docs/guides/python.md has examples, and include/unisono/parallel/ says what each call does.
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
    """Ranks laid out along named axes, the last of which varies fastest: Mesh(comm, "dp=2,tp=4").

    axis("tp") is the communicator of this rank's group along one axis, or several: axis("dp,tp").
    """

    def __init__(self, comm, text):
        super().__init__(comm, text)
        _open.add(self)


class GradientBuckets(_parallel.GradientBuckets):
    """Gradients summed over ranks while the backward pass goes on.

    add(name, count) each gradient; then in every step begin(), for each gradient add_to(index,
    values) and ready(index), finish(), and copy_to(index, out). Sums are of float32; values may
    also be bfloat16, float16 or float8. timeout_ms: how long after one gradient the next may take (0: for ever); it
    is named then, on all ranks.
    """

    def __init__(self, comm, **options):
        super().__init__(comm, **options)
        _open.add(self)


class ShardedState(_parallel.ShardedState):
    """Parameters, gradients and the states of AdamW, sharded over ranks: ZeRO 1, 2, 3.

    units: a list of lists of Parameter; a unit, such as a layer, is gathered and reduced at once,
    and is one flat array. A step: parameters(unit, out) and release(unit) around each use,
    add_to_gradients(unit, values), gradients_ready(unit), then step(), which returns the norm.
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
    """Saves a folder of safetensors files with an index, as Hugging Face's libraries read them.

    tensors: name -> (shape of the whole, this rank's part), with where the part begins behind it
    (in each dimension), if not at the beginning: {"w": ((8, 4), part, (4, 0))}. A rank without a
    part gives None, and the dtype: ((8, 4), None, None, "float32"). All ranks name the same tensors
    in the same order. What the folder had before stays whole until all of the new one is there.
    """
    _parallel.save_checkpoint(comm, folder, _rows(tensors))


def load_checkpoint(folder, tensors):
    """Fills parts from a checkpoint that was saved under any layout; `tensors` as in save_checkpoint().

    Every rank may ask for what it wants; nothing is sent.
    """
    _parallel.load_checkpoint(folder, _rows(tensors))


# Before the communicators: a rank leaves its world when nothing refers to it any more.
@atexit.register
def _close_all():
    for thing in list(_open):
        thing.close()
