// Checkpoints: tensors in safetensors files with an index, as Hugging Face's libraries write and
// read them, saved under one layout and loaded under any other.
//
// A checkpoint is a folder:
//   model-00001-of-00004.safetensors   one file for each rank that saved; tensors are whole
//   model.safetensors.index.json       which tensor is in which file
// Every rank writes the parts that it has where they belong in the files, and reads the parts that
// it wants. The folder appears under its name when all of it is on the disk: a crash while saving
// leaves the one that was there whole (and `NAME.saving`, which the next save removes).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/parallel/tensor.hpp"

namespace unisono::parallel {

// A tensor of the checkpoint, and the part of it that this rank has: the elements from `first` on
// in each dimension. With part.data null this rank has none of it (or leaves it to one with a
// copy).
struct Saved {
  std::string name;
  std::vector<std::size_t> shape;  // of the whole
  Tensor part;
  std::vector<std::size_t> first = {};  // empty: zeros
};

// All ranks call it, with the same names, shapes and dtypes in the same order; together their parts
// have to cover every tensor. Errors: usage; resource, where a file cannot be written, with its
// name and the reason; then the other ranks fail too.
UNISONO_EXPORT void save_checkpoint(Communicator& communicator, const std::string& folder,
                                    std::span<const Saved> tensors);

// Fills the parts. Local: any number of ranks may do it, each what it wants. Errors: usage, for a
// tensor that is not there or has another shape or dtype; corrupt, for a damaged file; resource.
UNISONO_EXPORT void load_checkpoint(const std::string& folder, std::span<const Saved> tensors);

struct SavedTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape;
};
// What a checkpoint has, in the order of names.
UNISONO_EXPORT std::vector<SavedTensor> list_checkpoint(const std::string& folder);

}  // namespace unisono::parallel
