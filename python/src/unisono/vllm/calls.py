"""vLLM's calls on a group of ranks, over a unisono.Communicator. Does not need vLLM.

Names, shapes and ranks are those of vLLM's DeviceCommunicatorBase: ranks are numbered within the group, and
`dim` may be negative. Tensors are in CPU memory. Errors are unisono.Error, with the same text on all ranks.
"""

import pickle

import torch

# Types that numpy lacks: (integer type with the same number of bits, unisono's name of the type).
_AS_INTEGERS = {
    torch.bfloat16: (torch.int16, "bfloat16"),
    torch.float8_e4m3fn: (torch.uint8, "float8_e4m3fn"),
    torch.float8_e5m2: (torch.uint8, "float8_e5m2"),
}
_TENSOR_DICTS, _BATCHES = 1, 2  # tags; other messages have tag 0


def _buffer(tensor):
    """Returns (buffer, dtype) of a contiguous tensor. A numpy view is four times as fast as
    DLPack."""
    view, name = _AS_INTEGERS.get(tensor.dtype, (None, None))
    tensor = tensor.detach()
    return (tensor.numpy(), None) if view is None else (tensor.view(view).numpy(), name)


def _bytes(tensor):
    """Returns the bytes of a contiguous tensor of any type, for calls that do not compute."""
    return tensor.detach().reshape(-1).view(torch.uint8).numpy()


def _row_bytes(tensor):
    return tensor[:1].numel() * tensor.element_size() if len(tensor) else tensor.new_empty((1, *tensor.shape[1:])).nbytes


