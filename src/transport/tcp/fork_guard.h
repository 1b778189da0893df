// In the child of a fork the connections of its parent are no more. A child that keeps them open
// would hide the parent's death from the peers: their systems go on acknowledging.
#pragma once

#include <vector>

namespace unisono::tcp {

// While it lives, a forked child has nothing behind these descriptors; their numbers stay in use.
class ForkGuard {
 public:
  // Throws resource.
  explicit ForkGuard(std::vector<int> descriptors);
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();

 private:
  std::vector<int> descriptors_;
};

}  // namespace unisono::tcp
