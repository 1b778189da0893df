// Converts tensors to calls. A Piece is one unisono collective with its preparation and follow-up.
#pragma once

#include <ATen/ATen.h>

#include <c10/util/SmallVector.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>
#include "unisono/unisono.hpp"

#include "convert.h"

namespace unisono_torch {

struct Piece {
  unisono::Call call;
  // Own the data that the call's spans view; see view_counts().
  std::vector<std::size_t> counts = {};
  std::vector<std::size_t> recv_counts = {};
  c10::SmallVector<at::Tensor, 2> held = {};  // owners of the call's memory
  std::vector<std::function<void()>> after = {};

  void view_counts();
  // Returns the device of the memory.
  c10::Device device() const { return held.empty() ? c10::Device(c10::kCPU) : held[0].device(); }
  // Returns contiguous memory with the elements of `tensor`, for reading.
  void* read(const at::Tensor& tensor);
  // Returns contiguous memory, which is copied to `tensor` afterwards.
  void* write(const at::Tensor& tensor);
  void* read_and_write(const at::Tensor& tensor);
  // Do the same for consecutive tensors, without a copy if they are contiguous in memory.
  void* read_all(const std::vector<at::Tensor>& tensors);
  void* write_all(const std::vector<at::Tensor>& tensors);
  // Copies the input if it overlaps the output in a way that the call does not allow.
  void separate(std::size_t in_bytes, std::size_t out_bytes, std::ptrdiff_t allowed);
};

// Common checks of all operations. Throw ValueError or TypeError.
void check_tensor(const char* op, const at::Tensor& tensor);
void check_alike(const char* op, const at::Tensor& a, const at::Tensor& b);
const at::Tensor& only(const char* op, const char* what, const std::vector<at::Tensor>& list);

// Copies the elements of `room` to the tensors, one after the other.
void copy_out(const at::Tensor& room, const std::vector<at::Tensor>& tensors);

// Returns the memory as a tensor, which must not outlive the memory.
at::Tensor bytes_at(const void* data, std::size_t bytes, c10::Device device);

bool is_plain(const at::Tensor& tensor);  // contiguous, with actual values in memory

Piece broadcast_piece(const at::Tensor& tensor, int root);
Piece all_reduce_piece(const char* op, const at::Tensor& tensor, const c10d::ReduceOp& how);
Piece reduce_piece(const at::Tensor& tensor, const c10d::ReduceOp& how, int root, bool is_root);
Piece all_gather_piece(const char* op, const at::Tensor& out, const at::Tensor& in, int rank,
                       int size);
Piece all_gather_list_piece(const char* op, const std::vector<at::Tensor>& outs,
                            const at::Tensor& in, int rank, int size);
Piece reduce_scatter_piece(const char* op, const at::Tensor& out, const at::Tensor& in,
                           const c10d::ReduceOp& how, int rank, int size);
Piece reduce_scatter_list_piece(const at::Tensor& out, const std::vector<at::Tensor>& ins,
                                const c10d::ReduceOp& how, int rank, int size);
Piece gather_piece(const std::vector<at::Tensor>& outs, const at::Tensor& in, int root, int rank,
                   int size);
Piece gather_single_piece(const at::Tensor& out, const at::Tensor& in, int root, int rank,
                          int size);
Piece scatter_piece(const at::Tensor& out, const std::vector<at::Tensor>& ins, int root, int rank,
                    int size);
Piece all_to_all_piece(const at::Tensor& out, const at::Tensor& in,
                       const std::vector<std::int64_t>& out_splits,
                       const std::vector<std::int64_t>& in_splits, int rank, int size);
Piece all_to_all_list_piece(const std::vector<at::Tensor>& outs, const std::vector<at::Tensor>& ins,
                            int rank, int size);

}  // namespace unisono_torch
