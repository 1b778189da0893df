"""Inputs that every rank can compute for every other rank, and the expected results of the collectives."""

import torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [
    torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64,
    torch.uint64,
]  # fmt: skip
COMPLEX = [torch.complex64, torch.complex128]
ALL = FLOATS + INTEGERS + COMPLEX + [torch.bool, torch.float8_e4m3fn, torch.float8_e5m2]
PREMULTIPLIED = FLOATS + COMPLEX + [torch.float8_e4m3fn, torch.float8_e5m2]

LAYOUTS = ["contiguous", "offset", "strided", "transposed"]


def values(dtype, shape, rank, salt=0):
    """Small numbers, whose sums are exact in every type; on the default device."""
    generator = torch.Generator().manual_seed(1000 * salt + rank)

    def some():
        return torch.randint(0, 4, shape, generator=generator, device="cpu").to(torch.get_default_device())

    numbers = some()
    if dtype in COMPLEX:
        other = some()
        return torch.complex(numbers.double(), other.double()).to(dtype)
    if dtype == torch.bool:
        return numbers > 1
    return numbers.to(dtype)


def laid_out(tensor, layout):
    """The same values in memory with another layout."""
    if layout == "contiguous":
        return tensor.clone()
    if layout == "offset":  # not aligned to anything
        room = torch.zeros(tensor.numel() + 3, dtype=tensor.dtype)
        view = room[3:].view(tensor.shape)
    elif layout == "strided":
        room = torch.zeros(*tensor.shape, 2, dtype=tensor.dtype)
        view = room[..., 0]
    else:
        room = torch.zeros(*reversed(tensor.shape), dtype=tensor.dtype)
        view = room.permute(*reversed(range(tensor.dim())))
    view.copy_(tensor)
    return view


def wide(tensor):
    if tensor.dtype in COMPLEX:
        return tensor.to(torch.complex128)
    if tensor.dtype.is_floating_point:
        return tensor.to(torch.float64)
    return tensor.to(torch.int64)


def reduced(op, tensors, factor=1.0):
    """The result of a reduction, in the type of the inputs."""
    dtype = tensors[0].dtype
    if dtype == torch.bool:
        stack = torch.stack(tensors)
        if op in ("SUM", "MAX", "BOR"):
            return stack.any(0)
        if op in ("PRODUCT", "MIN", "BAND"):
            return stack.all(0)
        return stack.sum(0) % 2 == 1
    stack = torch.stack([wide(tensor) for tensor in tensors])
    if op == "SUM":
        result = stack.sum(0)
    elif op == "AVG":
        result = stack.sum(0)
        if dtype.is_floating_point or dtype in COMPLEX:
            result = result / len(tensors)
        else:
            result = torch.div(result, len(tensors), rounding_mode="trunc")
    elif op == "PREMUL_SUM":
        result = (stack * factor).sum(0)
    elif op == "PRODUCT":
        result = stack.prod(0)
    elif op == "MIN":
        result = stack.min(0).values
    elif op == "MAX":
        result = stack.max(0).values
    else:
        result = stack[0]
        for other in stack[1:]:
            result = {"BAND": result & other, "BOR": result | other, "BXOR": result ^ other}[op]
    return result.to(dtype)


def ops_of(dtype):
    """The reduce operations that are defined for a type."""
    if dtype in COMPLEX:
        return ["SUM", "AVG"]
    if dtype == torch.bool:
        return ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]
    if dtype.is_floating_point:
        return ["SUM", "AVG", "PRODUCT", "MIN", "MAX"]
    return ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]


def same(got, want):
    """Checks that arrays are equal, or for narrow floats within the rounding of a division."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if got.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        return torch.allclose(got.float(), want.float(), rtol=0.13, atol=0.02)
    if got.dtype.is_floating_point or got.dtype in COMPLEX:
        return torch.allclose(wide(got), wide(want), rtol=1e-2 if got.itemsize == 2 else 1e-6)
    return torch.equal(wide(got), wide(want)) if got.dtype != torch.bool else torch.equal(got, want)
