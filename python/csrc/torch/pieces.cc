#include "pieces.h"

#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace unisono_torch {
namespace {

std::byte* address(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

// Returns the address of the first tensor if the tensors are contiguous in memory, otherwise
// nullptr.
std::byte* packed(const std::vector<at::Tensor>& tensors) {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() == 0) {
      continue;
    }
    if (!is_plain(tensor) || (end != nullptr && address(tensor) != end)) {
      return nullptr;
    }
    begin = begin == nullptr ? address(tensor) : begin;
    end = address(tensor) + tensor.nbytes();
  }
  return begin;
}

// Refuses an output with internal overlap, whose content would depend on the order of writes.
void check_output(const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(at::has_internal_overlap(tensor) != at::MemOverlap::Yes,
                    "unisono: several elements of an output share one place in memory (from "
                    "expand()); call clone() first");
}

at::Tensor room_for(const std::vector<at::Tensor>& tensors) {
  std::int64_t count = 0;
  for (const at::Tensor& tensor : tensors) {
    count += tensor.numel();
  }
  return at::empty({count}, tensors.front().options().requires_grad(false));
}

}  // namespace

void copy_out(const at::Tensor& room, const std::vector<at::Tensor>& tensors) {
  std::int64_t begin = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.detach().copy_(room.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
}

void Piece::view_counts() {
  call.counts = counts;
  call.recv_counts = recv_counts;
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

void* Piece::read(const at::Tensor& tensor) {
  held.push_back(is_plain(tensor) ? tensor
                                  : tensor.detach().resolve_conj().resolve_neg().contiguous());
  return held.back().data_ptr();
}

void* Piece::write(const at::Tensor& tensor) {
  if (is_plain(tensor)) {
    held.push_back(tensor);
    return tensor.data_ptr();
  }
  check_output(tensor);
  const at::Tensor room = at::empty(tensor.sizes(), tensor.options().requires_grad(false));
  held.push_back(room);
  after.push_back([room, tensor] { tensor.detach().copy_(room); });
  return room.data_ptr();
}

void* Piece::read_and_write(const at::Tensor& tensor) {
  if (is_plain(tensor)) {
    held.push_back(tensor);
    return tensor.data_ptr();
  }
  check_output(tensor);
  const at::Tensor room = tensor.detach().resolve_conj().resolve_neg().contiguous();
  held.push_back(room);
  after.push_back([room, tensor] { tensor.detach().copy_(room); });
  return room.data_ptr();
}

void* Piece::read_all(const std::vector<at::Tensor>& tensors) {
  if (std::byte* begin = packed(tensors); begin != nullptr) {
    held.insert(held.end(), tensors.begin(), tensors.end());
    return begin;
  }
  const at::Tensor room = room_for(tensors);
  std::int64_t begin = 0;
  for (const at::Tensor& tensor : tensors) {
    room.narrow(0, begin, tensor.numel()).view(tensor.sizes()).copy_(tensor.detach());
    begin += tensor.numel();
  }
  held.push_back(room);
  return room.data_ptr();
}

void* Piece::write_all(const std::vector<at::Tensor>& tensors) {
  if (std::byte* begin = packed(tensors); begin != nullptr) {
    held.insert(held.end(), tensors.begin(), tensors.end());
    return begin;
  }
  std::for_each(tensors.begin(), tensors.end(), check_output);
  const at::Tensor room = room_for(tensors);
  held.push_back(room);
  after.push_back([room, tensors] { copy_out(room, tensors); });
  return room.data_ptr();
}

void Piece::separate(std::size_t in_bytes, std::size_t out_bytes, std::ptrdiff_t allowed) {
  const auto* in = static_cast<const std::byte*>(call.in);
  const auto* out = static_cast<const std::byte*>(call.out);
  const bool apart =
      in_bytes == 0 || out_bytes == 0 || in + in_bytes <= out || out + out_bytes <= in;
  if (apart || in - out == allowed) {
    return;
  }
  const at::Tensor copy = bytes_at(call.in, in_bytes, device()).clone();
  held.push_back(copy);
  call.in = copy.data_ptr();
}

at::Tensor bytes_at(const void* data, std::size_t bytes, c10::Device device) {
  return at::from_blob(const_cast<void*>(data), {static_cast<std::int64_t>(bytes)},
                       at::TensorOptions().dtype(at::kByte).device(device));
}

void check_tensor(const char* op, const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.defined(), "unisono:", op, ": a tensor is undefined");
  TORCH_CHECK_VALUE(tensor.is_cpu() || tensor.is_cuda() || tensor.is_privateuseone(),
                    "unisono:", op, ": a tensor is on ", tensor.device(),
                    "; unisono works on tensors of the CPU and of CUDA (\"cpu:unisono,xpu:xccl\" ",
                    "gives each device its backend)");
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "unisono:", op, ": a tensor is ",
                    tensor.layout(), "; only dense tensors are supported, so call to_dense()");
}

void check_alike(const char* op, const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK_TYPE(a.scalar_type() == b.scalar_type(), "unisono:", op, ": tensors of ",
                   a.scalar_type(), " and ", b.scalar_type(), "; all must have one type");
  TORCH_CHECK_VALUE(a.device() == b.device(), "unisono:", op, ": tensors on ", a.device(), " and ",
                    b.device(), "; all must be on one device");
}

const at::Tensor& only(const char* op, const char* what, const std::vector<at::Tensor>& list) {
  TORCH_CHECK_VALUE(list.size() == 1, "unisono:", op, ": ", list.size(), " ", what,
                    "; exactly one tensor is expected");
  check_tensor(op, list.front());
  return list.front();
}

}  // namespace unisono_torch
