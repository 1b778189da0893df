// Closes the connections of the parent in a forked child. A child that kept them open would hide
// the parent's death from the peers, because its system would continue to acknowledge data.
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