class GroupCalls:
    """The calls. A subclass has comm, rank_in_group, world_size and label(purpose)."""

    def all_reduce(self, input_):
        """Sums in place, and returns input_."""
        self.label("all_reduce")
        data, dtype = _buffer(input_ if input_.is_contiguous() else input_.contiguous())
        self.comm.all_reduce(data, dtype=dtype)
        if not input_.is_contiguous():
            input_.copy_(_tensor(data, input_))
        return input_

    def all_gather(self, input_, dim=-1):
        """Returns the inputs of all ranks, concatenated along dim."""
        self.label("all_gather")
        dim = self._dimension(input_, dim)
        part = input_.contiguous()
        parts = part.new_empty((self.world_size, *part.shape))
        self.comm.all_gather(_bytes(part), _bytes(parts))
        shape = list(part.shape)
        shape[dim] *= self.world_size
        return parts.movedim(0, dim).reshape(shape)

    def all_gatherv(self, input_, dim=0, sizes=None):
        """Returns the rows of all ranks. sizes: the number of rows on each rank, or None if they
        are equal.

        input_ may be a list of tensors with the same sizes. The result is then a list.
        """
        if dim != 0:
            raise ValueError(f"all_gatherv: dim is {dim}; only rows (dim 0) can be gathered")
        if isinstance(input_, (list, tuple)):
            return [self.all_gatherv(tensor, 0, sizes) for tensor in input_]
        self.label("all_gatherv")
        sizes = self._sizes("all_gatherv", len(input_), sizes)
        part, row = input_.contiguous(), _row_bytes(input_)
        out = part.new_empty((sum(sizes), *part.shape[1:]))
        self.comm.all_gather_v(_bytes(part), _bytes(out), [size * row for size in sizes])
        return out

    def reduce_scatter(self, input_, dim=-1):
        """Sums the inputs, splits the sum along dim, and returns this rank's part."""
        dim = self._dimension(input_, dim)
        if input_.shape[dim] % self.world_size != 0:
            raise ValueError(
                f"reduce_scatter: dimension {dim} of {list(input_.shape)} does not divide by {self.world_size} ranks"
            )
        return self.reduce_scatterv(input_, dim)

    def reduce_scatterv(self, input_, dim=-1, sizes=None):
        """Like reduce_scatter(), but rank r gets sizes[r] rows. None: equal numbers of rows."""
        dim = self._dimension(input_, dim)
        rows = input_.movedim(dim, 0)
        sizes = self._shares("reduce_scatterv", len(rows), sizes)
        out = input_.new_empty((sizes[self.rank_in_group], *rows.shape[1:]))
        return self._reduce_rows(rows, out, sizes).movedim(0, dim).contiguous()

    def reduce_scatterv_into_output(self, input_, output, dim=-1, sizes=None):
        """Like reduce_scatterv(), but writes the result to output and returns output."""
        dim = self._dimension(input_, dim)
        rows = input_.movedim(dim, 0)
        sizes = self._shares("reduce_scatterv", len(rows), sizes)
        if dim == 0 and output.is_contiguous():
            return self._reduce_rows(rows, output, sizes)
        output.copy_(self.reduce_scatterv(input_, dim, sizes))
        return output

    def gather(self, input_, dst=0, dim=-1):
        """Returns the result of all_gather() on rank dst, and None on other ranks."""
        self.label("gather")
        dim = self._dimension(input_, dim)
        part = input_.contiguous()
        if self.rank_in_group != dst:
            self.comm.gather(_bytes(part), root=dst)
            return None
        parts = part.new_empty((self.world_size, *part.shape))
        self.comm.gather(_bytes(part), _bytes(parts), root=dst)
        return torch.cat(list(parts), dim=dim)

    def broadcast(self, tensor, src=0):
        """Copies the tensor of rank src to the tensors of all ranks, and returns `tensor`."""
        self.label("broadcast")
        whole = tensor.contiguous()
        self.comm.broadcast(_bytes(whole), root=src)
        return tensor if whole is tensor else tensor.copy_(whole)

    def send(self, tensor, dst=None):
        """Sends a tensor to rank dst; None: the next rank."""
        self.label("send")
        self.comm.send(_bytes(tensor.contiguous()), self._peer(dst, 1))

    def recv(self, size, dtype, src=None):
        """Receives a tensor from rank src; None: the previous rank."""
        self.label("recv")
        tensor = torch.empty(size, dtype=dtype)
        self.comm.recv(_bytes(tensor), self._peer(src, -1))
        return tensor

    def send_tensor_dict(self, tensor_dict, dst):
        """Sends a dict of tensors and other values. The other values are pickled."""
        self.label("send_tensor_dict")
        tensors, others = [], []
        for key, value in tensor_dict.items():
            is_tensor = isinstance(value, torch.Tensor)
            others.append((key, is_tensor, (value.dtype, value.shape) if is_tensor else value))
            if is_tensor and value.numel() > 0:
                tensors.append(_bytes(value.contiguous()))
        head = pickle.dumps(others)
        length = torch.tensor([len(head)]).numpy()
        pending = [
            self.comm.send_async(data, dst, _TENSOR_DICTS) for data in (length, bytearray(head), *tensors)
        ]
        for request in pending:
            request.wait()

    def recv_tensor_dict(self, src):
        self.label("recv_tensor_dict")
        length = torch.empty(1, dtype=torch.int64)
        self.comm.recv(length.numpy(), src, _TENSOR_DICTS)
        head = bytearray(int(length))
        self.comm.recv(head, src, _TENSOR_DICTS)
        result, pending = {}, []
        for key, is_tensor, value in pickle.loads(head):  # the sender has authenticated with the job's secret
            if is_tensor:
                dtype, shape = value
                value = torch.empty(shape, dtype=dtype)
                if value.numel() > 0:
                    pending.append(self.comm.recv_async(_bytes(value), src, _TENSOR_DICTS))
            result[key] = value
        for request in pending:
            request.wait()
        return result

    def batch_isend_irecv(self, p2p_ops):
        """Starts the sends and receives of a list of P2POp together, and waits for all of them."""
        self.label("batch_isend_irecv")
        pending, copies = [], []
        for op in p2p_ops:
            whole = op.tensor.contiguous()
            if op.op is torch.distributed.isend:
                pending.append(self.comm.send_async(_bytes(whole), op.group_peer, _BATCHES))
                continue
            pending.append(self.comm.recv_async(_bytes(whole), op.group_peer, _BATCHES))
            if whole is not op.tensor:
                copies.append((op.tensor, whole))
        for request in pending:
            request.wait()
        for tensor, whole in copies:
            tensor.copy_(whole)

    def _reduce_rows(self, rows, out, sizes):
        self.label("reduce_scatter")
        data, dtype = _buffer(rows.contiguous())
        into, _ = _buffer(out)
        row = rows[:1].numel() if len(rows) else 0
        self.comm.reduce_scatter_v(data, into, [size * row for size in sizes], dtype=dtype)
        return out

    def _dimension(self, tensor, dim):
        if not -tensor.dim() <= dim < tensor.dim():
            raise ValueError(f"dimension {dim} of a tensor of shape {list(tensor.shape)}")
        return dim % tensor.dim()

    def _peer(self, rank, step):
        return (self.rank_in_group + step) % self.world_size if rank is None else rank

    def _sizes(self, call, mine, sizes):
        sizes = [mine] * self.world_size if sizes is None else list(sizes)
        if len(sizes) != self.world_size or sizes[self.rank_in_group] != mine:
            raise ValueError(f"{call}: sizes are {sizes}, but rank {self.rank_in_group} of {self.world_size} has {mine} rows")
        return sizes

    def _shares(self, call, rows, sizes):
        sizes = [rows // self.world_size] * self.world_size if sizes is None else list(sizes)
        if len(sizes) != self.world_size or sum(sizes) != rows:
            raise ValueError(f"{call}: {rows} rows for {self.world_size} ranks, and sizes {sizes}")
        return sizes


def _tensor(data, like):
    """Returns a tensor with the shape and type of `like`, for a buffer that _buffer() returned."""
    return torch.from_numpy(data).view(like.dtype).view(like.shape)
