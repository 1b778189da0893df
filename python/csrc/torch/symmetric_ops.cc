// Operators of torch.ops.symm_mem on the CPU, with PyTorch's schemas. Each rank reads the other
// ranks' memory in place.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <atomic>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

#include "symmetric_signals.h"

namespace unisono_torch {
namespace {

using Shared = c10::intrusive_ptr<c10d::symmetric_memory::SymmetricMemory>;

// Writes an operator's words. Each word is one store, which a waiting rank sees within 1 ms.
void write_words(const char* op, at::Tensor& input, int64_t offset, int64_t value, int64_t count) {
  TORCH_CHECK_VALUE(
      input.dim() == 1 && input.is_contiguous() && input.scalar_type() == at::ScalarType::UInt32,
      "unisono:", op, ": a flat, contiguous tensor of uint32, not ", input.sizes(), " of ",
      input.scalar_type());
  TORCH_CHECK_VALUE(
      offset >= 0 && count >= 0 && count <= input.numel() && offset <= input.numel() - count,
      "unisono:", op, ": words ", offset, " to ", offset + count, " of a tensor of ",
      input.numel());
  auto* words = input.mutable_data_ptr<uint32_t>() + offset;
  for (int64_t at = 0; at < count; ++at) {
    std::atomic_ref<uint32_t>(words[at]).store(static_cast<uint32_t>(value),
                                               std::memory_order_release);
  }
}

at::Tensor memset32(at::Tensor& input, int64_t offset, int64_t value, int64_t count) {
  write_words("memset32_", input, offset, value, count);
  return input;
}

at::Tensor stream_write_value32(at::Tensor& input, int64_t offset, int64_t value) {
  write_words("stream_write_value32_", input, offset, value, 1);
  wake_waiters(input.mutable_data_ptr<uint32_t>() + offset);
  return input;
}

// Returns a rank's copy of this tensor in its symmetric memory.
at::Tensor of_rank(const Shared& handle, int rank, const at::Tensor& like) {
  return handle->get_buffer(rank, like.sizes(), like.scalar_type(), like.storage_offset());
}

Shared meet_for(const char* op, const at::Tensor& input, const std::string& reduce_op,
                const std::string& group) {
  TORCH_CHECK_VALUE(reduce_op == "sum", "unisono:", op, ": \"", reduce_op, "\"; use \"sum\"");
  TORCH_CHECK_VALUE(input.is_contiguous(), "unisono:", op, ": the tensor must be contiguous");
  return c10d::symmetric_memory::rendezvous(input, group);
}

// Sums rank by rank, in a type wider than 16 bits, so that all ranks get the same bits.
at::Tensor sum_of_parts(const Shared& handle, const at::Tensor& input, int64_t begin,
                        int64_t length) {
  const auto part = [&](int rank) {
    return of_rank(handle, rank, input).flatten().narrow(0, begin, length);
  };
  const bool narrow = input.scalar_type() == at::kHalf || input.scalar_type() == at::kBFloat16;
  at::Tensor sum = part(0).to(narrow ? at::kFloat : input.scalar_type(), false, /*copy=*/true);
  for (int rank = 1; rank < handle->get_world_size(); ++rank) {
    sum += part(rank);
  }
  return sum;
}

at::Tensor one_shot_out(const at::Tensor& input, std::string reduce_op, std::string group,
                        at::Tensor out) {
  const Shared handle = meet_for("one_shot_all_reduce", input, reduce_op, group);
  TORCH_CHECK_VALUE(out.sizes() == input.sizes() && out.scalar_type() == input.scalar_type(),
                    "unisono:one_shot_all_reduce: the output must be like the input");
  handle->barrier(0, 0);
  const at::Tensor sum = sum_of_parts(handle, input, 0, input.numel()).view(input.sizes());
  handle->barrier(0, 0);  // all ranks have read before any rank may write
  out.copy_(sum);
  return out;
}

at::Tensor one_shot(const at::Tensor& input, std::string reduce_op, std::string group) {
  return one_shot_out(input, std::move(reduce_op), std::move(group), at::empty_like(input));
}

at::Tensor one_shot_copy_out(const at::Tensor& buffer, const at::Tensor& local,
                             std::string reduce_op, std::string group, at::Tensor out) {
  TORCH_CHECK_VALUE(buffer.numel() >= local.numel() &&
                        buffer.scalar_type() == local.scalar_type() && buffer.is_contiguous(),
                    "unisono:one_shot_all_reduce_copy: the buffer must hold the input");
  at::Tensor place = buffer.flatten().narrow(0, 0, local.numel()).view(local.sizes());
  place.copy_(local);
  return one_shot_out(place, std::move(reduce_op), std::move(group), std::move(out));
}

at::Tensor one_shot_copy(const at::Tensor& buffer, const at::Tensor& local, std::string reduce_op,
                         std::string group) {
  return one_shot_copy_out(buffer, local, std::move(reduce_op), std::move(group),
                           at::empty_like(local));
}

// Each rank sums a part and writes it to all ranks.
at::Tensor two_shot(at::Tensor input, std::string reduce_op, std::string group) {
  const Shared handle = meet_for("two_shot_all_reduce_", input, reduce_op, group);
  const int64_t ranks = handle->get_world_size();
  const int64_t begin = input.numel() * handle->get_rank() / ranks;
  const int64_t length = input.numel() * (handle->get_rank() + 1) / ranks - begin;
  handle->barrier(0, 0);
  const at::Tensor sum = sum_of_parts(handle, input, begin, length);
  for (int rank = 0; rank < ranks; ++rank) {
    of_rank(handle, rank, input).flatten().narrow(0, begin, length).copy_(sum);
  }
  handle->barrier(0, 0);
  return input;
}

TORCH_LIBRARY_IMPL(symm_mem, CPU, library) {
  library.impl("memset32_", memset32);
  library.impl("stream_write_value32_", stream_write_value32);
  library.impl("one_shot_all_reduce", one_shot);
  library.impl("one_shot_all_reduce_out", one_shot_out);
  library.impl("one_shot_all_reduce_copy", one_shot_copy);
  library.impl("one_shot_all_reduce_copy_out", one_shot_copy_out);
  library.impl("two_shot_all_reduce_", two_shot);
}

}  // namespace
}  // namespace unisono_torch
