// The base of our backend: c10d's, and the calls that only newer releases of PyTorch know.
//
// A function here overrides c10d's where that has one of its name, and is one more function where
// it has not; so none is marked `override`.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace unisono_torch {

class NewerBackend : public c10d::Backend {
 public:
  using c10d::Backend::Backend;

  // Asked before hooks are registered.
  virtual bool supportsAbortHooks() const { return true; }
  // gather() into one tensor on the root.
  virtual c10::intrusive_ptr<c10d::Work> gather_single(at::Tensor& out, at::Tensor& in,
                                                       const c10d::GatherOptions& options) = 0;
};

}  // namespace unisono_torch
