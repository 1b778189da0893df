// Checkpoints: tensors in safetensors files with an index, compatible with the libraries of Hugging
// Face. A checkpoint that was saved under one layout can be loaded under any other layout.
//
// A checkpoint is a folder:
//   model-00001-of-00004.safetensors   one file for each rank that saved; holds whole tensors
//   model.safetensors.index.json       maps each tensor to its file
// Every rank writes its parts directly to their positions in the files. When loading, a rank reads
// only the parts that it requests. If the ranks load together, one rank reads each part from the
// disk, and a Reshard sends the part to all ranks that need it. The folder gets its name only when
// all of its contents are on the disk. A crash while saving does not change the previous
// checkpoint. It leaves an incomplete folder `NAME.saving`, which the next save removes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/parallel/reshard.hpp"
#include "unisono/parallel/tensor.hpp"

namespace unisono::parallel {

// A tensor of the checkpoint, and this rank's part of the tensor. In each dimension, the part
// begins at index `first`. If part.data is null, this rank saves no part of the tensor: it has
// none, or another rank saves a copy of the part.
struct Saved {
  std::string name;
  std::vector<std::size_t> shape;  // shape of the whole tensor
  Tensor part;
  std::vector<std::size_t> first = {};  // empty: zeros
};

// Collective. Saves tensors. All ranks pass the same names, shapes and dtypes in the same order.
// Together, the parts of all ranks must cover every tensor.
// Errors: usage; resource if a file cannot be written, with the name of the file and the reason. If
// one rank fails, all other ranks fail too.
UNISONO_EXPORT void save_checkpoint(Communicator& communicator, const std::string& folder,
                                    std::span<const Saved> tensors);

// Local. Fills the parts. Any number of ranks may load the checkpoint, and each rank may load any
// parts.
// Errors: usage if the checkpoint lacks a tensor or has it with another shape or dtype; corrupt for
// a damaged file; resource if a file cannot be read.
UNISONO_EXPORT void load_checkpoint(const std::string& folder, std::span<const Saved> tensors);

// A tensor to load, its layout, and this rank's part of it, which may have any strides. A rank
// outside the mesh passes an empty part.
struct Loaded {
  std::string name;
  MeshLayout layout;
  Tensor part = {};
};

// Collective. Fills the parts. All ranks pass the same names and layouts in the same order. One
// rank reads each byte from the disk: if several ranks have the same part, each of them reads an
// equal share, and the ranks exchange the shares by a Reshard. Needs memory for the shares of
// about 256 MiB of parts.
// Shapes: as out_shape() of a Reshard whose target is `layout`.
// Errors: those of the local load_checkpoint() and of Reshard. If one rank fails, the other ranks
// fail too.
UNISONO_EXPORT void load_checkpoint(Communicator& communicator, const std::string& folder,
                                    std::span<const Loaded> tensors);

// A tensor that list_checkpoint() found.
struct SavedTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape;
};
// Local. Lists the tensors of a checkpoint in the order of their names.
// Errors: corrupt, resource.
UNISONO_EXPORT std::vector<SavedTensor> list_checkpoint(const std::string& folder);

}  // namespace unisono::parallel
