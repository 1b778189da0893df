// Base class of our backend: c10d's Backend, and calls that only newer PyTorch releases have.
//
// A function here overrides c10d's function if c10d has it, and is an additional function
// otherwise. Therefore none is marked `override`.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace unisono_torch {

class NewerBackend : public c10d::Backend {
 public:
  using c10d::Backend::Backend;

  // Called before hooks are registered.
  virtual bool supportsAbortHooks() const { return true; }
  // Gathers into one tensor on the root.
  virtual c10::intrusive_ptr<c10d::Work> gather_single(at::Tensor& out, at::Tensor& in,
                                                       const c10d::GatherOptions& options) = 0;
};

}  // namespace unisono_torch
