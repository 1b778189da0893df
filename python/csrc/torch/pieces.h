// From tensors to calls: a Piece is one collective of unisono with what must happen around it.
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
  // Own what the call's spans view; see view_counts().
  std::vector<std::size_t> counts = {};
  std::vector<std::size_t> recv_counts = {};
  c10::SmallVector<at::Tensor, 2> held = {};  // what the call's pointers lead to
  std::vector<std::function<void()>> after = {};

  void view_counts();
  // The device of its memory.
  c10::Device device() const { return held.empty() ? c10::Device(c10::kCPU) : held[0].device(); }
  // Contiguous memory with the elements of `tensor`, to be read.
  void* read(const at::Tensor& tensor);
  // Contiguous memory that becomes the elements of `tensor`.
  void* write(const at::Tensor& tensor);
  void* read_and_write(const at::Tensor& tensor);
  // The same for tensors that follow each other; no copy if they do so in memory.
  void* read_all(const std::vector<at::Tensor>& tensors);
  void* write_all(const std::vector<at::Tensor>& tensors);
  // Input that overlaps output in a way that the call does not allow is copied first.
  void separate(std::size_t in_bytes, std::size_t out_bytes, std::ptrdiff_t allowed);
};

// Checks that are the same for all operations. Throw ValueError or TypeError.
void check_tensor(const char* op, const at::Tensor& tensor);
void check_alike(const char* op, const at::Tensor& a, const at::Tensor& b);
const at::Tensor& only(const char* op, const char* what, const std::vector<at::Tensor>& list);

// The elements of `room` become those of the tensors, one after the other.
void copy_out(const at::Tensor& room, const std::vector<at::Tensor>& tensors);

// The memory there as a tensor, which must not outlive it.
at::Tensor bytes_at(const void* data, std::size_t bytes, c10::Device device);

bool is_plain(const at::Tensor& tensor);  // its elements lie in memory as they are named

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
